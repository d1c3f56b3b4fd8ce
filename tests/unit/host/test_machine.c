/* host/os/machine: the memory and the processors that a process may use. The tests build trees of
 * control groups below a temporary folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "host/os/file.h"
#include "host/os/machine.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIB ((uint64_t)1 << 30)

struct tree {
    char root[64];
};

static int setup(void **state)
{
    struct tree *t = mr_alloc(sizeof *t);
    (void)snprintf(t->root, sizeof t->root, "/tmp/mr-machine-XXXXXX");
    assert_non_null(mkdtemp(t->root));
    *state = t;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static int teardown(void **state)
{
    struct tree *t = *state;
    assert_int_equal(nftw(t->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    mr_release(t);
    return 0;
}

static void put(const struct tree *t, const char *path, const char *text)
{
    MR_AUTO(mr_free_ptr) char *full = mr_format("%s%s", t->root, path);
    MR_AUTO(mr_free_ptr) char *folder = mr_copy_text(full);
    *strrchr(folder, '/') = 0;
    assert_int_equal(mr_file_make_dirs(folder, 0700, NULL), 0);
    assert_int_equal(mr_file_write(full, mr_str(text), 0600, NULL), 0);
}

static struct mr_machine look(const struct tree *t)
{
    struct mr_machine m;
    mr_machine_read_at(t->root, 64 * GIB, 16, &m);
    return m;
}

static void without_groups_all_is_there(void **state)
{
    struct mr_machine m = look(*state);
    assert_int_equal(m.memory_bytes, 64 * GIB);
    assert_int_equal(m.cpus, 16);
    assert_false(m.is_limited);
    assert_int_equal(m.group, 0);
}

static void the_least_of_the_groups_above_holds_in_v2(void **state)
{
    const struct tree *t = *state;
    put(t, "/proc/self/cgroup", "0::/a/b/c\n");
    put(t, "/sys/fs/cgroup/a/memory.max", "2147483648\n");
    put(t, "/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    put(t, "/sys/fs/cgroup/a/b/memory.max", "max\n");
    put(t, "/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    put(t, "/sys/fs/cgroup/a/b/c/memory.max", "8589934592\n");
    put(t, "/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n");
    struct mr_machine m = look(t);
    assert_int_equal(m.memory_bytes, 2 * GIB);
    assert_true(m.is_limited);
    assert_int_equal(m.cpus, 2); /* group b has the least quota, 1.5 processors, rounded up */
    /* memory.high is a limit, too: the kernel throttles a group that exceeds it. */
    put(t, "/sys/fs/cgroup/a/b/c/memory.high", "1073741824\n");
    assert_int_equal(look(t).memory_bytes, GIB);
}

static void a_container_sees_its_group_as_the_root(void **state)
{
    const struct tree *t = *state;
    put(t, "/proc/self/cgroup", "0::/\n");
    put(t, "/sys/fs/cgroup/memory.max", "536870912\n");
    put(t, "/sys/fs/cgroup/cpu.max", "50000 100000\n");
    struct mr_machine m = look(t);
    assert_int_equal(m.memory_bytes, GIB / 2);
    assert_int_equal(m.cpus, 1);
}

static void v1_limits_each_controller_by_itself(void **state)
{
    const struct tree *t = *state;
    put(t, "/proc/self/cgroup",
        "12:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n0::/docker/x\n");
    put(t, "/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "4294967296\n");
    put(t, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(t, "/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "300000\n");
    put(t, "/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    put(t, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put(t, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    struct mr_machine m = look(t);
    assert_int_equal(m.memory_bytes, 4 * GIB);
    assert_int_equal(m.cpus, 3);
    /* In a container, the root of the mount is the container's own group, whatever path /proc
     * names. */
    put(t, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
    assert_int_equal(look(t).memory_bytes, GIB);
}

static void nonsense_limits_nothing(void **state)
{
    const struct tree *t = *state;
    put(t, "/proc/self/cgroup", "\n0\n0:\nx::::\n0::\n");
    put(t, "/sys/fs/cgroup/memory.max", "0\n");
    put(t, "/sys/fs/cgroup/cpu.max", "10 0\n");
    struct mr_machine m = look(t);
    assert_int_equal(m.memory_bytes, 64 * GIB);
    assert_int_equal(m.cpus, 16);
}

/* `group` is a number for the control group whose limit holds. Processes of one such group get the
 * same number, and processes of another group get another number. */
static void the_group_that_limits_is_known_by_a_number(void **state)
{
    const struct tree *t = *state;
    put(t, "/proc/self/cgroup", "0::/a/b\n");
    put(t, "/sys/fs/cgroup/a/memory.max", "2147483648\n");
    put(t, "/sys/fs/cgroup/a/b/memory.max", "max\n");
    uint64_t outer = look(t).group;
    assert_int_not_equal(outer, 0);
    put(t, "/sys/fs/cgroup/a/c/memory.max", "max\n");
    put(t, "/proc/self/cgroup", "0::/a/c\n");
    /* Group c has no limit of its own, so the limit and the number are those of group a. */
    assert_int_equal(look(t).group, outer);
    put(t, "/sys/fs/cgroup/a/c/memory.max", "1073741824\n");
    assert_int_not_equal(look(t).group, 0);
    assert_int_not_equal(look(t).group, outer);
}

static void shares_are_of_the_limit(void **state)
{
    (void)state;
    const struct mr_machine m = {.memory_bytes = 10 * GIB, .is_limited = true, .cpus = 1};
    assert_int_equal(mr_machine_share(&m, 0), 4 * GIB);
    assert_int_equal(mr_machine_share(&m, 6 * GIB), 6 * GIB);
    assert_int_equal(mr_machine_share(&m, 60 * GIB), 8 * GIB);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(without_groups_all_is_there),
        T(the_least_of_the_groups_above_holds_in_v2),
        T(a_container_sees_its_group_as_the_root),
        T(v1_limits_each_controller_by_itself),
        T(nonsense_limits_nothing),
        T(the_group_that_limits_is_known_by_a_number),
        T(shares_are_of_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
