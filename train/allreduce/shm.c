/* The ranks of one node share one segment, which rank 0 makes and serves at its socket:
 *
 *   page | parameters | gradients of rank 0 | gradients of rank 1 | …
 *
 * All ranks may write to the whole segment, so a faulty rank can spoil the numbers of all ranks.
 * Sizes and offsets are in each rank's private memory. When a rank dies, its connection breaks, and
 * rank 0 sets `is_aborted`. When rank 0 dies, the other ranks see their own connections break. */
#include "train/allreduce/shm.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "store/arena/segment.h"
#include "train/transport/host.h"
#include "train/transport/segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* number of polls before a thread sleeps: they take about as long as a wake-up */
#define SPINS 400u
#define OPEN_PAUSE (5 * MR_MS)
#define PAGE_BYTES 8192u
#define MARK_BITS 40u /* number of bits of a mark below the step number */

#define MARK_NONE (((uint64_t)1 << MARK_BITS) - 1)

/* What a rank has announced in a step: step << MARK_BITS | what. `what` is 0 if the rank's whole
 * gradient is final. It is 1 + low if the gradient is final from index `low` to the last trained
 * number. It is MARK_NONE if the gradient is final and the rank has no examples. */
struct mark {
    _Atomic uint64_t word;
    uint64_t unused[7];
};

struct page {
    _Atomic uint32_t arrived; /* number of barrier calls so far, summed over all ranks */
    uint32_t unused[15];
    /* number of barriers that all ranks have passed; ranks sleep on this word */
    _Atomic uint32_t phase;
    _Atomic uint32_t sleepers;
    _Atomic uint32_t is_aborted;
    uint32_t unused_too[13];
    _Atomic uint32_t announced; /* grows with each mark; ranks sleep on this word */
    _Atomic uint32_t readers;   /* number of ranks that sleep on `announced` */
    uint32_t unused_as_well[14];
    struct mark marks[MR_RANKS_MAX];
};

_Static_assert(sizeof(struct page) <= PAGE_BYTES, "the page holds a mark of each rank");

struct mr_shm_group {
    struct mr_transport_host host; /* used by rank 0 */
    char session[MR_SESSION_MAX];
    uint32_t generation, rank, ranks;
    uint64_t count, version;
    const struct mr_flag *stop; /* NULL: none */
    struct page *page;
    uint64_t bytes;
    int fd;     /* used by rank 0 */
    int socket; /* used by the other ranks: connected to rank 0 */
    bool is_served;
    /* ranks that have connected to rank 0; used only by the thread that serves the UNIX socket */
    bool is_here[MR_RANKS_MAX];
    /* number of barriers that this rank has entered; the first one opens the group */
    uint32_t phase;
};

/* Returns the bytes from one vector to the next: whole pages and some cache lines. So numbers at
 * the same place of different vectors do not fall into the same cache set. */
static uint64_t stride(uint64_t count)
{
    return (count * sizeof(float) + 4095) / 4096 * 4096 + 320;
}

float *mr_shm_group_params(struct mr_shm_group *n)
{
    return (float *)(void *)((char *)n->page + PAGE_BYTES);
}

float *mr_shm_group_grads(struct mr_shm_group *n, uint32_t rank)
{
    return (float *)(void *)((char *)n->page + PAGE_BYTES + stride(n->count) * (rank + 1));
}

/* Aborts the running step of all ranks. Any thread may call this function. */
static void abort_steps(struct mr_shm_group *n)
{
    atomic_store(&n->page->is_aborted, 1);
    mr_transport_wake(&n->page->phase);
    mr_transport_wake(&n->page->announced);
}

/* ---- rank 0 -----------------------------------------------------------------------------------*/

static int admit(struct mr_transport_host *host, const struct mr_transport_hello *h, int fd,
    struct mr_transport_admission *w, int fds[MR_TRANSPORT_FDS], struct mr_error *e)
{
    struct mr_shm_group *n = MR_CONTAINER_OF(host, struct mr_shm_group, host);
    if (fd >= 0) (void)close(fd);
    if (h->parts != n->ranks || h->count != n->count || h->version != n->version)
        return mr_fail(e, MR_EABORTED,
            "rank 0 has %u ranks, %" PRIu64 " numbers, version %" PRIu64
            "; rank %u has %u, %" PRIu64 ", %" PRIu64,
            n->ranks, n->count, n->version, h->from, h->parts, h->count, h->version);
    if (!h->from || h->from >= n->ranks || n->is_here[h->from])
        return mr_fail(e, MR_EABORTED, "rank %u is here already", h->from);
    n->is_here[h->from] = true;
    w->slot = h->from;
    w->buffers = 1;
    fds[0] = n->fd;
    return MR_OK;
}

static void gone(struct mr_transport_host *host, uint32_t slot)
{
    (void)slot;
    abort_steps(MR_CONTAINER_OF(host, struct mr_shm_group, host));
}

static int serve(struct mr_shm_group *n, struct mr_error *e)
{
    void *map = NULL;
    int err = mr_transport_make("millrace-reduce", n->bytes, false, &n->fd, &map, e);
    if (err) return err;
    n->page = map;
    n->host = (struct mr_transport_host){.session = n->session,
        .index = n->generation,
        .is_group = true,
        .admit = admit,
        .gone = gone};
    err = mr_transport_host_add(&n->host, e);
    n->is_served = !err;
    return err;
}

/* ---- the others -------------------------------------------------------------------------------*/

static int may_wait(
    const struct mr_shm_group *n, mr_time deadline, const char *what, struct mr_error *e)
{
    if (mr_transport_is_stopped(n->stop)) return mr_fail(e, MR_ECANCELED, "asked to stop");
    if (n->page && atomic_load(&n->page->is_aborted))
        return mr_fail(e, MR_EAWAY, "a rank of session \"%s\" is gone", n->session);
    if (n->socket >= 0 && mr_transport_is_hung_up(n->socket))
        return mr_fail(e, MR_EAWAY, "rank 0 of session \"%s\" is gone", n->session);
    if (mr_clock_now() >= deadline)
        return mr_fail(e, MR_ETIMEOUT, "session \"%s\": %s in time", n->session, what);
    return MR_OK;
}

static int join(struct mr_shm_group *n, const char *path, mr_time deadline, struct mr_error *e)
{
    struct mr_transport_hello h = {.kind = MR_TRANSPORT_RANK,
        .index = n->generation,
        .parts = n->ranks,
        .from = n->rank,
        .generation = n->generation,
        .count = n->count,
        .version = n->version};
    mr_transport_hello_fill(&h, n->session);
    struct mr_transport_admission w;
    int fds[MR_TRANSPORT_FDS];
    int err;
    while ((err = mr_transport_connect(path, &h, -1, deadline, &w, fds, &n->socket, e))) {
        if (err != MR_EAWAY && err != MR_ENOENT) return err;
        struct mr_error why;
        int end = may_wait(n, deadline, "rank 0 was not there", &why);
        if (end) return mr_fail(e, end, "%s", why.text);
        mr_clock_sleep(OPEN_PAUSE);
    }
    void *map = NULL;
    err = mr_transport_map(fds[0], n->bytes, true, &map, e);
    if (!err) n->page = map;
    for (int i = 0; i < MR_TRANSPORT_FDS; i++)
        if (fds[i] >= 0) (void)close(fds[i]);
    return err;
}

int mr_shm_group_open(const struct mr_reduce_options *o, mr_time deadline,
    struct mr_shm_group **out, struct mr_error *e)
{
    MR_AUTO(mr_shm_group_close) struct mr_shm_group *n = mr_alloc(sizeof *n);
    (void)snprintf(n->session, sizeof n->session, "%s", o->session);
    n->generation = o->generation;
    n->rank = o->rank;
    n->ranks = o->ranks;
    n->count = o->count;
    n->version = o->version;
    n->stop = o->stop;
    n->fd = n->socket = -1;
    n->bytes = PAGE_BYTES + stride(n->count) * ((uint64_t)n->ranks + 1);
    int err = n->rank ? join(n, o->places[0].socket, deadline, e) : serve(n, e);
    if (err) return err;
    *out = MR_STEAL(n);
    return MR_OK;
}

void mr_shm_group_close(struct mr_shm_group **shm)
{
    if (!*shm) return;
    struct mr_shm_group *n = MR_STEAL(*shm);
    if (n->is_served) mr_transport_host_remove(&n->host);
    if (n->page) abort_steps(n);
    if (n->socket >= 0) (void)close(n->socket);
    mr_segment_unmap(n->page, n->bytes);
    if (n->fd >= 0) (void)close(n->fd);
    mr_release(n);
}

/* ---- the barrier ------------------------------------------------------------------------------*/

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

static bool is_past(const struct mr_shm_group *n, uint32_t phase)
{
    return (int32_t)(atomic_load(&n->page->phase) - phase) >= 0;
}

static int barrier_wait(
    struct mr_shm_group *n, uint32_t phase, mr_time deadline, struct mr_error *e)
{
    for (uint32_t i = 0; i < SPINS; i++) {
        if (is_past(n, phase)) return MR_OK;
        relax();
    }
    (void)atomic_fetch_add(&n->page->sleepers, 1);
    int err = MR_OK;
    while (!is_past(n, phase) && !err) {
        err = may_wait(n, deadline, "not all ranks came", e);
        mr_time slice = mr_time_after(mr_clock_now(), MR_TRANSPORT_SLICE);
        if (!err) mr_transport_sleep(&n->page->phase, phase - 1, MR_MIN(deadline, slice));
    }
    (void)atomic_fetch_sub(&n->page->sleepers, 1);
    return is_past(n, phase) ? MR_OK : err;
}

int mr_shm_group_barrier(struct mr_shm_group *n, mr_time deadline, struct mr_error *e)
{
    uint32_t phase = ++n->phase;
    uint32_t arrived = atomic_fetch_add(&n->page->arrived, 1) + 1;
    if (arrived == n->ranks * phase) {
        atomic_store(&n->page->phase, phase);
        if (atomic_load(&n->page->sleepers)) mr_transport_wake(&n->page->phase);
        return MR_OK;
    }
    int err = barrier_wait(n, phase, deadline, e);
    if (err) abort_steps(n); /* makes the other ranks stop waiting, too */
    return err;
}

/* ---- gradients that are final -----------------------------------------------------------------*/

static void mark(struct mr_shm_group *n, uint64_t what)
{
    atomic_store(&n->page->marks[n->rank].word, (uint64_t)n->phase << MARK_BITS | what);
    (void)atomic_fetch_add(&n->page->announced, 1);
    if (atomic_load(&n->page->readers)) mr_transport_wake(&n->page->announced);
}

void mr_shm_group_announce(struct mr_shm_group *n, uint64_t low)
{
    mark(n, low + 1);
}

void mr_shm_group_announce_all(struct mr_shm_group *n)
{
    mark(n, 0);
}

void mr_shm_group_announce_none(struct mr_shm_group *n)
{
    mark(n, MARK_NONE);
}

uint32_t mr_shm_group_contributors(const struct mr_shm_group *n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->ranks; i++)
        count += (atomic_load(&n->page->marks[i].word) & MARK_NONE) != MARK_NONE;
    return count;
}

uint64_t mr_shm_group_final(const struct mr_shm_group *n, bool *all)
{
    uint64_t step = (uint64_t)n->phase << MARK_BITS;
    uint64_t low = 0;
    *all = true;
    for (uint32_t i = 0; i < n->ranks; i++) {
        uint64_t word = atomic_load(&n->page->marks[i].word);
        uint64_t what = word & MARK_NONE;
        bool is_now = (word ^ step) >> MARK_BITS == 0;
        if (is_now && (!what || what == MARK_NONE)) continue;
        *all = false;
        low = MR_MAX(low, is_now ? what - 1 : UINT64_MAX);
    }
    return low;
}

static bool goes_past(const struct mr_shm_group *n, uint64_t low)
{
    bool all = false;
    return mr_shm_group_final(n, &all) < low || all;
}

int mr_shm_group_await(struct mr_shm_group *n, uint64_t low, mr_time deadline, struct mr_error *e)
{
    for (uint32_t i = 0; i < SPINS; i++) {
        if (goes_past(n, low)) return MR_OK;
        relax();
    }
    (void)atomic_fetch_add(&n->page->readers, 1);
    int err = MR_OK;
    for (;;) {
        uint32_t seen = atomic_load(&n->page->announced);
        if (goes_past(n, low)) break;
        err = may_wait(n, deadline, "not all gradients came", e);
        if (err) break;
        mr_time slice = mr_time_after(mr_clock_now(), MR_TRANSPORT_SLICE);
        mr_transport_sleep(&n->page->announced, seen, MR_MIN(deadline, slice));
    }
    (void)atomic_fetch_sub(&n->page->readers, 1);
    if (err) abort_steps(n);
    return err;
}
