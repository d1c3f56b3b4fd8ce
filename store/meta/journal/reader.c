/* Reads the stream that holds a journal, one entry after the other. */
#include "store/meta/journal/reader.h"

#include "base/alloc.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"

#include <stdio.h>

#define PAGE "16"

/* Reads one entry, [id, [field, value, …]], whose values are records. Sets `from` to "(" and the
 * id, with which the next XRANGE begins after this entry. */
static int one_entry(const struct mr_reply *entry, char from[64],
    int (*fn)(void *ctx, struct mr_str record), void *ctx)
{
    if (mr_reply_count(entry) != 2) return MR_EFORMAT;
    struct mr_str id = mr_reply_text(mr_reply_at(entry, 0));
    const struct mr_reply *fields = mr_reply_at(entry, 1);
    size_t count = mr_reply_count(fields) / 2;
    if (!id.n || id.n > 48 || !count) return MR_EFORMAT;
    (void)snprintf(from, 64, "(%.*s", MR_STR_ARG(id));
    int err = MR_OK;
    for (size_t i = 0; i < count && !err; i++) {
        bool is_record = mr_str_eq(mr_reply_text(mr_reply_at(fields, 2 * i)), MR_STR("r"));
        err = is_record ? fn(ctx, mr_reply_text(mr_reply_at(fields, 2 * i + 1))) : MR_EFORMAT;
    }
    return err;
}

int mr_journal_read(struct mr_redis *redis, const char *prefix,
    int (*fn)(void *ctx, struct mr_str record), void *ctx, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr)
    char *key = mr_format("%s" MR_META_JOURNAL, prefix ? prefix : MR_META_PREFIX);
    char from[64] = "-";
    for (;;) {
        struct mr_reply *reply = NULL;
        const struct mr_str argv[] = {MR_STR("XRANGE"), mr_str(key), mr_str(from), MR_STR("+"),
            MR_STR("COUNT"), MR_STR(PAGE)};
        int err = mr_redis_call(redis, MR_ARRAY_LEN(argv), argv, &reply, e);
        if (err) return err;
        size_t n = mr_reply_count(reply);
        for (size_t i = 0; i < n && !err; i++)
            err = one_entry(mr_reply_at(reply, i), from, fn, ctx);
        mr_reply_free(&reply);
        if (err)
            return mr_fail(
                e, err, "Redis: key %s holds something that is not a journal record", key);
        if (!n) return MR_OK;
    }
}
