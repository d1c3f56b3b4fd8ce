/* Reads the limits of the process's control group (v1 or v2) and of all groups above this group. In
 * a container that sees its own group as the root, the path in /proc/self/cgroup perhaps does not
 * exist. The root always exists, and there it has the limits of the container. */
#include "host/os/machine.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/id.h"
#include "base/str.h"
#include "host/os/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)
/* A limit of fewer bytes is taken for a mistake and ignored. */
#define MEMORY_MIN ((uint64_t)1 << 20)

uint64_t mr_machine_resident(void)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (n <= 0) return 0;
    text[n] = 0;
    char *end = text;
    (void)strtoull(text, &end, 10); /* skips the first number, the total size */
    return strtoull(end, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The limits of a control group. UINT64_MAX: no limit. */
struct limits {
    uint64_t memory, milli_cpus;
    uint64_t group; /* id of the group that has the limit `memory` */
};

static char *text_of(const char *path)
{
    MR_AUTO(mr_buf_fini) struct mr_buf b;
    mr_buf_init(&b, FILE_BYTES_MAX);
    if (mr_file_read(path, &b, NULL)) return NULL;
    mr_buf_add_byte(&b, 0);
    return mr_copy_text((const char *)b.p);
}

/* Returns the first number in a file. `second` (may be NULL) receives the number that follows the
 * first. UINT64_MAX: there is no such file, or the file begins with another word ("max", "-1");
 * `second` is then unchanged. */
static uint64_t number_in(const char *folder, const char *file, uint64_t *second)
{
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", folder, file);
    MR_AUTO(mr_free_ptr) char *text = text_of(path);
    if (!text || *text < '0' || *text > '9') return UINT64_MAX;
    char *end;
    uint64_t n = strtoull(text, &end, 10);
    if (second) *second = strtoull(end, NULL, 10);
    return n;
}

/* Returns an id of a control group that is the same in every mount namespace: the hash of the
 * device and inode of the group's folder. 0: there is no such folder. */
static uint64_t group_of(const char *folder)
{
    struct stat st;
    if (stat(folder, &st)) return 0;
    uint64_t n = mr_hash_u64(mr_hash_u64((uint64_t)st.st_dev) + (uint64_t)st.st_ino);
    return n ? n : 1;
}

static void memory_of(const char *folder, struct limits *l)
{
    static const char *const files[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
    for (size_t i = 0; i < MR_ARRAY_LEN(files); i++) {
        uint64_t n = number_in(folder, files[i], NULL);
        if (n < MEMORY_MIN || n >= l->memory) continue;
        l->memory = n;
        l->group = group_of(folder);
    }
}

static void cpus_of(const char *folder, struct limits *l)
{
    uint64_t period = 0;
    uint64_t quota = number_in(folder, "cpu.max", &period);
    if (quota == UINT64_MAX) {
        quota = number_in(folder, "cpu.cfs_quota_us", NULL);
        period = number_in(folder, "cpu.cfs_period_us", NULL);
    }
    if (quota == UINT64_MAX || quota > UINT64_MAX / 1000) return;
    if (!period || period == UINT64_MAX) return;
    l->milli_cpus = MR_MIN(l->milli_cpus, MR_MAX(quota * 1000 / period, (uint64_t)1));
}

/* Reads the limits of a group and of all groups above it, up to `mount`. */
static void climb(const char *mount, const char *group, struct limits *l)
{
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s%s", mount, group);
    size_t least = strlen(mount);
    for (;;) {
        memory_of(path, l);
        cpus_of(path, l);
        if (strlen(path) <= least) return;
        char *slash = strrchr(path + least, '/');
        *(slash ? slash : path + least) = 0;
    }
}

/* Parses one line of /proc/self/cgroup: "number:controllers:/group". A line without controllers is
 * of cgroup v2. */
static void group_line(const char *root, char *line, struct limits *l)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return;
    *controllers++ = *group++ = 0;
    if (!*controllers) {
        static const char *const mounts[] = {"", "/unified"};
        for (size_t i = 0; i < MR_ARRAY_LEN(mounts); i++) {
            MR_AUTO(mr_free_ptr) char *mount = mr_format("%s/sys/fs/cgroup%s", root, mounts[i]);
            climb(mount, group, l);
        }
        return;
    }
    MR_AUTO(mr_free_ptr) char *all = mr_format("%s/sys/fs/cgroup/%s", root, controllers);
    climb(all, group, l);
    char *rest = NULL;
    for (char *one = strtok_r(controllers, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        MR_AUTO(mr_free_ptr) char *mount = mr_format("%s/sys/fs/cgroup/%s", root, one);
        climb(mount, group, l);
    }
}

void mr_machine_read_at(
    const char *root, uint64_t memory_bytes, uint32_t cpus, struct mr_machine *out)
{
    struct limits l = {UINT64_MAX, UINT64_MAX, 0};
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/proc/self/cgroup", root);
    MR_AUTO(mr_free_ptr) char *text = text_of(path);
    char *rest = NULL;
    if (text)
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            group_line(root, line, &l);
    uint64_t whole = l.milli_cpus / 1000 + (l.milli_cpus % 1000 != 0);
    uint64_t most = MR_MAX(cpus, 1u);
    *out = (struct mr_machine){
        .memory_bytes = MR_MIN(memory_bytes, l.memory),
        .is_limited = l.memory < memory_bytes,
        .group = l.memory < memory_bytes ? l.group : 0,
        .cpus = (uint32_t)MR_MIN(most, MR_MAX(whole, (uint64_t)1)),
    };
}

static struct mr_machine here;

static void read_here(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : (uint64_t)1 << 31;
    cpu_set_t set;
    CPU_ZERO(&set);
    long cpus =
        sched_getaffinity(0, sizeof set, &set) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
    mr_machine_read_at("", memory, cpus > 0 ? (uint32_t)cpus : 1, &here);
}

void mr_machine_read(struct mr_machine *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_here);
    *out = here;
}

uint64_t mr_machine_share(const struct mr_machine *m, uint64_t wanted)
{
    if (!wanted) return m->memory_bytes / 10 * 4;
    return MR_MIN(wanted, m->memory_bytes / 10 * 8);
}
