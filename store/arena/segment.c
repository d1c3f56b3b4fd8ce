/* Shared memory as memfds with seals. A read-only descriptor would protect nothing, because a
 * process that has it can open it for writing through /proc. The seal F_SEAL_FUTURE_WRITE does
 * protect the memory. */
#include "store/arena/segment.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES ((uint64_t)4096)

/* Huge pages are made in steps of HUGE_STEP bytes. If a step takes longer than HUGE_NS_PER_KIB, the
 * kernel or the hypervisor has to find free memory first, and ordinary pages are cheaper. Measured:
 * 0.16 ms a MiB for huge pages, 0.4 ms for ordinary ones. */
#define HUGE_STEP ((uint64_t)8 << 20)
#define HUGE_NS_PER_KIB 400

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int mr_segment_make(const char *name, uint64_t bytes, int *fd, struct mr_error *e)
{
    int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0)
        return mr_fail(e, MR_EIO, "cannot make shared memory: %s (is RLIMIT_NOFILE too low?)",
            strerror(errno));
    if (ftruncate(made, (off_t)bytes) || fchmod(made, 0400)) {
        int err = mr_fail(e, MR_EIO, "cannot size shared memory to %llu bytes: %s",
            (unsigned long long)bytes, strerror(errno));
        close(made);
        return err;
    }
    *fd = made;
    return MR_OK;
}

int mr_segment_seal(int fd, struct mr_error *e)
{
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return mr_fail(e, MR_EIO, "cannot seal shared memory: %s", strerror(errno));
    return MR_OK;
}

int mr_segment_check(int fd, uint64_t bytes_min, bool written, uint64_t *bytes, struct mr_error *e)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0) return mr_fail(e, MR_EPERM, "a descriptor is not a memfd");
    if (!(seals & F_SEAL_SHRINK)) return mr_fail(e, MR_EPERM, "a memfd is not sealed SHRINK");
    if (written && !(seals & F_SEAL_FUTURE_WRITE))
        return mr_fail(e, MR_EPERM, "a memfd is not sealed FUTURE_WRITE");
    struct stat st;
    if (fstat(fd, &st)) return mr_fail(e, MR_EPERM, "a memfd has no size: %s", strerror(errno));
    if (st.st_size < 0 || (uint64_t)st.st_size < bytes_min)
        return mr_fail(e, MR_EPERM, "a memfd has %lld bytes, not %llu", (long long)st.st_size,
            (unsigned long long)bytes_min);
    *bytes = (uint64_t)st.st_size;
    return MR_OK;
}

/* Reserves address space for a mapping that begins at a multiple of a huge page. NULL: the mapping
 * is smaller than a huge page, or there is no space. */
static void *aligned_space(uint64_t bytes)
{
    if (bytes < MR_HUGE_BYTES) return NULL;
    uint64_t whole = bytes + MR_HUGE_BYTES;
    unsigned char *p =
        mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    uint64_t before = mr_align_up((uintptr_t)p, MR_HUGE_BYTES) - (uintptr_t)p;
    uint64_t end = before + mr_align_up(bytes, PAGE_BYTES);
    if (before) (void)munmap(p, before);
    if (end < whole) (void)munmap(p + end, whole - end);
    return p + before;
}

int mr_segment_map(int fd, uint64_t bytes, bool writable, void **out, struct mr_error *e)
{
    void *at = aligned_space(bytes);
    int rights = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *p = mmap(at, bytes, rights, at ? MAP_SHARED | MAP_FIXED : MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        int err = mr_fail(e, MR_EIO, "cannot map %llu bytes of shared memory: %s",
            (unsigned long long)bytes, strerror(errno));
        if (at) (void)munmap(at, bytes);
        return err;
    }
    /* Only a hint: the mapping also works without huge pages. */
    (void)madvise(p, bytes, MADV_HUGEPAGE);
    *out = p;
    return MR_OK;
}

void mr_segment_unmap(void *p, uint64_t bytes)
{
    if (p) (void)munmap(p, bytes);
}

/* ---- populating pages before the first write ------------------------------------------------- */

static uint64_t thread_cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Makes huge pages of a range. MADV_COLLAPSE needs one ordinary page in each huge page, so this one
 * is populated first; the kernel zeroes the rest at once. False: the kernel has refused. */
static bool warm_huge(unsigned char *p, uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to; at += MR_HUGE_BYTES)
        if (madvise(p + at, PAGE_BYTES, MADV_POPULATE_WRITE)) return false;
    return !madvise(p + from, to - from, MADV_COLLAPSE);
}

uint64_t mr_segment_warm(void *base, uint64_t bytes, uint64_t from, uint64_t to, bool *huge)
{
    unsigned char *p = base;
    mr_assert(from <= to && to <= bytes);
    uint64_t at = from & ~(MR_HUGE_BYTES - 1);
    uint64_t high = MR_MIN(mr_align_up(to, MR_HUGE_BYTES), bytes & ~(MR_HUGE_BYTES - 1));
    while (*huge && at < high) {
        uint64_t n = MR_MIN(high - at, HUGE_STEP);
        uint64_t began = thread_cpu_ns();
        *huge = warm_huge(p, at, at + n);
        if (!*huge) break;
        at += n;
        *huge = thread_cpu_ns() - began < n / 1024 * HUGE_NS_PER_KIB;
    }
    at = MR_MAX(at, from & ~(PAGE_BYTES - 1));
    if (at < to) (void)madvise(p + at, to - at, MADV_POPULATE_WRITE);
    return MR_MAX(at, to);
}
