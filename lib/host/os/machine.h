/* Memory and processors that this process may use: those of the machine, limited by the control
 * groups of the process (v1 and v2, all ancestors included), by cpusets and by the affinity mask.
 * The limits are read once, at the first call; later changes are not noticed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mr_machine {
    /* The smallest of the machine's memory and the limits of the groups. */
    uint64_t memory_bytes;
    bool is_limited; /* true: a group allows less memory than the machine has */
    /* Id of the group with the lowest memory limit. Equal in all processes of this group. 0: no
     * group limits the memory. */
    uint64_t group;
    /* Whole processors, at least 1. A quota of 1.5 counts as 2. */
    uint32_t cpus;
};

void mr_machine_read(struct mr_machine *out);
/* For tests: reads files beneath `root` instead of "/". `memory_bytes` and `cpus` are those of the
 * machine. */
void mr_machine_read_at(
    const char *root, uint64_t memory_bytes, uint32_t cpus, struct mr_machine *out);

/* Returns the bytes of shared memory that an object store may take: `wanted`, but at most 80 % of
 * the memory. If `wanted` is 0: 40 % of the memory. */
uint64_t mr_machine_share(const struct mr_machine *m, uint64_t wanted);

/* Returns the resident memory of this process in bytes, as Linux counts it: with the pages of
 * shared memory that the process has touched. 0: the kernel does not tell. */
uint64_t mr_machine_resident(void);
