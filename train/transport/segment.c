/* Shared memory (memfd with seals), waits on a word (futex), and struct mr_transport_bell. */
#include "train/transport/segment.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "store/arena/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int mr_transport_make(
    const char *name, uint64_t bytes, bool alone, int *fd, void **map, struct mr_error *e)
{
    int made = -1;
    void *p = NULL;
    int err = mr_segment_make(name, bytes, &made, e);
    if (err) return err;
    err = mr_segment_map(made, bytes, true, &p, e);
    if (!err && alone) err = mr_segment_seal(made, e);
    if (!err && !alone && fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        err = mr_fail(e, MR_EIO, "cannot seal shared memory: %s", strerror(errno));
    if (err) {
        mr_segment_unmap(p, bytes);
        (void)close(made);
        return err;
    }
    *fd = made;
    *map = p;
    return MR_OK;
}

int mr_transport_map(int fd, uint64_t bytes, bool writable, void **map, struct mr_error *e)
{
    if (fd < 0) return mr_fail(e, MR_EFORMAT, "a peer sent no shared memory");
    uint64_t real = 0;
    int err = mr_segment_check(fd, bytes, !writable, &real, e);
    if (err) return err;
    return mr_segment_map(fd, bytes, writable, map, e);
}

void mr_transport_sleep(const _Atomic uint32_t *word, uint32_t seen, mr_time deadline)
{
    mr_time now = mr_clock_now();
    if (now >= deadline) return;
    mr_duration left = deadline - now;
    struct timespec t = {(time_t)(left / MR_SECOND), (long)(left % MR_SECOND)};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void mr_transport_wake(const _Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void mr_transport_bell_ring(struct mr_transport_bell *b)
{
    (void)atomic_fetch_add(&b->rung, 1);
    if (atomic_load(&b->sleeps)) mr_transport_wake(&b->rung);
}

void mr_transport_bell_wait(struct mr_transport_bell *b, uint32_t seen, mr_time deadline)
{
    mr_time slice = mr_time_after(mr_clock_now(), MR_TRANSPORT_SLICE);
    atomic_store(&b->sleeps, 1);
    mr_transport_sleep(&b->rung, seen, MR_MIN(deadline, slice));
    atomic_store(&b->sleeps, 0);
}
