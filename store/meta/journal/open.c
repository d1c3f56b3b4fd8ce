/* Opens a journal: claims an epoch and reads the records. */
#include "store/meta/journal/open.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/id.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"
#include "store/meta/scripts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define READ_ENTRIES 64

void mr_journal_keys_fill(struct mr_journal_keys *k, const char *prefix)
{
    const char *before = prefix ? prefix : MR_META_PREFIX;
    k->cluster = mr_format("%s%s", before, MR_META_CLUSTER);
    k->stream = mr_format("%s%s", before, MR_META_JOURNAL);
    k->staging = mr_format("%s%s", before, MR_META_STAGING);
}

void mr_journal_keys_fini(struct mr_journal_keys *k)
{
    mr_release(k->cluster);
    mr_release(k->stream);
    mr_release(k->staging);
}

void mr_journal_make_cluster_id(char out[MR_CLUSTER_ID_BYTES])
{
    unsigned char raw[16];
    ssize_t drawn = getrandom(raw, sizeof raw, 0);
    mr_assert(drawn == (ssize_t)sizeof raw);
    for (size_t i = 0; i < sizeof raw; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

struct mr_str mr_journal_number(char out[24], uint64_t v)
{
    /* A loop instead of snprintf, for speed: each append to the journal formats five numbers. */
    size_t at = 24;
    do
        out[--at] = (char)('0' + v % 10);
    while (v /= 10);
    return mr_str_of(out + at, 24 - at);
}

/* Draws a random incarnation. Its upper half is the tag of ids, and tags below MR_TAG_DRAWN_MIN are
 * never drawn (base/id.h). */
uint64_t mr_journal_draw_incarnation(char out[MR_INCARNATION_TEXT])
{
    uint64_t v = 0;
    while ((uint32_t)(v >> 32) < MR_TAG_DRAWN_MIN) {
        ssize_t drawn = getrandom(&v, sizeof v, 0);
        mr_assert(drawn == (ssize_t)sizeof v);
    }
    (void)snprintf(out, MR_INCARNATION_TEXT, "%016" PRIx64, v);
    return v;
}

/* Adds the key to an error of Redis, which does not name the key. */
static int of_key(const char *key, int err, struct mr_error *e)
{
    if (!e || err == MR_EAWAY) return err;
    const struct mr_error said = *e;
    return mr_fail(e, err, "%s (key %s)", said.text, key);
}

int mr_journal_claim(struct mr_redis *redis, const struct mr_journal_keys *keys,
    struct mr_journal_claim *c, struct mr_error *e)
{
    char format_text[24];
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_journal_claim(), MR_STR("2"),
        mr_str(keys->cluster), mr_str(keys->staging), mr_str(c->cluster_id), mr_str(c->incarnation),
        mr_journal_number(format_text, MR_JOURNAL_FORMAT)};
    struct mr_reply *reply = NULL;
    int err = mr_redis_call(redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return of_key(keys->cluster, err, e);
    if (mr_reply_count(reply) == 1) {
        long long format = (long long)mr_reply_int(mr_reply_at(reply, 0));
        mr_reply_free(&reply);
        return mr_fail(e, MR_ESTATE,
            "Redis: the journal has format %lld, and this program reads formats up to %d: start the "
            "version that wrote it, or a later one (key %s)",
            format, MR_JOURNAL_FORMAT, keys->cluster);
    }
    if (mr_reply_count(reply) != 4) {
        mr_reply_free(&reply);
        return mr_fail(e, MR_EFORMAT, "Redis: key %s is not a cluster record", keys->cluster);
    }
    struct mr_str id = mr_reply_text(mr_reply_at(reply, 0));
    (void)snprintf(c->cluster_id, sizeof c->cluster_id, "%.*s", MR_STR_ARG(id));
    c->epoch = (uint32_t)mr_reply_int(mr_reply_at(reply, 1));
    c->sequence = (uint64_t)mr_reply_int(mr_reply_at(reply, 2));
    c->base = (uint64_t)mr_reply_int(mr_reply_at(reply, 3));
    mr_reply_free(&reply);
    return MR_OK;
}

/* Reads one entry of XRANGE: [id, [field, value, …]], where `id` is the number of the entry's last
 * record. Calls `fn` for each record from `*next` on, and moves `*next` past the last of them. */
static int read_entry(
    const struct mr_reply *entry, uint64_t *next, mr_journal_record_fn fn, void *ctx)
{
    const struct mr_reply *fields = mr_reply_count(entry) == 2 ? mr_reply_at(entry, 1) : NULL;
    size_t count = fields ? mr_reply_count(fields) / 2 : 0;
    if (!count || mr_reply_count(fields) % 2) return MR_EFORMAT;
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%.*s", MR_STR_ARG(mr_reply_text(mr_reply_at(entry, 0))));
    uint64_t last = strtoull(digits, NULL, 10);
    if (last < *next || last < count) return MR_EFORMAT;
    for (size_t i = 0; i < count; i++) {
        uint64_t sequence = last - (count - 1 - i);
        if (sequence < *next) continue;
        if (!mr_str_eq(mr_reply_text(mr_reply_at(fields, 2 * i)), MR_STR("r"))) return MR_EFORMAT;
        int err = fn(ctx, sequence, mr_reply_text(mr_reply_at(fields, 2 * i + 1)));
        if (err) return err;
        *next = sequence + 1;
    }
    return MR_OK;
}

static int load_page(struct mr_redis *redis, const char *stream, uint64_t *next, size_t *count,
    mr_journal_record_fn fn, void *ctx, struct mr_error *e)
{
    char from[24];
    const struct mr_str argv[] = {MR_STR("XRANGE"), mr_str(stream), mr_journal_number(from, *next),
        MR_STR("+"), MR_STR("COUNT"), MR_STR("64")};
    static_assert(READ_ENTRIES == 64, "the text above");
    struct mr_reply *reply = NULL;
    int err = mr_redis_call(redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return of_key(stream, err, e);
    *count = mr_reply_count(reply);
    for (size_t i = 0; i < *count && !err; i++) {
        err = read_entry(mr_reply_at(reply, i), next, fn, ctx);
        if (err == MR_EFORMAT)
            err = mr_fail(
                e, err, "Redis: key %s holds something that is not a journal record", stream);
    }
    mr_reply_free(&reply);
    return err;
}

int mr_journal_load(struct mr_redis *redis, const char *stream, uint64_t base,
    mr_journal_record_fn fn, void *ctx, struct mr_error *e)
{
    uint64_t next = base;
    int err = MR_OK;
    for (size_t count = READ_ENTRIES; count == READ_ENTRIES && !err;)
        err = load_page(redis, stream, &next, &count, fn, ctx, e);
    return err;
}
