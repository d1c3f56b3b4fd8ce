/* Memory and processors that this process may use: what the machine has, less what control groups
 * (v1 and v2, each group above ours too), cpusets and the affinity mask allow. Read once at the
 * start; a limit that changes later is not noticed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mr_machine {
    uint64_t memory_bytes; /* the least of what the machine has and the groups allow */
    bool is_limited;       /* a group allows less than the machine has */
    uint64_t group;        /* which one does, the same number in each of its processes; 0: none */
    uint32_t cpus;         /* whole processors, at least 1: a quota of 1.5 is 2 */
};

void mr_machine_read(struct mr_machine *out);
/* For tests: files are looked for beneath `root`, which stands for "/"; `memory_bytes` and `cpus`
 * are the machine's. */
void mr_machine_read_at(
    const char *root, uint64_t memory_bytes, uint32_t cpus, struct mr_machine *out);

/* How much shared memory a store may take: min(`wanted`, 80 % of what there is); wanted 0: 40 %. */
uint64_t mr_machine_share(const struct mr_machine *m, uint64_t wanted);
