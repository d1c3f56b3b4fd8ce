/* Reads replies of Redis, and waits for a reply. */
#include "store/meta/redis_reply.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "store/meta/redis.h"

#include <hiredis/hiredis.h>

#include <pthread.h>
#include <string.h>

enum mr_reply_type mr_reply_type(const struct mr_reply *r)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    switch (reply->type) {
    case REDIS_REPLY_INTEGER: return MR_REPLY_INT;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS: return MR_REPLY_TEXT;
    case REDIS_REPLY_ARRAY: return MR_REPLY_LIST;
    case REDIS_REPLY_ERROR: return MR_REPLY_ERROR;
    default: return MR_REPLY_NIL;
    }
}

int64_t mr_reply_int(const struct mr_reply *r)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    return reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
}

struct mr_str mr_reply_text(const struct mr_reply *r)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    enum mr_reply_type type = mr_reply_type(r);
    if (type != MR_REPLY_TEXT && type != MR_REPLY_ERROR) return (struct mr_str){0};
    return mr_str_of(reply->str, reply->len);
}

size_t mr_reply_count(const struct mr_reply *r)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    return reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}

const struct mr_reply *mr_reply_at(const struct mr_reply *r, size_t i)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    mr_assert(i < mr_reply_count(r));
    return (const struct mr_reply *)(const void *)reply->element[i];
}

void mr_reply_free(struct mr_reply **r)
{
    freeReplyObject(*r);
    *r = NULL;
}

bool mr_reply_is_away(const struct mr_reply *r)
{
    const redisReply *reply = (const redisReply *)(const void *)r;
    static const char *const words[] = {"LOADING", "OOM", "READONLY", "MASTERDOWN", "NOAUTH",
        "MISCONF", "BUSY", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN"};
    if (reply->type != REDIS_REPLY_ERROR) return false;
    for (size_t i = 0; i < MR_ARRAY_LEN(words); i++)
        if (strncmp(reply->str, words[i], strlen(words[i])) == 0) return true;
    return false;
}

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    int err;
    redisReply *reply;
};

/* Copies a reply. The reply in a callback is borrowed, so a waiting thread needs a copy.
 * freeReplyObject can free the copy, because free() releases memory of mr_alloc. */
static redisReply *reply_copy(const redisReply *from)
{
    redisReply *to = mr_alloc(sizeof *to);
    *to = *from;
    if (from->str) {
        to->str = mr_alloc(from->len + 1);
        memcpy(to->str, from->str, from->len);
    }
    to->element = from->elements ? mr_alloc_array(from->elements, sizeof(redisReply *)) : NULL;
    for (size_t i = 0; i < from->elements; i++)
        /* Recursion is bounded, because hiredis refuses replies that nest deeper than 8. */
        to->element[i] = reply_copy(from->element[i]);
    return to;
}

static void wake_waiter(void *ctx, int err, const struct mr_reply *reply)
{
    struct waiting *w = ctx;
    (void)pthread_mutex_lock(&w->lock);
    w->err = err;
    if (reply && !err) w->reply = reply_copy((const redisReply *)(const void *)reply);
    w->is_done = true;
    (void)pthread_cond_signal(&w->done);
    (void)pthread_mutex_unlock(&w->lock);
}

int mr_redis_call(struct mr_redis *r, size_t argc, const struct mr_str *argv, struct mr_reply **out,
    struct mr_error *e)
{
    struct waiting w = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    /* If this thread reads the answers instead of the connection's thread (mr_redis_attend), it
     * stops now, because it is about to sleep. */
    mr_redis_attend(r, false);
    int err = mr_redis_send(r, argc, argv, wake_waiter, &w);
    if (err) return mr_fail(e, err, "Redis at %s is away", mr_redis_address(r));
    (void)pthread_mutex_lock(&w.lock);
    while (!w.is_done)
        (void)pthread_cond_wait(&w.done, &w.lock);
    (void)pthread_mutex_unlock(&w.lock);
    if (w.err) return mr_fail(e, w.err, "Redis at %s went away", mr_redis_address(r));
    if (w.reply->type == REDIS_REPLY_ERROR) {
        err = mr_fail(e, MR_EINTERNAL, "Redis: %s", w.reply->str);
        freeReplyObject(w.reply);
        return err;
    }
    *out = (struct mr_reply *)(void *)w.reply;
    return MR_OK;
}
