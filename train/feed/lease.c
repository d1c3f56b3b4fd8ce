/* Decides when to take items from the queue and when to acknowledge them. Few items are taken
 * ahead, because other workers need items, too. Leases are short, so that the items of a dead
 * worker are soon delivered again. */
#include "train/feed/lease.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/flag.h"
#include "host/inbox.h"
#include "host/os/log.h"
#include "host/thread.h"
#include "millrace/v1/queues.pb-c.h"
#include "train/feed/rpc.h"

#include <stdatomic.h>
#include <stdio.h>

#define AHEAD 2u /* limit of items that are taken ahead of their use */
/* limit of the messages from the user (struct answer) that the taker's thread handles at once */
#define ANSWERS_MAX 64
#define TAKE_WAIT_S 0.2
/* limit of the wait in Take while items are held: answers for these items are sent only after the
 * wait */
#define TAKE_WAIT_SHORT_S 0.02
#define LEASE_MIN (5 * MR_SECOND)
#define LEASE_MAX (600 * MR_SECOND)
/* A lease lasts LEASE_BATCHES batches, plus the time to use LEASE_ITEMS items of the largest size:
 * the items that are taken ahead, the item in use, and the item before it. */
#define LEASE_BATCHES 30u
#define LEASE_ITEMS (AHEAD + 2)
#define CALL_TIMEOUT (5 * MR_SECOND)
/* Limits of the time in which mr_taker_stop sends the last answers for items. The second limit is
 * for a cancelled task, which has to end soon. */
#define STOP_MAX MR_SECOND
#define STOP_CANCELLED (300 * MR_MS)
#define RETRY (100 * MR_MS)
#define STATE_EVERY (100 * MR_MS)
#define ANSWER_BYTES_MAX ((size_t)64 << 20)

enum end { DONE = MR_TAKEN_DONE, BACK = MR_TAKEN_BACK, DEAD = MR_TAKEN_DEAD, IN_USE };

struct answer { /* a message from the taker's user to the taker's thread */
    char receipt[sizeof((struct mr_taken *)0)->receipt];
    enum end end; /* IN_USE: the user has begun to use the item; this is no answer yet */
    char reason[256];
};

struct mr_taker {
    const char *trainer, *queue;
    const struct mr_credential *credential;
    struct mr_thread *thread;
    struct mr_inbox *in;  /* items are struct mr_taken */
    struct mr_inbox *out; /* items are struct answer */
    struct mr_flag stop;
    _Atomic int state;
    _Atomic uint64_t lease;
    _Atomic uint64_t until; /* deadline for the last answers; 0: the taker is not stopping */

    /* members that only the thread uses: */
    struct mr_role_link *link;
    struct mr_pb_arena arena;
    uint32_t held;  /* number of items that were taken and not answered */
    uint32_t ahead; /* number of held items that are not in use yet */
    mr_time retry_at, state_at;
};

/* ---- the thread ------------------------------------------------------------------------------ */

static bool is_stopped(void *ctx)
{
    struct mr_taker *t = ctx;
    return mr_flag_is_set(&t->stop);
}

/* True: the worker's time to acknowledge its leases or to give them back is over. What the worker
 * has neither acknowledged nor given back returns to the queue when the lease expires. */
static bool is_late(void *ctx)
{
    struct mr_taker *t = ctx;
    mr_time until = atomic_load(&t->until);
    return until && mr_clock_now() >= until;
}

static char *queue_of(const struct mr_taker *t)
{
    return mr_unconst(t->queue); /* protobuf-c has no texts that are const */
}

static int create(struct mr_taker *t, struct mr_error *e)
{
    Millrace__V1__CreateQueueRequest r = MILLRACE__V1__CREATE_QUEUE_REQUEST__INIT;
    r.queue = queue_of(t);
    const struct mr_stop stop = {is_stopped, t};
    return mr_role_call(
        t->link, "/millrace.v1.Queues/Create", &r.base, CALL_TIMEOUT, stop, NULL, NULL, NULL, e);
}

/* Asks for the state of the queue, because Take has returned no item. */
static void look(struct mr_taker *t)
{
    mr_time now = mr_clock_now();
    if (now < t->state_at) return;
    t->state_at = mr_time_after(now, STATE_EVERY);
    Millrace__V1__GetQueueRequest r = MILLRACE__V1__GET_QUEUE_REQUEST__INIT;
    const Millrace__V1__Queue *q = NULL;
    const struct mr_stop stop = {is_stopped, t};
    struct mr_error e;
    r.queue = queue_of(t);
    int err = mr_role_call(t->link, "/millrace.v1.Queues/Get", &r.base, CALL_TIMEOUT, stop,
        &millrace__v1__queue__descriptor, &t->arena, &q, &e);
    if (err || !q) return;
    enum mr_taker_state s = MR_TAKER_GOES_ON;
    if (!q->waiting && q->items_max && q->leased >= q->items_max) s = MR_TAKER_FULL;
    if (!q->waiting && q->closed) s = MR_TAKER_LAST;
    atomic_store(&t->state, s);
}

static void take(struct mr_taker *t)
{
    Millrace__V1__TakeItemsRequest r = MILLRACE__V1__TAKE_ITEMS_REQUEST__INIT;
    const Millrace__V1__TakeItemsResponse *got = NULL;
    const struct mr_stop stop = {is_stopped, t};
    struct mr_error e;
    r.queue = queue_of(t);
    r.items_max = MR_MIN(AHEAD - t->ahead, MR_TAKER_OUT_MAX - t->held);
    r.wait_s = t->held ? TAKE_WAIT_SHORT_S : TAKE_WAIT_S;
    r.lease_s = (double)atomic_load(&t->lease) / 1e9;
    int err = mr_role_call(t->link, "/millrace.v1.Queues/Take", &r.base, CALL_TIMEOUT, stop,
        &millrace__v1__take_items_response__descriptor, &t->arena, &got, &e);
    if (err == MR_ENOENT) err = create(t, &e);
    if (err || !got) {
        t->retry_at = mr_time_after(mr_clock_now(), err ? RETRY : 0);
        return;
    }
    /* surplus items, if the trainer sends any, return to the queue when their lease expires */
    for (size_t i = 0; i < MR_MIN(got->n_items, (size_t)r.items_max); i++) {
        const Millrace__V1__QueueItem *q = got->items[i];
        struct mr_taken item = {0};
        (void)snprintf(item.receipt, sizeof item.receipt, "%s", q->receipt);
        (void)mr_object_id_parse(mr_str(q->object), &item.object);
        atomic_store(&t->state, MR_TAKER_GOES_ON);
        int pushed = mr_inbox_push(t->in, &item);
        mr_assert(!pushed); /* the inbox has room for all items that are taken ahead */
        t->held++;
        t->ahead++;
    }
    if (got->n_items) return;
    if (got->closed)
        atomic_store(&t->state, MR_TAKER_OVER);
    else
        look(t);
}

static void nack(struct mr_taker *t, const struct answer *a)
{
    char *receipts[1] = {mr_unconst(a->receipt)};
    Millrace__V1__NackItemsRequest r = MILLRACE__V1__NACK_ITEMS_REQUEST__INIT;
    const struct mr_stop late = {is_late, t};
    struct mr_error e;
    r.queue = queue_of(t);
    r.receipts = receipts;
    r.n_receipts = 1;
    r.dead = a->end == DEAD;
    r.reason = mr_unconst(a->reason);
    if (mr_role_call(
            t->link, "/millrace.v1.Queues/Nack", &r.base, CALL_TIMEOUT, late, NULL, NULL, NULL, &e))
        mr_log(MR_WARN, "queue.answer_lost", "queue=\"%s\" why=\"%s\"", t->queue, e.text);
}

static void ack(struct mr_taker *t, char **receipts, size_t n)
{
    Millrace__V1__AckItemsRequest r = MILLRACE__V1__ACK_ITEMS_REQUEST__INIT;
    const struct mr_stop late = {is_late, t};
    struct mr_error e;
    r.queue = queue_of(t);
    r.receipts = receipts;
    r.n_receipts = n;
    if (n && mr_role_call(t->link, "/millrace.v1.Queues/Ack", &r.base, CALL_TIMEOUT, late, NULL,
                 NULL, NULL, &e))
        mr_log(
            MR_WARN, "queue.answer_lost", "queue=\"%s\" items=%zu why=\"%s\"", t->queue, n, e.text);
}

static void answer(struct mr_taker *t, struct answer *a, size_t n)
{
    char *receipts[ANSWERS_MAX];
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        t->ahead -= a[i].end == IN_USE;
        t->held -= a[i].end != IN_USE;
        if (is_late(t)) continue;
        if (a[i].end == DONE) receipts[done++] = a[i].receipt;
        if (a[i].end == BACK || a[i].end == DEAD) nack(t, &a[i]);
    }
    if (done && !is_late(t)) ack(t, receipts, done);
}

static bool may_take(const struct mr_taker *t, mr_time now)
{
    return !mr_flag_is_set(&t->stop) && atomic_load(&t->state) != MR_TAKER_OVER &&
           t->ahead < AHEAD && t->held < MR_TAKER_OUT_MAX && now >= t->retry_at;
}

static void taker_main(void *ctx)
{
    struct mr_taker *t = ctx;
    struct answer *a = mr_alloc_array(ANSWERS_MAX, sizeof *a);
    t->link = mr_role_link_open(t->trainer, t->credential);
    mr_pb_arena_init(&t->arena, ANSWER_BYTES_MAX);
    for (;;) {
        size_t n = mr_inbox_take(t->out, a, ANSWERS_MAX);
        mr_time now = mr_clock_now();
        if (n) {
            answer(t, a, n);
        } else if (mr_inbox_is_closed(t->out)) {
            break;
        } else if (may_take(t, now)) {
            take(t);
        } else {
            n = mr_inbox_wait(t->out, mr_time_after(now, RETRY), a, ANSWERS_MAX);
            answer(t, a, n);
        }
    }
    mr_pb_arena_fini(&t->arena);
    mr_role_link_close(&t->link);
    mr_release(a);
}

/* ---- its user -------------------------------------------------------------------------------- */

struct mr_taker *mr_taker_start(
    const char *trainer, const struct mr_credential *credential, const char *queue)
{
    struct mr_taker *t = mr_alloc(sizeof *t);
    t->trainer = trainer;
    t->credential = credential;
    t->queue = queue;
    atomic_init(&t->lease, LEASE_MIN);
    t->in = mr_inbox_new(2 * AHEAD, sizeof(struct mr_taken));
    t->out = mr_inbox_new(2 * MR_TAKER_OUT_MAX, sizeof(struct answer));
    t->thread = mr_thread_start("queue-feed", taker_main, t);
    return t;
}

static void say(struct mr_taker *t, const struct answer *a)
{
    (void)mr_inbox_push_wait(t->out, a, mr_time_after(mr_clock_now(), STOP_MAX));
}

void mr_taker_stop(struct mr_taker **taker, struct mr_stop cancelled)
{
    if (!*taker) return;
    struct mr_taker *t = MR_STEAL(*taker);
    struct mr_taken item;
    mr_flag_set(&t->stop, true);
    mr_duration most = mr_stop_is_set(cancelled) ? STOP_CANCELLED : STOP_MAX;
    atomic_store(&t->until, mr_time_after(mr_clock_now(), most));
    while (mr_inbox_take(t->in, &item, 1))
        mr_taker_answer(t, &item, MR_TAKEN_BACK, NULL);
    mr_inbox_close(t->out);
    mr_thread_join(&t->thread);
    mr_inbox_free(&t->in);
    mr_inbox_free(&t->out);
    mr_release(t);
}

bool mr_taker_next(struct mr_taker *t, mr_time deadline, struct mr_taken *out)
{
    static const struct answer in_use = {.end = IN_USE};
    if (!mr_inbox_wait(t->in, deadline, out, 1)) return false;
    say(t, &in_use);
    return true;
}

enum mr_taker_state mr_taker_state(const struct mr_taker *t)
{
    return (enum mr_taker_state)atomic_load(&t->state);
}

void mr_taker_answer(
    struct mr_taker *t, const struct mr_taken *item, enum mr_taken_end end, const char *reason)
{
    struct answer a = {.end = (enum end)end};
    memcpy(a.receipt, item->receipt, sizeof a.receipt);
    if (reason) (void)snprintf(a.reason, sizeof a.reason, "%s", reason);
    say(t, &a);
}

void mr_taker_set_pace(struct mr_taker *t, mr_duration batch, uint64_t item_batches)
{
    uint64_t batches = LEASE_BATCHES + LEASE_ITEMS * MR_MIN(item_batches, UINT32_MAX);
    mr_duration lease = batch < LEASE_MAX / batches ? batch * batches : LEASE_MAX;
    atomic_store(&t->lease, MR_MIN(MR_MAX(lease, LEASE_MIN), LEASE_MAX));
}
