/* memfds. A descriptor opened read-only protects nothing, because /proc lets its holder open it
 * again for writing; the FUTURE_WRITE seal does. */
#include "store/arena/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

int mr_segment_map(int fd, uint64_t bytes, bool writable, void **out, struct mr_error *e)
{
    void *p = mmap(NULL, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return mr_fail(e, MR_EIO, "cannot map %llu bytes of shared memory: %s",
            (unsigned long long)bytes, strerror(errno));
    (void)madvise(p, bytes, MADV_HUGEPAGE); /* as the system allows; no matter if not */
    *out = p;
    return MR_OK;
}

void mr_segment_unmap(void *p, uint64_t bytes)
{
    if (p) (void)munmap(p, bytes);
}
