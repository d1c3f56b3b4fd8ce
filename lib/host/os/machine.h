/* Memory and processors that this process may use: those of the machine, limited by the control
 * groups of the process (v1 and v2, all ancestors included), by cpusets and by the affinity mask.
 * Read once, at the first call; a later change of a limit is not noticed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mr_machine {
    uint64_t memory_bytes; /* the least of the machine's memory and the groups' limits */
    bool is_limited;       /* a group allows less memory than the machine has */
    /* Id of the group with the lowest memory limit, the same in all processes of this group; 0:
     * no group limits the memory. */
    uint64_t group;
    uint32_t cpus; /* whole processors, at least 1; a quota of 1.5 counts as 2 */
};

void mr_machine_read(struct mr_machine *out);
/* For tests: reads files beneath `root` instead of "/". `memory_bytes` and `cpus` are those of the
 * machine. */
void mr_machine_read_at(
    const char *root, uint64_t memory_bytes, uint32_t cpus, struct mr_machine *out);

/* Bytes of shared memory that an object store may take: `wanted`, but at most 80 % of the memory;
 * 40 % of the memory if `wanted` is 0. */
uint64_t mr_machine_share(const struct mr_machine *m, uint64_t wanted);
