/* Calls the Lua scripts of queues and decodes their answers.
 *
 * The keys of a queue q:
 * - q:h, hash: max, deliveries, closed, seq, lease, acked.
 * - q:i, hash: item id -> kind, number, ':' and value.
 * - q:w, sorted set: waiting items by number.
 * - q:l, sorted set: leased items by the ms at which the lease ends.
 * - q:r, hash: item id -> lease number.
 * - q:d, hash: item id -> deliveries.
 * - q:p, sorted set: ids of the items that were put last, by number.
 * - q:x, list: dead items.
 *
 * A receipt is "<lease number>-<item id>". The time when a queue was made, in microseconds, is the
 * start of its lease numbers. So a receipt of a deleted queue is not valid in a later queue of the
 * same name. The items of a deleted queue are moved to another key, and a list has the names of all
 * such keys. Each call of mr_queue_released examines a few of these items and drops them. */
#include "store/meta/stream/queue.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"
#include "store/meta/scripts.h"

#include <inttypes.h>
#include <stdio.h>

#define KEY_BYTES_MAX 512
#define ARGS_MAX 1024

#define QUEUES_MAX "10000"
#define ITEMS_DEFAULT "64" /* items_max of a new queue if the caller gives 0 */
#define DELIVERIES_DEFAULT "5"
#define DEAD_MAX "1000" /* dead items that one queue keeps */
#define DEAD_SHOWN "100"
#define EXPIRED_MAX "200" /* expired leases that one call ends */
/* The ids of this many items that were put last are remembered, so that none of these items is put
 * again. */
#define IDS_REMEMBERED "10000"
#define PAGE_BYTES_MAX "4194304" /* a take that has this many bytes leases no further item */
/* One call of mr_queue_released examines at most this many items of deleted queues. */
#define RELEASED_ITEMS_MAX "200"
#define RELEASED_NAMES_MAX "64"

enum wanted { WANT_PUT, WANT_ITEMS, WANT_KNOWN, WANT_FACTS, WANT_LIST, WANT_WORD, WANT_NAMES };

struct ask {
    enum wanted wanted;
    mr_queue_fn fn;
    void *ctx;
};

/* ---- answers --------------------------------------------------------------------------------- */

void mr_queue_answer_free(struct mr_queue_answer **ap)
{
    struct mr_queue_answer *a = MR_STEAL(*ap);
    if (!a) return;
    if (a->reply) mr_reply_free(&a->reply);
    mr_release(a->items);
    mr_release(a->queues);
    mr_release(a->dead);
    mr_release(a->names);
    mr_release(a);
}

/* Returns the number that a reply holds as an integer or as a text. */
static uint64_t number_of(const struct mr_reply *r)
{
    if (mr_reply_type(r) == MR_REPLY_INT) return (uint64_t)MR_MAX(mr_reply_int(r), 0);
    struct mr_str s = mr_reply_text(r);
    uint64_t v = 0;
    for (size_t i = 0; i < s.n && i < 19 && s.p[i] >= '0' && s.p[i] <= '9'; i++)
        v = v * 10 + (uint64_t)(s.p[i] - '0');
    return v;
}

static bool read_item(const struct mr_reply *r, struct mr_queue_item *out)
{
    if (mr_reply_count(r) != 4) return false;
    struct mr_str v = mr_reply_text(mr_reply_at(r, 1));
    const char *colon = v.n ? memchr(v.p, ':', v.n) : NULL;
    if (!colon) return false;
    size_t at = (size_t)(colon - v.p) + 1;
    *out = (struct mr_queue_item){.id = mr_reply_text(mr_reply_at(r, 0)),
        .value = mr_str_of(v.p + at, v.n - at),
        .is_object = v.p[0] == 'o',
        .lease = mr_reply_text(mr_reply_at(r, 2)),
        .deliveries = (uint32_t)number_of(mr_reply_at(r, 3))};
    return out->id.n > 0;
}

static bool read_facts(const struct mr_reply *r, struct mr_queue_facts *out)
{
    if (mr_reply_count(r) != 8) return false;
    *out = (struct mr_queue_facts){.name = mr_reply_text(mr_reply_at(r, 0)),
        .items_max = (uint32_t)number_of(mr_reply_at(r, 1)),
        .waiting = (uint32_t)number_of(mr_reply_at(r, 2)),
        .leased = (uint32_t)number_of(mr_reply_at(r, 3)),
        .dead = (uint32_t)number_of(mr_reply_at(r, 4)),
        .put_count = number_of(mr_reply_at(r, 5)),
        .acked_count = number_of(mr_reply_at(r, 6)),
        .is_closed = number_of(mr_reply_at(r, 7)) == 1};
    return true;
}

static bool read_dead(struct mr_str s, struct mr_queue_dead *out)
{
    const char *first = s.n ? memchr(s.p, '\n', s.n) : NULL;
    if (!first) return false;
    size_t at = (size_t)(first - s.p) + 1;
    const char *second = memchr(s.p + at, '\n', s.n - at);
    if (!second) return false;
    size_t end = (size_t)(second - s.p);
    out->time_ns = 0;
    for (size_t i = 0; i + 1 < at && i < 19 && s.p[i] >= '0' && s.p[i] <= '9'; i++)
        out->time_ns = out->time_ns * 10 + (uint64_t)(s.p[i] - '0');
    out->id = mr_str_of(s.p + at, end - at);
    out->reason = mr_str_of(second + 1, s.n - end - 1);
    return true;
}

static int read_items(const struct mr_reply *r, struct mr_queue_answer *a)
{
    if (mr_reply_count(r) != 4) return MR_EFORMAT;
    const struct mr_reply *list = mr_reply_at(r, 3);
    size_t count = mr_reply_count(list);
    a->is_over = number_of(mr_reply_at(r, 1)) == 1;
    a->next_ms = number_of(mr_reply_at(r, 2));
    a->items = mr_alloc_array(count + 1, sizeof *a->items);
    for (size_t i = 0; i < count; i++)
        if (read_item(mr_reply_at(list, i), &a->items[a->count])) a->count++;
    return MR_OK;
}

static int read_one(const struct mr_reply *r, struct mr_queue_answer *a)
{
    if (mr_reply_count(r) != 3) return MR_EFORMAT;
    const struct mr_reply *list = mr_reply_at(r, 2);
    size_t count = mr_reply_count(list);
    a->queues = mr_alloc(sizeof *a->queues);
    a->dead = mr_alloc_array(count + 1, sizeof *a->dead);
    a->count = 1;
    for (size_t i = 0; i < count; i++)
        if (read_dead(mr_reply_text(mr_reply_at(list, i)), &a->dead[a->dead_count]))
            a->dead_count++;
    return read_facts(mr_reply_at(r, 1), a->queues) ? MR_OK : MR_EFORMAT;
}

static int read_list(const struct mr_reply *r, struct mr_queue_answer *a)
{
    if (mr_reply_count(r) != 4) return MR_EFORMAT;
    a->more = mr_str_eq(mr_reply_text(mr_reply_at(r, 2)), MR_STR("1"));
    a->last = mr_reply_text(mr_reply_at(r, 3));
    const struct mr_reply *list = mr_reply_at(r, 1);
    size_t count = mr_reply_count(list);
    a->queues = mr_alloc_array(count + 1, sizeof *a->queues);
    for (size_t i = 0; i < count; i++)
        if (read_facts(mr_reply_at(list, i), &a->queues[a->count])) a->count++;
    return MR_OK;
}

static int read_names(const struct mr_reply *r, struct mr_queue_answer *a)
{
    const struct mr_reply *list = mr_reply_at(r, 1);
    if (mr_reply_count(r) != 2) return MR_EFORMAT;
    a->more = number_of(mr_reply_at(r, 0)) > 0;
    a->count = mr_reply_count(list);
    a->names = mr_alloc_array(a->count + 1, sizeof *a->names);
    for (size_t i = 0; i < a->count; i++)
        a->names[i] = mr_reply_text(mr_reply_at(list, i));
    return MR_OK;
}

static int read_answer(enum wanted wanted, const struct mr_reply *r, struct mr_queue_answer *a)
{
    static const struct {
        const char *word;
        int err;
    } words[] = {{"none", MR_ENOENT}, {"closed", MR_ESTATE}, {"full", MR_ELIMIT},
        {"many", MR_ELIMIT}, {"there", MR_EEXIST}};
    if (wanted == WANT_NAMES && mr_reply_type(r) == MR_REPLY_LIST) return read_names(r, a);
    if (mr_reply_type(r) == MR_REPLY_INT) return MR_OK;
    if (mr_reply_count(r) == 0) return MR_EFORMAT;
    struct mr_str word = mr_reply_text(mr_reply_at(r, 0));
    uint64_t n = mr_reply_count(r) > 1 ? number_of(mr_reply_at(r, 1)) : 0;
    for (size_t i = 0; i < MR_ARRAY_LEN(words); i++) {
        if (!mr_str_eq(word, mr_str(words[i].word))) continue;
        a->is_live = n == 1;
        a->next_ms = n;
        return words[i].err;
    }
    switch (wanted) {
    case WANT_ITEMS: return read_items(r, a);
    case WANT_FACTS: return read_one(r, a);
    case WANT_LIST: return read_list(r, a);
    case WANT_KNOWN: a->known = (uint32_t)n; return MR_OK;
    case WANT_PUT:
    case WANT_WORD:
    case WANT_NAMES: return MR_OK;
    }
    return MR_EFORMAT;
}

static void on_reply(void *ctx, int err, const struct mr_reply *reply)
{
    struct ask ask = *(struct ask *)ctx;
    mr_release(ctx);
    struct mr_queue_answer *a = mr_alloc(sizeof *a);
    a->err = err;
    if (!err) {
        a->reply = mr_reply_take(reply);
        a->err =
            mr_reply_type(reply) == MR_REPLY_ERROR ? MR_EFORMAT : read_answer(ask.wanted, reply, a);
    }
    if (a->err) a->count = 0;
    ask.fn(ask.ctx, &a);
}

/* ---- operations ------------------------------------------------------------------------------ */

static int send(struct mr_redis *r, enum wanted wanted, size_t argc, const struct mr_str *argv,
    mr_queue_fn fn, void *ctx)
{
    struct ask *ask = mr_alloc(sizeof *ask);
    *ask = (struct ask){wanted, fn, ctx};
    int err = mr_redis_send(r, argc, argv, on_reply, ask);
    if (err) mr_release(ask);
    return err;
}

struct script {
    char key[KEY_BYTES_MAX];
    struct mr_str argv[ARGS_MAX];
    size_t n;
};

static void add(struct script *s, struct mr_str arg)
{
    mr_assert(s->n < ARGS_MAX);
    s->argv[s->n++] = arg;
}

static void begin(struct script *s, struct mr_str text, struct mr_str queue)
{
    int n =
        snprintf(s->key, sizeof s->key, "%s%.*s", MR_META_PREFIX MR_META_QUEUE, MR_STR_ARG(queue));
    mr_assert(n > 0);
    mr_assert(n < KEY_BYTES_MAX);
    s->n = 0;
    add(s, MR_STR("EVAL"));
    add(s, text);
    add(s, MR_STR("4"));
    add(s, mr_str_of(s->key, (size_t)n));
    add(s, MR_STR(MR_META_PREFIX MR_META_QUEUES));
    add(s, MR_STR(MR_META_PREFIX MR_META_TAIL));
    add(s, MR_STR(MR_META_PREFIX MR_META_QUEUE_RELEASED));
    add(s, queue);
    add(s, MR_STR(MR_META_TAIL_MAX));
    add(s, MR_STR(DEAD_MAX));
    add(s, MR_STR(EXPIRED_MAX));
}

int mr_queue_create(struct mr_redis *r, struct mr_str queue, uint32_t items_max,
    uint32_t deliveries_max, mr_queue_fn fn, void *ctx)
{
    struct script s;
    char max[16], deliveries[16];
    (void)snprintf(max, sizeof max, "%" PRIu32, items_max);
    (void)snprintf(deliveries, sizeof deliveries, "%" PRIu32, deliveries_max);
    begin(&s, mr_script_queue_create(), queue);
    add(&s, mr_str(max));
    add(&s, mr_str(deliveries));
    add(&s, MR_STR(QUEUES_MAX));
    add(&s, MR_STR(ITEMS_DEFAULT));
    add(&s, MR_STR(DELIVERIES_DEFAULT));
    return send(r, WANT_FACTS, s.n, s.argv, fn, ctx);
}

int mr_queue_put(struct mr_redis *r, struct mr_str queue, struct mr_str id, struct mr_str value,
    bool is_object, mr_queue_fn fn, void *ctx)
{
    struct script s;
    begin(&s, mr_script_queue_put(), queue);
    add(&s, id);
    add(&s, is_object ? MR_STR("o") : MR_STR("v"));
    add(&s, value);
    add(&s, MR_STR(IDS_REMEMBERED));
    return send(r, WANT_PUT, s.n, s.argv, fn, ctx);
}

int mr_queue_take(struct mr_redis *r, struct mr_str queue, uint32_t items_max, uint64_t lease_ms,
    mr_queue_fn fn, void *ctx)
{
    struct script s;
    char max[16], lease[24];
    (void)snprintf(max, sizeof max, "%" PRIu32, items_max);
    (void)snprintf(lease, sizeof lease, "%" PRIu64, lease_ms);
    begin(&s, mr_script_queue_take(), queue);
    add(&s, mr_str(max));
    add(&s, mr_str(lease));
    add(&s, MR_STR(PAGE_BYTES_MAX));
    return send(r, WANT_ITEMS, s.n, s.argv, fn, ctx);
}

static int settle(struct mr_redis *r, struct mr_str queue, struct mr_str what, struct mr_str reason,
    const struct mr_str *receipts, size_t count, mr_queue_fn fn, void *ctx)
{
    struct script s;
    begin(&s, mr_script_queue_settle(), queue);
    add(&s, what);
    add(&s, reason);
    for (size_t i = 0; i < count; i++)
        add(&s, receipts[i]);
    return send(r, WANT_KNOWN, s.n, s.argv, fn, ctx);
}

int mr_queue_ack(struct mr_redis *r, struct mr_str queue, const struct mr_str *receipts,
    size_t count, mr_queue_fn fn, void *ctx)
{
    return settle(r, queue, MR_STR("ack"), MR_STR(""), receipts, count, fn, ctx);
}

int mr_queue_nack(struct mr_redis *r, struct mr_str queue, const struct mr_str *receipts,
    size_t count, bool is_dead, struct mr_str reason, mr_queue_fn fn, void *ctx)
{
    struct mr_str what = is_dead ? MR_STR("dead") : MR_STR("nack");
    return settle(r, queue, what, reason, receipts, count, fn, ctx);
}

static int simple(struct mr_redis *r, struct mr_str text, enum wanted wanted, struct mr_str queue,
    mr_queue_fn fn, void *ctx)
{
    struct script s;
    begin(&s, text, queue);
    return send(r, wanted, s.n, s.argv, fn, ctx);
}

int mr_queue_get(struct mr_redis *r, struct mr_str queue, mr_queue_fn fn, void *ctx)
{
    struct script s;
    begin(&s, mr_script_queue_get(), queue);
    add(&s, MR_STR(DEAD_SHOWN));
    return send(r, WANT_FACTS, s.n, s.argv, fn, ctx);
}

int mr_queue_close(struct mr_redis *r, struct mr_str queue, mr_queue_fn fn, void *ctx)
{
    return simple(r, mr_script_queue_close(), WANT_FACTS, queue, fn, ctx);
}

int mr_queue_delete(struct mr_redis *r, struct mr_str queue, mr_queue_fn fn, void *ctx)
{
    return simple(r, mr_script_queue_delete(), WANT_WORD, queue, fn, ctx);
}

int mr_queue_list(
    struct mr_redis *r, struct mr_str after, uint32_t rows_max, mr_queue_fn fn, void *ctx)
{
    char rows[16];
    MR_AUTO(mr_free_ptr) char *from = mr_format("%s%.*s", after.n ? "(" : "-", MR_STR_ARG(after));
    (void)snprintf(rows, sizeof rows, "%" PRIu32, rows_max);
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_queue_list(), MR_STR("2"),
        MR_STR(MR_META_PREFIX MR_META_QUEUE), MR_STR(MR_META_PREFIX MR_META_QUEUES), mr_str(from),
        mr_str(rows)};
    return send(r, WANT_LIST, MR_ARRAY_LEN(argv), argv, fn, ctx);
}

int mr_queue_released(struct mr_redis *r, mr_queue_fn fn, void *ctx)
{
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_queue_released(), MR_STR("2"),
        MR_STR(MR_META_PREFIX MR_META_QUEUE_RELEASED), MR_STR(MR_META_PREFIX MR_META_QUEUE),
        MR_STR(RELEASED_ITEMS_MAX), MR_STR(RELEASED_NAMES_MAX)};
    return send(r, WANT_NAMES, MR_ARRAY_LEN(argv), argv, fn, ctx);
}

int mr_queue_forget(struct mr_redis *r, struct mr_str name, mr_queue_fn fn, void *ctx)
{
    const struct mr_str argv[] = {
        MR_STR("SREM"), MR_STR(MR_META_PREFIX MR_META_QUEUE_RELEASED), name};
    return send(r, WANT_WORD, MR_ARRAY_LEN(argv), argv, fn, ctx);
}
