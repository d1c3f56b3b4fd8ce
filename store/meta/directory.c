/* Reads and writes names and places in Redis as packed records. One Lua script looks a name up and
 * writes it. So of two concurrent writers that must not replace a name, only one succeeds. */
#include "store/meta/directory.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/pack.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"
#include "store/meta/scripts.h"

#include <stdio.h>

#define RECORD_BYTES_MAX 8192
#define NAMES_MAX 1000
#define NAMES_AT_ONCE 256 /* names that one lookup asks Redis for */
#define PLACES_A_PAGE "500"

struct mr_directory {
    struct mr_redis *redis;
    char *names_key;
    /* Key of a sorted set of all names. All scores are equal, so Redis sorts the names by bytes. */
    char *order_key;
    char *places_key;
};

enum wanted { WANT_NAME, WANT_NAMED, WANT_NAMES, WANT_PLACE, WANT_PLACES, WANT_DONE };

struct ask {
    enum wanted wanted;
    mr_name_fn name_fn;
    mr_names_fn names_fn;
    mr_place_fn place_fn;
    mr_places_fn places_fn;
    mr_done_fn done_fn;
    void *ctx;
    mr_object_id object;
    uint32_t count_max;
    size_t name_bytes;
    /* The name that was asked for; used for WANT_NAME, because the answer of Redis does not contain
     * the name. */
    char name[];
};

struct mr_directory *mr_directory_new(struct mr_redis *redis, const char *prefix)
{
    struct mr_directory *d = mr_alloc(sizeof *d);
    if (!prefix) prefix = MR_META_PREFIX;
    d->redis = redis;
    d->names_key = mr_format("%s%s", prefix, MR_META_NAMES);
    d->order_key = mr_format("%s%s:order", prefix, MR_META_NAMES);
    d->places_key = mr_format("%s%s", prefix, MR_META_OBJECTS);
    return d;
}

void mr_directory_free(struct mr_directory **dp)
{
    struct mr_directory *d = *dp;
    *dp = NULL;
    if (!d) return;
    mr_release(d->names_key);
    mr_release(d->order_key);
    mr_release(d->places_key);
    mr_release(d);
}

static struct ask *ask_make(enum wanted wanted, struct mr_str name, void *ctx)
{
    struct ask *a = mr_alloc(sizeof *a + name.n);
    a->wanted = wanted;
    a->ctx = ctx;
    a->name_bytes = name.n;
    if (name.n) memcpy(a->name, name.p, name.n);
    return a;
}

static void record_pack(const struct mr_name_record *r, struct mr_buf *b)
{
    mr_pack_list(b, 8);
    mr_pack_object(b, r->object);
    mr_pack_uint(b, r->nbytes);
    mr_pack_bytes(b, r->has_definition ? mr_str_of(r->definition, 16) : MR_STR(""));
    mr_pack_text(b, r->summary);
    mr_pack_text(b, r->node);
    mr_pack_text(b, r->address);
    mr_pack_uint(b, r->created_ns);
    mr_pack_bool(b, r->durable);
}

static void place_pack(const struct mr_place_record *r, struct mr_buf *b)
{
    mr_pack_list(b, 4);
    mr_pack_uint(b, r->nbytes);
    mr_pack_text(b, r->node);
    mr_pack_text(b, r->address);
    mr_pack_bool(b, r->durable);
}

/* Reads a record, which is a list of `count` items of the given types, into `items`. False: the
 * bytes have another form. */
static bool unpack(
    struct mr_str bytes, const enum mr_pack_type *types, uint32_t count, struct mr_pack_item *items)
{
    if (mr_pack_check(bytes, 0, NULL)) return false;
    struct mr_pack_reader r = mr_pack_read(bytes);
    struct mr_pack_item head;
    if (mr_pack_next(&r, &head) || head.type != MR_PACK_LIST || head.count != count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (mr_pack_next(&r, &items[i]) || items[i].type != types[i]) return false;
    return true;
}

static bool record_unpack(struct mr_str name, struct mr_str bytes, struct mr_name_record *out)
{
    static const enum mr_pack_type types[] = {MR_PACK_EXT, MR_PACK_INT, MR_PACK_BYTES, MR_PACK_TEXT,
        MR_PACK_TEXT, MR_PACK_TEXT, MR_PACK_INT, MR_PACK_BOOL};
    struct mr_pack_item items[MR_ARRAY_LEN(types)];
    if (!unpack(bytes, types, MR_ARRAY_LEN(types), items)) return false;
    *out = (struct mr_name_record){.name = name,
        .nbytes = (uint64_t)items[1].i,
        .has_definition = items[2].bytes.n == 16,
        .summary = items[3].bytes,
        .node = items[4].bytes,
        .address = items[5].bytes,
        .created_ns = (uint64_t)items[6].i,
        .durable = items[7].boolean};
    if (out->has_definition) memcpy(out->definition, items[2].bytes.p, 16);
    return mr_object_id_from_bytes(items[0].bytes, &out->object) == MR_OK;
}

static bool place_unpack(struct mr_str bytes, mr_object_id object, struct mr_place_record *out)
{
    static const enum mr_pack_type types[] = {
        MR_PACK_INT, MR_PACK_TEXT, MR_PACK_TEXT, MR_PACK_BOOL};
    struct mr_pack_item items[MR_ARRAY_LEN(types)];
    if (!unpack(bytes, types, MR_ARRAY_LEN(types), items)) return false;
    *out = (struct mr_place_record){.object = object,
        .nbytes = (uint64_t)items[0].i,
        .node = items[1].bytes,
        .address = items[2].bytes,
        .durable = items[3].boolean};
    return true;
}

static void answer_name(const struct ask *a, int err, const struct mr_reply *reply)
{
    struct mr_str name = mr_str_of(a->name, a->name_bytes);
    struct mr_name_record record;
    struct mr_str bytes = {0};
    if (!err && a->wanted == WANT_NAMED) {
        if (mr_reply_count(reply) != 2) {
            a->name_fn(a->ctx, MR_EFORMAT, NULL);
            return;
        }
        bool exists = mr_str_eq(mr_reply_text(mr_reply_at(reply, 0)), MR_STR("exists"));
        bytes = mr_reply_text(mr_reply_at(reply, 1));
        if (exists) err = MR_EEXIST;
    } else if (!err) {
        bytes = mr_reply_text(reply);
        if (mr_reply_type(reply) == MR_REPLY_NIL) err = MR_ENOENT;
    }
    bool has_record = (!err || err == MR_EEXIST) && record_unpack(name, bytes, &record);
    if (!has_record && (!err || err == MR_EEXIST)) err = MR_EFORMAT;
    a->name_fn(a->ctx, err, has_record ? &record : NULL);
}

static void answer_names(const struct ask *a, int err, const struct mr_reply *reply)
{
    size_t count = err ? 0 : mr_reply_count(reply) / 2;
    bool more = count > a->count_max;
    if (more) count = a->count_max;
    struct mr_name_record *records = mr_alloc_array(count, sizeof *records);
    for (size_t i = 0; i < count && !err; i++) {
        struct mr_str name = mr_reply_text(mr_reply_at(reply, 2 * i));
        if (!record_unpack(name, mr_reply_text(mr_reply_at(reply, 2 * i + 1)), &records[i]))
            err = MR_EFORMAT;
    }
    a->names_fn(a->ctx, err, records, err ? 0 : count, more);
    mr_release(records);
}

static void answer_place(const struct ask *a, int err, const struct mr_reply *reply)
{
    struct mr_place_record record;
    if (!err && mr_reply_type(reply) == MR_REPLY_NIL) err = MR_ENOENT;
    if (!err && !place_unpack(mr_reply_text(reply), a->object, &record)) err = MR_EFORMAT;
    a->place_fn(a->ctx, err, err ? NULL : &record);
}

/* Answers a request for places. An unreadable record counts as missing: the store that has the
 * object will write the record again. */
static void answer_places(const struct ask *a, int err, const struct mr_reply *reply)
{
    if (!err && mr_reply_count(reply) != 2) err = MR_EFORMAT;
    const struct mr_reply *page = err ? NULL : mr_reply_at(reply, 1);
    size_t count = page ? mr_reply_count(page) / 2 : 0;
    struct mr_place_record *records = mr_alloc_array(count + 1, sizeof *records);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct mr_str id = mr_reply_text(mr_reply_at(page, 2 * i));
        struct mr_str bytes = mr_reply_text(mr_reply_at(page, 2 * i + 1));
        mr_object_id object;
        if (!mr_object_id_from_bytes(id, &object) && place_unpack(bytes, object, &records[n])) n++;
    }
    struct mr_str next = err ? MR_STR("0") : mr_reply_text(mr_reply_at(reply, 0));
    if (!next.n) err = MR_EFORMAT;
    a->places_fn(a->ctx, err, records, err ? 0 : n, next);
    mr_release(records);
}

static void on_reply(void *ctx, int err, const struct mr_reply *reply)
{
    struct ask *a = ctx;
    if (!err && mr_reply_type(reply) == MR_REPLY_ERROR)
        err = MR_EFORMAT; /* the key in Redis has another type */
    switch (a->wanted) {
    case WANT_NAME:
    case WANT_NAMED: answer_name(a, err, reply); break;
    case WANT_NAMES: answer_names(a, err, reply); break;
    case WANT_PLACE: answer_place(a, err, reply); break;
    case WANT_PLACES: answer_places(a, err, reply); break;
    case WANT_DONE:
        if (a->done_fn) a->done_fn(a->ctx, err);
        break;
    }
    mr_release(a);
}

static void send(struct mr_directory *d, struct ask *a, size_t argc, const struct mr_str *argv)
{
    int err = mr_redis_send(d->redis, argc, argv, on_reply, a);
    if (err) on_reply(a, MR_EAWAY, NULL);
}

void mr_directory_name(struct mr_directory *d, const struct mr_name_record *record, bool replace,
    mr_name_fn fn, void *ctx)
{
    struct mr_buf b;
    unsigned char id[16];
    mr_object_id_to_bytes(record->object, id);
    mr_buf_init(&b, RECORD_BYTES_MAX);
    record_pack(record, &b);
    struct ask *a = ask_make(WANT_NAMED, record->name, ctx);
    a->name_fn = fn;
    /* Names and addresses have limits, so the buffer has room. */
    mr_assert(mr_buf_status(&b) == MR_OK);
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_directory_name(), MR_STR("2"),
        mr_str(d->names_key), mr_str(d->order_key), record->name, mr_buf_str(&b), mr_str_of(id, 16),
        replace ? MR_STR("1") : MR_STR("0")};
    send(d, a, MR_ARRAY_LEN(argv), argv);
    mr_buf_fini(&b);
}

void mr_directory_resolve(struct mr_directory *d, struct mr_str name, mr_name_fn fn, void *ctx)
{
    struct ask *a = ask_make(WANT_NAME, name, ctx);
    a->name_fn = fn;
    const struct mr_str argv[] = {MR_STR("HGET"), mr_str(d->names_key), name};
    send(d, a, MR_ARRAY_LEN(argv), argv);
}

void mr_directory_unname(
    struct mr_directory *d, struct mr_str name, mr_object_id only, mr_name_fn fn, void *ctx)
{
    unsigned char id[16];
    mr_object_id_to_bytes(only, id);
    struct ask *a = ask_make(WANT_NAME, name, ctx);
    a->name_fn = fn;
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_directory_unname(), MR_STR("2"),
        mr_str(d->names_key), mr_str(d->order_key), name,
        mr_str_of(id, mr_object_id_is_none(only) ? 0 : sizeof id)};
    send(d, a, MR_ARRAY_LEN(argv), argv);
}

void mr_directory_names(struct mr_directory *d, struct mr_str prefix, struct mr_str after,
    uint32_t count_max, mr_names_fn fn, void *ctx)
{
    struct mr_buf min;
    struct mr_buf max;
    char count[24];
    mr_buf_init(&min, MR_KEY_BYTES_MAX + 2);
    mr_buf_init(&max, MR_KEY_BYTES_MAX + 2);
    bool from_after = after.n && mr_str_cmp(after, prefix) >= 0;
    mr_buf_add_text(&min, from_after ? "(" : "[");
    mr_buf_add_str(&min, from_after ? after : prefix);
    mr_buf_add_text(&max, prefix.n ? "(" : "+");
    mr_buf_add_str(&max, prefix);
    if (prefix.n) mr_buf_add_byte(&max, 0xff); /* this byte is greater than every byte in UTF-8 */
    uint32_t wanted = MR_MIN(count_max, (uint32_t)NAMES_MAX);
    int n = snprintf(count, sizeof count, "%u", wanted + 1);
    struct ask *a = ask_make(WANT_NAMES, MR_STR(""), ctx);
    a->names_fn = fn;
    a->count_max = wanted;
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_directory_names(), MR_STR("2"),
        mr_str(d->names_key), mr_str(d->order_key), mr_buf_str(&min), mr_buf_str(&max),
        mr_str_of(count, (size_t)n)};
    send(d, a, MR_ARRAY_LEN(argv), argv);
    mr_buf_fini(&min);
    mr_buf_fini(&max);
}

void mr_directory_place(
    struct mr_directory *d, const struct mr_place_record *record, mr_done_fn fn, void *ctx)
{
    struct mr_buf b;
    unsigned char id[16];
    mr_object_id_to_bytes(record->object, id);
    mr_buf_init(&b, RECORD_BYTES_MAX);
    place_pack(record, &b);
    mr_assert(mr_buf_status(&b) == MR_OK);
    struct ask *a = ask_make(WANT_DONE, MR_STR(""), ctx);
    a->done_fn = fn;
    const struct mr_str argv[] = {
        MR_STR("HSET"), mr_str(d->places_key), mr_str_of(id, 16), mr_buf_str(&b)};
    send(d, a, MR_ARRAY_LEN(argv), argv);
    mr_buf_fini(&b);
}

void mr_directory_unplace(
    struct mr_directory *d, mr_object_id object, struct mr_str node, mr_done_fn fn, void *ctx)
{
    struct mr_buf b;
    unsigned char id[16];
    mr_object_id_to_bytes(object, id);
    mr_buf_init(&b, RECORD_BYTES_MAX);
    mr_pack_text(&b, node);
    struct ask *a = ask_make(WANT_DONE, MR_STR(""), ctx);
    a->done_fn = fn;
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_directory_unplace(), MR_STR("1"),
        mr_str(d->places_key), mr_str_of(id, 16), mr_buf_str(&b)};
    send(d, a, MR_ARRAY_LEN(argv), argv);
    mr_buf_fini(&b);
}

void mr_directory_places(struct mr_directory *d, struct mr_str cursor, mr_places_fn fn, void *ctx)
{
    struct ask *a = ask_make(WANT_PLACES, MR_STR(""), ctx);
    a->places_fn = fn;
    const struct mr_str argv[] = {
        MR_STR("HSCAN"), mr_str(d->places_key), cursor, MR_STR("COUNT"), MR_STR(PLACES_A_PAGE)};
    send(d, a, MR_ARRAY_LEN(argv), argv);
}

void mr_directory_find(struct mr_directory *d, mr_object_id object, mr_place_fn fn, void *ctx)
{
    unsigned char id[16];
    mr_object_id_to_bytes(object, id);
    struct ask *a = ask_make(WANT_PLACE, MR_STR(""), ctx);
    a->place_fn = fn;
    a->object = object;
    const struct mr_str argv[] = {MR_STR("HGET"), mr_str(d->places_key), mr_str_of(id, 16)};
    send(d, a, MR_ARRAY_LEN(argv), argv);
}

static int resolve_some(struct mr_directory *d, const struct mr_str *names, size_t count,
    mr_name_fn fn, void *ctx, struct mr_error *e)
{
    struct mr_str argv[2 + NAMES_AT_ONCE] = {MR_STR("HMGET"), mr_str(d->names_key)};
    struct mr_reply *reply = NULL;
    for (size_t i = 0; i < count; i++)
        argv[2 + i] = names[i];
    int err = mr_redis_call(d->redis, 2 + count, argv, &reply, e);
    if (err) return err;
    if (mr_reply_type(reply) != MR_REPLY_LIST || mr_reply_count(reply) != count)
        err =
            mr_fail(e, MR_EFORMAT, "Redis: the answer to a lookup of names has an unexpected form");
    for (size_t i = 0; !err && i < count; i++) {
        const struct mr_reply *one = mr_reply_at(reply, i);
        struct mr_name_record record;
        if (mr_reply_type(one) == MR_REPLY_NIL)
            fn(ctx, MR_ENOENT, NULL);
        else if (record_unpack(names[i], mr_reply_text(one), &record))
            fn(ctx, MR_OK, &record);
        else
            fn(ctx, MR_EFORMAT, NULL);
    }
    mr_reply_free(&reply);
    return err;
}

int mr_directory_resolve_sync(struct mr_directory *d, const struct mr_str *names, size_t count,
    mr_name_fn fn, void *ctx, struct mr_error *e)
{
    int err = MR_OK;
    for (size_t i = 0; i < count && !err; i += NAMES_AT_ONCE)
        err = resolve_some(d, names + i, MR_MIN(count - i, (size_t)NAMES_AT_ONCE), fn, ctx, e);
    return err;
}
