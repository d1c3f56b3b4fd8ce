/* Reads the change feed: a stream in Redis that names channels and queues that have changed. */
#include "store/meta/stream/change_feed.h"

#include "base/alloc.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"

#include <stdio.h>

#define COUNT_TEXT "10000"
/* Entries in one answer. The scripts of channels and queues keep about as many in the stream. */
#define COUNT_MAX 10000
#define BLOCK_MS "15000"
#define REPLY_TIMEOUT (40 * MR_SECOND) /* longer than the blocking read may take */
#define ID_BYTES_MAX 48

struct mr_tail {
    struct mr_redis *redis;
    mr_tail_fn fn;
    void *ctx;
    /* Id of the last entry that was read; used on the connection's thread. */
    char last[ID_BYTES_MAX];
};

static const struct mr_str key = MR_STR_INIT(MR_META_PREFIX MR_META_TAIL);

static void wait_on(struct mr_tail *t);

static void set_last(struct mr_tail *t, const struct mr_reply *entry)
{
    if (mr_reply_count(entry) != 2) return;
    struct mr_str id = mr_reply_text(mr_reply_at(entry, 0));
    (void)snprintf(t->last, sizeof t->last, "%.*s", MR_STR_ARG(id));
}

static void tell(struct mr_tail *t, const struct mr_reply *entry)
{
    set_last(t, entry);
    const struct mr_reply *fields = mr_reply_count(entry) == 2 ? mr_reply_at(entry, 1) : NULL;
    if (!fields || mr_reply_count(fields) < 2) return;
    struct mr_str kind = mr_reply_text(mr_reply_at(fields, 0));
    if (kind.n == 1) t->fn(t->ctx, kind.p[0], mr_reply_text(mr_reply_at(fields, 1)));
}

static void on_marks(void *ctx, int err, const struct mr_reply *reply)
{
    struct mr_tail *t = ctx;
    if (err) return; /* on_state begins to read again when Redis is back */
    const struct mr_reply *stream = mr_reply_count(reply) ? mr_reply_at(reply, 0) : NULL;
    const struct mr_reply *entries =
        stream && mr_reply_count(stream) == 2 ? mr_reply_at(stream, 1) : NULL;
    size_t count = entries ? mr_reply_count(entries) : 0;
    for (size_t i = 0; i < count; i++)
        tell(t, mr_reply_at(entries, i));
    if (count == 0 || count >= COUNT_MAX) t->fn(t->ctx, 0, MR_STR(""));
    if (mr_reply_type(reply) == MR_REPLY_ERROR)
        mr_redis_pause(t->redis, mr_reply_text(reply).p);
    else
        wait_on(t);
}

static void wait_on(struct mr_tail *t)
{
    const struct mr_str argv[] = {MR_STR("XREAD"), MR_STR("COUNT"), MR_STR(COUNT_TEXT),
        MR_STR("BLOCK"), MR_STR(BLOCK_MS), MR_STR("STREAMS"), key, mr_str(t->last)};
    (void)mr_redis_send(t->redis, MR_ARRAY_LEN(argv), argv, on_marks, t);
}

static void on_last(void *ctx, int err, const struct mr_reply *reply)
{
    struct mr_tail *t = ctx;
    if (err) return;
    (void)snprintf(t->last, sizeof t->last, "0-0");
    if (mr_reply_count(reply)) set_last(t, mr_reply_at(reply, 0));
    t->fn(t->ctx, 0, MR_STR(""));
    wait_on(t);
}

static void on_state(void *ctx, bool here, const char *why)
{
    struct mr_tail *t = ctx;
    (void)why;
    if (!here) return;
    const struct mr_str argv[] = {
        MR_STR("XREVRANGE"), key, MR_STR("+"), MR_STR("-"), MR_STR("COUNT"), MR_STR("1")};
    (void)mr_redis_send(t->redis, MR_ARRAY_LEN(argv), argv, on_last, t);
}

int mr_tail_open(const char *address, const char *password, mr_tail_fn fn, void *ctx,
    struct mr_tail **out, struct mr_error *e)
{
    struct mr_tail *t = mr_alloc(sizeof *t);
    t->fn = fn;
    t->ctx = ctx;
    const struct mr_redis_config config = {.address = address,
        .password = password,
        .reply_timeout_ns = REPLY_TIMEOUT,
        .on_state = on_state,
        .ctx = t};
    int err = mr_redis_open(&config, &t->redis, e);
    if (err) {
        mr_release(t);
        return err;
    }
    *out = t;
    return MR_OK;
}

void mr_tail_close(struct mr_tail **tp)
{
    struct mr_tail *t = MR_STEAL(*tp);
    if (!t) return;
    /* mr_redis_close first sets its argument to NULL. But the connection's thread needs t->redis
     * until the thread has ended. */
    struct mr_redis *r = t->redis;
    mr_redis_close(&r);
    mr_release(t);
}
