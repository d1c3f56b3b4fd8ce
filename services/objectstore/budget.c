/* Memory of the machine and limits of control groups (v2, and v1 where it is still used). */
#include "services/objectstore/budget.h"

#include "base/defs.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t read_limit(const char *path)
{
    char text[64] = "";
    FILE *f = fopen(path, "re");
    if (!f) return UINT64_MAX;
    bool got = fgets(text, sizeof text, f) != NULL;
    (void)fclose(f);
    uint64_t bytes = UINT64_MAX;
    if (!got || sscanf(text, "%" SCNu64, &bytes) != 1) return UINT64_MAX; /* "max" */
    return bytes;
}

/* Every group above ours limits us too. */
static uint64_t group_limit(void)
{
    uint64_t least = read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    least = MR_MIN(least, read_limit("/sys/fs/cgroup/memory.max"));
    char line[1024];
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f) return least;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "0::", 3)) continue;
        line[strcspn(line, "\n")] = 0;
        for (char *group = line + 3; *group;) {
            char path[1200];
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
            least = MR_MIN(least, read_limit(path));
            char *slash = strrchr(group, '/');
            if (!slash) break;
            *slash = 0;
        }
    }
    (void)fclose(f);
    return least;
}

uint64_t mr_budget_bytes(uint64_t wanted)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t limit = MR_MIN(machine, group_limit());
    if (!wanted) return limit / 10 * 4;
    return MR_MIN(wanted, limit / 10 * 8);
}
