/* Calls the Lua scripts of channels and decodes their answers. An append is one script, so all of
 * its entries are written, next to each other, or none. The same script updates the channel's bound
 * and floor (channel.h), and names the channel in the change feed (change_feed.h). */
#include "store/meta/stream/channel.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"
#include "store/meta/scripts.h"

#include <inttypes.h>
#include <stdio.h>

#define KEY_BYTES_MAX 512
#define ARGS_MAX 1024

#define CHANNELS_MAX "100000"
#define BOUND_DEFAULT "10000"    /* bound of a channel's entries if no bound was set */
#define RETRY_ENTRIES_MAX "2000" /* entries among which a repeated append looks for its token */
/* If an append drops more entries than this, the channel's floor (channel.h) becomes unknown. */
#define FLOOR_ENTRIES_MAX "1000"
#define PAGE_BYTES_MAX "4194304" /* a read that has this many bytes fetches no more entries */
#define PAGE_STEP "64"           /* entries that a read fetches in one step */

enum wanted { WANT_APPENDED, WANT_ENTRIES, WANT_NAMES };

struct ask {
    enum wanted wanted;
    mr_channel_fn fn;
    void *ctx;
};

static struct mr_str key_of(char out[KEY_BYTES_MAX], struct mr_str channel)
{
    int n =
        snprintf(out, KEY_BYTES_MAX, "%s%.*s", MR_META_PREFIX MR_META_CHANNEL, MR_STR_ARG(channel));
    mr_assert(n > 0 && n < KEY_BYTES_MAX);
    return mr_str_of(out, (size_t)n);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static bool number_of(struct mr_str s, uint64_t *out)
{
    uint64_t v = 0;
    if (s.n == 0 || s.n > 20) return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return false;
        uint64_t digit = (uint64_t)(s.p[i] - '0');
        if (v > (UINT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

static bool id_of(struct mr_str id, uint64_t out[2])
{
    const char *dash = id.n ? memchr(id.p, '-', id.n) : NULL;
    if (!dash) return false;
    size_t at = (size_t)(dash - id.p);
    return number_of(mr_str_of(id.p, at), &out[0]) &&
           number_of(mr_str_of(dash + 1, id.n - at - 1), &out[1]);
}

bool mr_channel_id_is_good(struct mr_str id)
{
    uint64_t parts[2];
    return id_of(id, parts);
}

int mr_channel_id_cmp(struct mr_str a, struct mr_str b)
{
    uint64_t x[2] = {0, 0}, y[2] = {0, 0};
    (void)id_of(a, x);
    (void)id_of(b, y);
    if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* ---- answers --------------------------------------------------------------------------------- */

void mr_channel_answer_free(struct mr_channel_answer **ap)
{
    struct mr_channel_answer *a = MR_STEAL(*ap);
    if (!a) return;
    if (a->reply) mr_reply_free(&a->reply);
    mr_release(a->entries);
    mr_release(a->names);
    mr_release(a);
}

static bool read_entry(const struct mr_reply *r, struct mr_channel_entry *out)
{
    if (mr_reply_count(r) != 2) return false;
    const struct mr_reply *fields = mr_reply_at(r, 1);
    if (mr_reply_count(fields) < 4) return false;
    out->id = mr_reply_text(mr_reply_at(r, 0));
    out->value = mr_reply_text(mr_reply_at(fields, 1));
    return mr_channel_id_is_good(out->id) &&
           number_of(mr_reply_text(mr_reply_at(fields, 3)), &out->time_ns);
}

static int read_entries(const struct mr_reply *r, struct mr_channel_answer *a)
{
    if (mr_reply_count(r) != 4) return MR_EFORMAT;
    struct mr_str word = mr_reply_text(mr_reply_at(r, 0));
    const struct mr_reply *list = mr_reply_at(r, 3);
    a->first_id = mr_reply_text(mr_reply_at(r, 1));
    a->last_id = mr_reply_text(mr_reply_at(r, 2));
    if (mr_str_eq(word, MR_STR("gone"))) return MR_ERANGE;
    a->more = mr_str_eq(word, MR_STR("more"));
    a->count = mr_reply_count(list);
    a->entries = mr_alloc_array(a->count + 1, sizeof *a->entries);
    for (size_t i = 0; i < a->count; i++)
        if (!read_entry(mr_reply_at(list, i), &a->entries[i])) return MR_EFORMAT;
    if (a->count) a->last_id = a->entries[a->count - 1].id;
    return MR_OK;
}

static int read_appended(const struct mr_reply *r, struct mr_channel_answer *a)
{
    size_t n = mr_reply_count(r);
    if (n == 1) return MR_ELIMIT;
    if (n != 2) return MR_EFORMAT;
    a->last_id = mr_reply_text(mr_reply_at(r, 1));
    return mr_channel_id_is_good(a->last_id) ? MR_OK : MR_EFORMAT;
}

static int read_names(const struct mr_reply *r, struct mr_channel_answer *a)
{
    a->count = mr_reply_count(r);
    a->names = mr_alloc_array(a->count + 1, sizeof *a->names);
    for (size_t i = 0; i < a->count; i++)
        a->names[i] = mr_reply_text(mr_reply_at(r, i));
    return MR_OK;
}

static int read_answer(enum wanted wanted, const struct mr_reply *r, struct mr_channel_answer *a)
{
    if (mr_reply_type(r) != MR_REPLY_LIST) return MR_EFORMAT; /* also for a key of another type */
    switch (wanted) {
    case WANT_APPENDED: return read_appended(r, a);
    case WANT_ENTRIES: return read_entries(r, a);
    case WANT_NAMES: return read_names(r, a);
    }
    return MR_EFORMAT;
}

static void on_reply(void *ctx, int err, const struct mr_reply *reply)
{
    struct ask ask = *(struct ask *)ctx;
    mr_release(ctx);
    struct mr_channel_answer *a = mr_alloc(sizeof *a);
    a->err = err;
    if (!err) {
        a->reply = mr_reply_take(reply);
        a->err = read_answer(ask.wanted, reply, a);
    }
    if (a->err && a->err != MR_ERANGE) a->count = 0;
    ask.fn(ask.ctx, &a);
}

static int send(struct mr_redis *r, enum wanted wanted, size_t argc, const struct mr_str *argv,
    mr_channel_fn fn, void *ctx)
{
    struct ask *ask = mr_alloc(sizeof *ask);
    *ask = (struct ask){wanted, fn, ctx};
    int err = mr_redis_send(r, argc, argv, on_reply, ask);
    if (err) mr_release(ask);
    return err;
}

int mr_channel_append(
    struct mr_redis *r, const struct mr_channel_append *append, mr_channel_fn fn, void *ctx)
{
    char key[KEY_BYTES_MAX], bound[16], ns[24];
    struct mr_str argv[ARGS_MAX];
    mr_assert(append->count > 0);
    mr_assert(append->count <= ARGS_MAX - 24);
    (void)snprintf(bound, sizeof bound, "%" PRIu32, append->entries_max);
    (void)snprintf(ns, sizeof ns, "%" PRIu64, append->time_ns);
    size_t n = 0;
    argv[n++] = MR_STR("EVAL");
    argv[n++] = mr_script_channel_append();
    argv[n++] = MR_STR("4");
    argv[n++] = key_of(key, append->channel);
    argv[n++] = MR_STR(MR_META_PREFIX MR_META_CHANNELS);
    argv[n++] = MR_STR(MR_META_PREFIX MR_META_CHANNEL_FLOORS);
    argv[n++] = MR_STR(MR_META_PREFIX MR_META_TAIL);
    argv[n++] = append->channel;
    argv[n++] = mr_str(bound);
    argv[n++] = append->token;
    argv[n++] = append->is_again ? MR_STR("1") : MR_STR("0");
    argv[n++] = mr_str(ns);
    argv[n++] = MR_STR(RETRY_ENTRIES_MAX);
    argv[n++] = MR_STR(CHANNELS_MAX);
    argv[n++] = MR_STR(BOUND_DEFAULT);
    argv[n++] = MR_STR(FLOOR_ENTRIES_MAX);
    argv[n++] = MR_STR(MR_META_TAIL_MAX);
    for (size_t i = 0; i < append->count; i++)
        argv[n++] = append->values[i];
    return send(r, WANT_APPENDED, n, argv, fn, ctx);
}

int mr_channel_read(struct mr_redis *r, struct mr_str channel, struct mr_str after_id,
    uint32_t entries_max, mr_channel_fn fn, void *ctx)
{
    char key[KEY_BYTES_MAX], count[16];
    (void)snprintf(count, sizeof count, "%" PRIu32, entries_max);
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_channel_read(), MR_STR("2"),
        key_of(key, channel), MR_STR(MR_META_PREFIX MR_META_CHANNEL_FLOORS), channel, after_id,
        mr_str(count), MR_STR(PAGE_BYTES_MAX), MR_STR(PAGE_STEP)};
    return send(r, WANT_ENTRIES, MR_ARRAY_LEN(argv), argv, fn, ctx);
}

int mr_channel_list(struct mr_redis *r, mr_channel_fn fn, void *ctx)
{
    const struct mr_str argv[] = {MR_STR("HKEYS"), MR_STR(MR_META_PREFIX MR_META_CHANNELS)};
    return send(r, WANT_NAMES, MR_ARRAY_LEN(argv), argv, fn, ctx);
}
