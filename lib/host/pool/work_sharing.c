/* A stealer is a thread that runs blocks of another thread, the owner of the work (work_sharing.h).
 * A slot's state is one word: the number of blocks that have not begun, and the number of stealers
 * inside. A thread claims a block, and a stealer enters, by an atomic change of this word; so no
 * stealer enters when no block is left. The owner waits until no stealer is inside; until then
 * stealers may read the slot's `work`. Idle threads wait as at an eventcount: a thread sets `idle`
 * and then reads the epoch, an owner adds to the epoch and then reads `idle`; one of the two sees
 * the other's change. */
#include "host/pool/work_sharing.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/inbox.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 64
/* While a stealer is inside, the owner waits: the owner polls for this long and then sleeps. */
#define LOOK (200 * MR_US)
#define LEFT ((uint64_t)1 << 32)
#define ASLEEP ((uint64_t)1 << 31) /* bit of `state`: the owner sleeps */
#define INSIDE (ASLEEP - 1)        /* bits of `state`: the number of stealers inside */
#define NO_ERROR UINT64_MAX

struct slot {
    alignas(LINE) _Atomic uint64_t state; /* blocks left << 32 | ASLEEP | stealers inside */
    /* Bit set of taken lanes. A lane is the number of a thread in this piece of work. */
    _Atomic uint32_t lanes;
    /* Futex word: grows when the last stealer leaves while the owner sleeps. */
    _Atomic uint32_t woken;
    /* Block << 32 | -err of the failed block with the lowest number. */
    _Atomic uint64_t error;
    _Atomic bool stopped;
    _Atomic uint64_t stolen_cpu;
    struct mr_blocks work;
    alignas(LINE) _Atomic bool idle; /* the slot's thread waits for work */
    struct mr_inbox *inbox;          /* the slot's inbox; protected by the lock */
};

struct mr_work_sharing {
    pthread_mutex_t lock;
    uint32_t slots_count;
    alignas(LINE) _Atomic uint32_t epoch;
    alignas(LINE) _Atomic uint32_t idle_count;
    struct slot slots[];
};

struct mr_work_sharing *mr_work_sharing_new(uint32_t slots)
{
    mr_assert(slots);
    struct mr_work_sharing *h = mr_alloc_aligned(sizeof *h + slots * sizeof *h->slots, LINE);
    h->slots_count = slots;
    (void)pthread_mutex_init(&h->lock, NULL);
    return h;
}

void mr_work_sharing_free(struct mr_work_sharing **helpers)
{
    struct mr_work_sharing *h = *helpers;
    *helpers = NULL;
    if (!h) return;
    (void)pthread_mutex_destroy(&h->lock);
    mr_release(h);
}

void mr_work_sharing_enter(struct mr_work_sharing *h, uint32_t slot, struct mr_inbox *inbox)
{
    mr_assert(slot < h->slots_count);
    (void)pthread_mutex_lock(&h->lock);
    h->slots[slot].inbox = inbox;
    (void)pthread_mutex_unlock(&h->lock);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool claim(struct slot *p, uint32_t *block)
{
    uint64_t s = atomic_load(&p->state);
    do {
        if (s < LEFT) return false;
    } while (!atomic_compare_exchange_weak(&p->state, &s, s - LEFT));
    *block = p->work.count - (uint32_t)(s / LEFT);
    return true;
}

/* Ends the work: no block begins any more. */
static void give_up(struct slot *p)
{
    atomic_fetch_and(&p->state, LEFT - 1);
}

static void failed(struct slot *p, uint32_t block, int err)
{
    uint64_t mine = (uint64_t)block << 32 | (uint32_t)-err;
    uint64_t least = atomic_load(&p->error);
    while (mine < least && !atomic_compare_exchange_weak(&p->error, &least, mine))
        ;
    give_up(p);
}

/* Runs blocks until none is left or `is_wanted` returns true. True: at least one block has run.
 * Blocks are claimed in order, so when a block fails, all blocks before it have been claimed. The
 * failed block with the lowest number therefore does not depend on the threads. */
static bool work(struct slot *p, uint32_t lane, bool (*is_wanted)(void *ctx), void *ctx)
{
    const struct mr_blocks *w = &p->work;
    uint32_t block;
    bool any = false;
    while (!(is_wanted && is_wanted(ctx)) && claim(p, &block)) {
        if (w->is_stopped && w->is_stopped(w->ctx)) {
            atomic_store(&p->stopped, true);
            give_up(p);
            break;
        }
        int err = w->run(w->ctx, block, lane);
        any = true;
        if (err) failed(p, block, err);
    }
    return any;
}

/* ---- the owner ------------------------------------------------------------------------------- */

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    long r = syscall(SYS_futex, word, op, value, NULL, NULL, 0);
    mr_assert(r >= 0 || errno == EAGAIN || errno == EINTR);
}

static void wait_until_alone(struct slot *p)
{
    mr_time until = mr_time_after(mr_clock_now(), LOOK);
    while (mr_clock_now() < until) {
        if (!(atomic_load(&p->state) & INSIDE)) return;
        (void)sched_yield();
    }
    for (;;) {
        uint32_t turn = atomic_load(&p->woken);
        if (!(atomic_fetch_or(&p->state, ASLEEP) & INSIDE)) return;
        futex(&p->woken, FUTEX_WAIT_PRIVATE, turn);
    }
}

static mr_duration wait_for_stealers(struct slot *p)
{
    if (!(atomic_load(&p->state) & INSIDE)) return 0;
    mr_duration cpu = mr_clock_thread_cpu();
    wait_until_alone(p);
    return mr_clock_thread_cpu() - cpu;
}

/* Wakes at most `wanted` idle threads, because more threads would find no block. */
static void wake_idle(struct mr_work_sharing *h, uint32_t wanted)
{
    if (!atomic_load(&h->idle_count)) return;
    for (uint32_t i = 0; i < h->slots_count && wanted; i++) {
        struct slot *p = &h->slots[i];
        if (!atomic_load(&p->idle)) continue;
        wanted--;
        (void)pthread_mutex_lock(&h->lock);
        if (p->inbox) mr_inbox_wake(p->inbox);
        (void)pthread_mutex_unlock(&h->lock);
    }
}

static struct mr_blocks_end end_of(struct slot *p)
{
    uint64_t error = atomic_load(&p->error);
    struct mr_blocks_end e = {
        .stopped = atomic_load(&p->stopped), .stolen_cpu = atomic_load(&p->stolen_cpu)};
    if (error == NO_ERROR) return e;
    e.err = -(int)(uint32_t)error;
    e.failed = (uint32_t)(error >> 32);
    return e;
}

static void prepare(struct slot *p, const struct mr_blocks *w)
{
    mr_assert(w->lanes >= 1);
    mr_assert(w->lanes <= MR_LANES_MAX);
    p->work = *w;
    atomic_store(&p->lanes, 1); /* only lane 0, the owner's lane, is taken */
    atomic_store(&p->error, NO_ERROR);
    atomic_store(&p->stopped, false);
    atomic_store(&p->stolen_cpu, 0);
    atomic_store(&p->state, (uint64_t)w->count * LEFT); /* from here on stealers may enter */
}

struct mr_blocks_end mr_blocks_alone(const struct mr_blocks *w)
{
    struct slot here = {0};
    prepare(&here, w);
    (void)work(&here, 0, NULL, NULL);
    return end_of(&here);
}

struct mr_blocks_end mr_work_sharing_run(
    struct mr_work_sharing *h, uint32_t slot, const struct mr_blocks *w)
{
    mr_assert(slot < h->slots_count);
    if (w->lanes < 2 || w->count < 2) return mr_blocks_alone(w);
    struct slot *p = &h->slots[slot];
    mr_assert(!atomic_load(&p->state));
    prepare(p, w);
    atomic_fetch_add(&h->epoch, 1);
    wake_idle(h, MR_MIN(w->count, w->lanes) - 1);
    (void)work(p, 0, NULL, NULL);
    mr_duration waited = wait_for_stealers(p);
    atomic_store(&p->state, 0); /* no stealer can enter, because no block is left */
    struct mr_blocks_end e = end_of(p);
    e.waited_cpu = waited;
    return e;
}

/* ---- stealers -------------------------------------------------------------------------------- */

static bool enter_work(struct slot *p)
{
    uint64_t s = atomic_load(&p->state);
    do {
        if (s < LEFT) return false;
    } while (!atomic_compare_exchange_weak(&p->state, &s, s + 1));
    return true;
}

static void leave(struct slot *p)
{
    uint64_t s = atomic_fetch_sub(&p->state, 1);
    if ((s & INSIDE) != 1 || !(s & ASLEEP)) return;
    atomic_fetch_add(&p->woken, 1); /* `p` still exists, because slots live as long as the group */
    futex(&p->woken, FUTEX_WAKE_PRIVATE, 1);
}

/* Takes a lane that no other thread has. Returns 0 if no lane is free, since lane 0 belongs to the
 * owner. */
static uint32_t lane_take(struct slot *p)
{
    uint32_t all = (uint32_t)(((uint64_t)1 << p->work.lanes) - 1);
    uint32_t taken = atomic_load(&p->lanes), lane;
    do {
        uint32_t free = all & ~taken;
        if (!free) return 0;
        lane = (uint32_t)__builtin_ctz(free);
    } while (!atomic_compare_exchange_weak(&p->lanes, &taken, taken | 1u << lane));
    return lane;
}

static bool steal_from(struct slot *p, bool (*is_wanted)(void *ctx), void *ctx)
{
    if (!enter_work(p)) return false;
    bool any = false;
    uint32_t lane = lane_take(p);
    if (lane) {
        mr_duration cpu = mr_clock_thread_cpu();
        any = work(p, lane, is_wanted, ctx);
        atomic_fetch_add(&p->stolen_cpu, mr_clock_thread_cpu() - cpu);
        atomic_fetch_and(&p->lanes, ~(1u << lane));
    }
    leave(p);
    return any;
}

bool mr_work_sharing_steal(
    struct mr_work_sharing *h, uint32_t slot, bool (*is_wanted)(void *ctx), void *ctx)
{
    bool any = false;
    for (uint32_t i = 1; i < h->slots_count && !is_wanted(ctx); i++)
        any = steal_from(&h->slots[(slot + i) % h->slots_count], is_wanted, ctx) || any;
    return any;
}

uint32_t mr_work_sharing_epoch(const struct mr_work_sharing *h)
{
    return atomic_load(&h->epoch);
}

void mr_work_sharing_idle(struct mr_work_sharing *h, uint32_t slot, bool on)
{
    if (atomic_exchange(&h->slots[slot].idle, on) == on) return;
    if (on)
        atomic_fetch_add(&h->idle_count, 1);
    else
        atomic_fetch_sub(&h->idle_count, 1);
}
