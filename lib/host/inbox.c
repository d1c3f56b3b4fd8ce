/* A bounded ring after Vyukov's queue ("Bounded MPMC queue", 1024cores.net). Each cell carries a
 * sequence number, which says whether a sender or the owner may use the cell. A sender claims a
 * cell by moving `tail`, copies its item, and passes the cell to the owner by raising the number.
 * The owner reads the item and passes the cell back to the senders for the next lap.
 *
 * Sleeping: the owner sets the bit ASLEEP of `sleep`, looks for items once more, and sleeps. A
 * sender fills a cell and then looks at the bit. If the bit is set, the sender clears the bit, adds
 * WAKER to `sleep`, wakes the owner, and subtracts WAKER. So the owner can tell when no sender is
 * inside a wake any more. The accesses of both sides are sequentially consistent: the owner sees
 * the item or the sender sees the bit. There are no fences, because ThreadSanitizer does not
 * understand them. Senders that wait for room raise `room_wanted` and then try once more; the owner
 * makes room and then reads `room_wanted`. */
#include "host/inbox.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE 64
#define ASLEEP 1u
#define WAKER 2u
/* How long an eager wait polls before it sleeps; a wait up to this length is a short wait. */
#define LOOK (400 * MR_US)
#define SHORT_WAITS 3       /* an eager wait polls if `short_waits` is at least this number */
#define SHORT_WAITS_MAX 8   /* `short_waits` does not grow beyond this number */
#define CROWD (200 * MR_US) /* a sched_yield that took longer has let another thread run */
#define CROWDED (20 * MR_MS)

struct cell {
    /* p is the value of `tail` or `head` at which the cell is used next. Equals p: a sender may
     * fill the cell. Equals p + 1: the cell holds an item for the owner. */
    _Atomic uint32_t turn;
};

struct mr_inbox {
    struct cell *cells;
    unsigned char *items;
    size_t item_bytes;
    uint32_t mask;
    struct mr_waiter waiter;
    bool has_waiter;
    alignas(LINE) _Atomic uint32_t tail; /* position of the next cell that a sender claims */
    /* Position of the next cell that the owner reads; used by the owner only. */
    alignas(LINE) uint32_t head;
    uint32_t short_waits;  /* grows with a short wait, shrinks with a long one; used by the owner
                            * only */
    mr_time crowded_until; /* the owner does not poll before this time; used by the owner only */
    /* The bit ASLEEP, plus WAKER for each sender that is inside a wake. */
    alignas(LINE) _Atomic uint32_t sleep;
    /* 1: mr_inbox_wake was called, and no wait has returned since. */
    _Atomic uint32_t woken;
    _Atomic uint32_t room_wanted; /* number of senders that wait for room */
    /* Grows each time the owner has made room for waiting senders. */
    _Atomic uint32_t room_turns;
    _Atomic bool closed;
};

/* Sleeps while `*word` is `expected`, until a wake or until `deadline` (CLOCK_MONOTONIC) has
 * passed. May return early. */
static void futex_wait(_Atomic uint32_t *word, uint32_t expected, mr_time deadline)
{
    struct timespec at = {(time_t)(deadline / MR_SECOND), (long)(deadline % MR_SECOND)};
    long r = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
        deadline == MR_NEVER ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY);
    mr_assert(r == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

struct mr_inbox *mr_inbox_new(uint32_t count_max, size_t item_bytes)
{
    mr_assert(count_max >= 1);
    mr_assert(count_max <= 1u << 30);
    mr_assert(item_bytes >= 1);
    uint32_t count = 2;
    while (count < count_max)
        count *= 2;
    struct mr_inbox *in = mr_alloc_aligned(sizeof *in, LINE);
    in->cells = mr_alloc_array(count, sizeof *in->cells);
    in->items = mr_alloc_array(count, item_bytes);
    in->item_bytes = item_bytes;
    in->mask = count - 1;
    for (uint32_t i = 0; i < count; i++)
        atomic_init(&in->cells[i].turn, i);
    return in;
}

void mr_inbox_free(struct mr_inbox **inbox)
{
    if (!*inbox) return;
    struct mr_inbox *in = MR_STEAL(*inbox);
    mr_release(in->cells);
    mr_release(in->items);
    mr_release(in);
}

void mr_inbox_set_waiter(struct mr_inbox *in, struct mr_waiter waiter)
{
    mr_assert(waiter.wait);
    mr_assert(waiter.wake);
    in->waiter = waiter;
    in->has_waiter = true;
}

void mr_inbox_clear_waiter(struct mr_inbox *in)
{
    atomic_fetch_and(&in->sleep, ~ASLEEP);
    while (atomic_load(&in->sleep))
        (void)sched_yield();
    in->has_waiter = false;
}

void mr_inbox_notify(struct mr_inbox *in)
{
    uint32_t word = atomic_load(&in->sleep);
    do {
        if (!(word & ASLEEP)) return; /* the owner is awake, or another sender is waking it */
    } while (!atomic_compare_exchange_weak(&in->sleep, &word, word - ASLEEP + WAKER));
    if (in->has_waiter)
        in->waiter.wake(in->waiter.ctx);
    else
        futex_wake(&in->sleep, 1);
    atomic_fetch_sub(&in->sleep, WAKER);
}

int mr_inbox_push_quiet(struct mr_inbox *in, const void *item)
{
    if (atomic_load_explicit(&in->closed, memory_order_relaxed)) return MR_ESTATE;
    uint32_t at = atomic_load_explicit(&in->tail, memory_order_relaxed);
    struct cell *cell;
    for (;;) {
        cell = &in->cells[at & in->mask];
        uint32_t turn = atomic_load(&cell->turn);
        int32_t ahead = (int32_t)(turn - at);
        if (ahead < 0) return MR_ELIMIT;
        if (ahead > 0) {
            at = atomic_load_explicit(&in->tail, memory_order_relaxed);
            continue;
        }
        if (atomic_compare_exchange_weak_explicit(
                &in->tail, &at, at + 1, memory_order_relaxed, memory_order_relaxed))
            break;
    }
    memcpy(in->items + (size_t)(at & in->mask) * in->item_bytes, item, in->item_bytes);
    atomic_store(&cell->turn, at + 1);
    return MR_OK;
}

int mr_inbox_push(struct mr_inbox *in, const void *item)
{
    int err = mr_inbox_push_quiet(in, item);
    if (!err) mr_inbox_notify(in);
    return err;
}

int mr_inbox_push_wait(struct mr_inbox *in, const void *item, mr_time deadline)
{
    int err = mr_inbox_push(in, item);
    if (err != MR_ELIMIT) return err;
    atomic_fetch_add(&in->room_wanted, 1);
    for (;;) {
        uint32_t turns = atomic_load(&in->room_turns);
        err = mr_inbox_push(in, item);
        if (err != MR_ELIMIT) break;
        /* The owner may be asleep although the ring is full: quiet pushes do not wake it. */
        mr_inbox_notify(in);
        if (mr_clock_now() >= deadline) {
            err = MR_ETIMEOUT;
            break;
        }
        futex_wait(&in->room_turns, turns, deadline);
    }
    atomic_fetch_sub(&in->room_wanted, 1);
    return err;
}

static bool is_full_at_head(const struct mr_inbox *in)
{
    const struct cell *cell = &in->cells[in->head & in->mask];
    return atomic_load(&cell->turn) == in->head + 1;
}

size_t mr_inbox_take(struct mr_inbox *in, void *items, size_t count_max)
{
    size_t n = 0;
    while (n < count_max && is_full_at_head(in)) {
        uint32_t slot = in->head & in->mask;
        memcpy((unsigned char *)items + n * in->item_bytes,
            in->items + (size_t)slot * in->item_bytes, in->item_bytes);
        atomic_store(&in->cells[slot].turn, in->head + in->mask + 1);
        in->head++;
        n++;
    }
    if (!n) return 0;
    if (atomic_load(&in->room_wanted)) {
        atomic_fetch_add(&in->room_turns, 1);
        futex_wake(&in->room_turns, INT32_MAX);
    }
    return n;
}

/* True: the owner has a reason not to sleep. Called after the bit ASLEEP has been set. */
static bool has_news(struct mr_inbox *in)
{
    return is_full_at_head(in) || atomic_load(&in->woken) || atomic_load(&in->closed);
}

static size_t wait_outside(struct mr_inbox *in, mr_time deadline, void *items, size_t count_max)
{
    atomic_fetch_or(&in->sleep, ASLEEP);
    bool news = has_news(in);
    in->waiter.wait(in->waiter.ctx, news ? 0 : deadline);
    atomic_fetch_and(&in->sleep, ~ASLEEP);
    atomic_store(&in->woken, 0);
    return mr_inbox_take(in, items, count_max);
}

size_t mr_inbox_wait(struct mr_inbox *in, mr_time deadline, void *items, size_t count_max)
{
    if (in->has_waiter) return wait_outside(in, deadline, items, count_max);
    for (;;) {
        size_t n = mr_inbox_take(in, items, count_max);
        if (n || atomic_exchange(&in->woken, 0) || atomic_load(&in->closed)) return n;
        if (deadline != MR_NEVER && mr_clock_now() >= deadline) return 0;
        uint32_t word = atomic_fetch_or(&in->sleep, ASLEEP) | ASLEEP;
        if (!has_news(in)) futex_wait(&in->sleep, word, deadline);
        atomic_fetch_and(&in->sleep, ~ASLEEP);
    }
}

/* Polls until an item comes, the inbox is woken or closed, or the time LOOK is over. Returns the
 * number of items taken. */
static size_t look(struct mr_inbox *in, mr_time begun, void *items, size_t count_max)
{
    for (mr_time now = begun; now - begun < LOOK;) {
        size_t n = mr_inbox_take(in, items, count_max);
        if (n || atomic_load(&in->woken) || atomic_load(&in->closed)) return n;
        (void)sched_yield();
        mr_time after = mr_clock_now();
        if (after - now > CROWD) {
            in->crowded_until = after + CROWDED;
            return 0;
        }
        now = after;
    }
    return 0;
}

size_t mr_inbox_wait_eager(struct mr_inbox *in, void *items, size_t count_max)
{
    mr_assert(!in->has_waiter);
    size_t n = mr_inbox_take(in, items, count_max);
    if (n) return n;
    mr_time begun = mr_clock_now();
    if (in->short_waits >= SHORT_WAITS && begun >= in->crowded_until)
        n = look(in, begun, items, count_max);
    if (!n) n = mr_inbox_wait(in, MR_NEVER, items, count_max);
    bool was_short = mr_clock_now() - begun <= LOOK;
    if (was_short)
        in->short_waits = MR_MIN(in->short_waits + 1, (uint32_t)SHORT_WAITS_MAX);
    else
        /* One long wait among many short ones does not end the polling. */
        in->short_waits -= in->short_waits > 0;
    return n;
}

void mr_inbox_wake(struct mr_inbox *in)
{
    atomic_store(&in->woken, 1);
    mr_inbox_notify(in);
}

void mr_inbox_close(struct mr_inbox *in)
{
    atomic_store(&in->closed, true);
    mr_inbox_notify(in);
    atomic_fetch_add(&in->room_turns, 1);
    futex_wake(&in->room_turns, INT32_MAX);
}

bool mr_inbox_is_closed(const struct mr_inbox *in)
{
    return atomic_load(&in->closed);
}

bool mr_inbox_is_empty(const struct mr_inbox *in)
{
    return !is_full_at_head(in);
}
