/* Knows one stream and one hash in Redis and the Lua call that writes them together. Records wait
 * in a list until they are acknowledged; one call is under way at a time, and while it is, the next
 * one grows. After a lost connection the first call simply repeats what is unacknowledged: the
 * script compares the first sequence number with the last it kept, so nothing is written twice. */
#include "store/meta/journal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define CALL_RECORDS_MAX 1000
#define CALL_BYTES_MAX ((size_t)4 << 20)
#define READ_RECORDS 256

/* KEYS: cluster, journal. ARGV: id, epoch, first sequence, fresh (1: what Redis has is replaced),
 * then the records. Answers {"ok", last} | {"behind", last} | {"refused", epoch}. */
static const char append_script[] =
    "local c = redis.call('HMGET', KEYS[1], 'id', 'epoch', 'sequence')\n"
    "local first = tonumber(ARGV[3])\n"
    "if c[1] and c[1] ~= ARGV[1] then return {'refused', tonumber(c[2] or 0)} end\n"
    "if c[2] and tonumber(c[2]) > tonumber(ARGV[2]) then return {'refused', tonumber(c[2])} end\n"
    "local last = tonumber(c[3] or 0)\n"
    "if ARGV[4] == '1' then\n"
    "  redis.call('DEL', KEYS[2])\n"
    "  redis.call('HSET', KEYS[1], 'id', ARGV[1], 'epoch', ARGV[2], 'base', ARGV[3])\n"
    "  last = first - 1\n"
    "end\n"
    "if last < first - 1 then return {'behind', last} end\n"
    "local skip = last - (first - 1)\n"
    "local count = #ARGV - 4\n"
    "for i = skip + 1, count do\n"
    "  redis.call('XADD', KEYS[2], string.format('%d-0', first + i - 1), 'r', ARGV[4 + i])\n"
    "end\n"
    "if count > skip then last = first + count - 1 end\n"
    "redis.call('HSET', KEYS[1], 'sequence', string.format('%d', last))\n"
    "return {'ok', last}\n";

/* KEYS: cluster. ARGV: id to take if there is none, epoch floor. Answers {id, epoch, sequence,
 * base}. */
static const char epoch_script[] =
    "redis.call('HSETNX', KEYS[1], 'id', ARGV[1])\n"
    "local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch') or 0) + 1\n"
    "if epoch < tonumber(ARGV[2]) then epoch = tonumber(ARGV[2]) end\n"
    "redis.call('HSET', KEYS[1], 'epoch', string.format('%d', epoch))\n"
    "local c = redis.call('HMGET', KEYS[1], 'id', 'sequence', 'base')\n"
    "return {c[1], epoch, tonumber(c[2] or 0), tonumber(c[3] or 1)}\n";

/* KEYS: cluster, journal. ARGV: epoch, base. */
static const char base_script[] =
    "if tonumber(redis.call('HGET', KEYS[1], 'epoch') or 0) ~= tonumber(ARGV[1]) then return 0 end\n"
    "redis.call('HSET', KEYS[1], 'base', ARGV[2])\n"
    "return redis.call('XTRIM', KEYS[2], 'MINID', ARGV[2] .. '-0')\n";

struct record {
    struct mr_list node;
    uint64_t sequence;
    size_t n;
    char bytes[];
};

struct mr_journal {
    struct mr_journal_config config;
    struct mr_redis *redis;
    char *cluster_key;
    char *stream_key;
    char cluster_id[33];
    atomic_uint epoch;

    pthread_mutex_t lock;
    struct mr_list records; /* unacknowledged, in order */
    size_t bytes;
    uint64_t last;  /* sequence of the newest record appended */
    bool fresh;     /* the next call replaces what Redis has */
    bool under_way; /* a call is */
    bool under_way_fresh;
    bool stopped; /* refused, or waiting for the owner's snapshot */
    uint32_t age; /* counts rewinds: an answer to an older call is void */
};

struct call {
    struct mr_journal *j;
    uint32_t age;
};

static struct mr_str number_text(char out[24], uint64_t v)
{
    int n = snprintf(out, 24, "%" PRIu64, v);
    return mr_str_of(out, (size_t)n);
}

static void on_answer(void *ctx, int err, const struct mr_reply *reply);

/* Starts the next call if there is something to send and none is under way. */
static void pump(struct mr_journal *j)
{
    struct mr_str argv[7 + CALL_RECORDS_MAX];
    char epoch[24];
    char first[24];
    size_t argc = 0;
    size_t bytes = 0;
    (void)pthread_mutex_lock(&j->lock);
    if (j->under_way || j->stopped || mr_list_is_empty(&j->records) ||
        !mr_redis_is_here(j->redis)) {
        (void)pthread_mutex_unlock(&j->lock);
        return;
    }
    argv[argc++] = MR_STR("EVAL");
    argv[argc++] = mr_str(append_script);
    argv[argc++] = MR_STR("2");
    argv[argc++] = mr_str(j->cluster_key);
    argv[argc++] = mr_str(j->stream_key);
    argv[argc++] = mr_str(j->cluster_id);
    argv[argc++] = number_text(epoch, atomic_load(&j->epoch));
    size_t fixed = argc;
    argc += 2;
    struct mr_str more[CALL_RECORDS_MAX];
    size_t count = 0;
    uint64_t first_sequence = 0;
    MR_LIST_EACH(node, &j->records)
    {
        struct record *r = MR_LIST_ITEM(node, struct record, node);
        if (count == CALL_RECORDS_MAX - 2 || (count && bytes + r->n > CALL_BYTES_MAX)) break;
        if (!count) first_sequence = r->sequence;
        more[count++] = mr_str_of(r->bytes, r->n);
        bytes += r->n;
    }
    argv[fixed] = number_text(first, first_sequence);
    argv[fixed + 1] = j->fresh ? MR_STR("1") : MR_STR("0");
    memcpy(argv + argc, more, count * sizeof *more);
    argc += count;
    struct call *c = mr_alloc(sizeof *c);
    *c = (struct call){j, j->age};
    j->under_way = true;
    j->under_way_fresh = j->fresh;
    int err = mr_redis_send(j->redis, argc, argv, on_answer, c);
    if (err) {
        j->under_way = false; /* on_state(here) pumps again */
        mr_release(c);
    }
    (void)pthread_mutex_unlock(&j->lock);
}

/* Drops records up to `last`; the lock is held. */
static void drop_acked(struct mr_journal *j, uint64_t last)
{
    while (!mr_list_is_empty(&j->records)) {
        struct record *r = MR_LIST_ITEM(j->records.next, struct record, node);
        if (r->sequence > last) break;
        mr_list_remove(&r->node);
        j->bytes -= r->n;
        mr_release(r);
    }
}

static void on_answer(void *ctx, int err, const struct mr_reply *reply)
{
    struct call *c = ctx;
    struct mr_journal *j = c->j;
    uint32_t age = c->age;
    mr_release(c);
    bool well = !err && mr_reply_type(reply) == MR_REPLY_LIST && mr_reply_count(reply) == 2;
    struct mr_str word = well ? mr_reply_text(mr_reply_at(reply, 0)) : MR_STR("");
    uint64_t number = well ? (uint64_t)mr_reply_int(mr_reply_at(reply, 1)) : 0;
    bool acked = mr_str_eq(word, MR_STR("ok"));
    bool behind = mr_str_eq(word, MR_STR("behind"));
    bool refused = mr_str_eq(word, MR_STR("refused"));
    (void)pthread_mutex_lock(&j->lock);
    j->under_way = false;
    bool stale = age != j->age;
    if (stale) acked = behind = false;
    if (j->stopped) behind = false; /* the owner knows already */
    if (acked) {
        if (j->under_way_fresh) j->fresh = false;
        drop_acked(j, number);
    }
    if (behind || refused) j->stopped = true;
    (void)pthread_mutex_unlock(&j->lock);
    if (acked && j->config.on_acked) j->config.on_acked(j->config.ctx, number);
    if (behind && j->config.on_rewind) j->config.on_rewind(j->config.ctx);
    if (refused && j->config.on_refused) j->config.on_refused(j->config.ctx, (uint32_t)number);
    if (!err) pump(j); /* on_state(here) pumps after a lost connection */
}

static void on_state(void *ctx, bool here, const char *why)
{
    struct mr_journal *j = ctx;
    if (j->config.on_state) j->config.on_state(j->config.ctx, here, why);
    if (here) pump(j);
}

/* After a reconnect, is what was acknowledged still there? An idle journal would not notice. */
static void on_check(void *ctx, int err, const struct mr_reply *reply)
{
    struct mr_journal *j = ctx;
    if (err) return;
    struct mr_str text = mr_reply_text(reply);
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%.*s", MR_STR_ARG(text));
    uint64_t kept = strtoull(digits, NULL, 10);
    (void)pthread_mutex_lock(&j->lock);
    bool none = mr_list_is_empty(&j->records);
    uint64_t expected =
        none ? j->last : MR_LIST_ITEM(j->records.next, struct record, node)->sequence - 1;
    bool behind = !j->stopped && !j->fresh && kept < expected;
    if (behind) j->stopped = true;
    (void)pthread_mutex_unlock(&j->lock);
    if (behind && j->config.on_rewind) j->config.on_rewind(j->config.ctx);
}

static void on_link(void *ctx, bool here, const char *why)
{
    struct mr_journal *j = ctx;
    if (here) {
        const struct mr_str argv[] = {MR_STR("HGET"), mr_str(j->cluster_key), MR_STR("sequence")};
        (void)mr_redis_send(j->redis, MR_ARRAY_LEN(argv), argv, on_check, j);
    }
    on_state(ctx, here, why);
}

static int take_epoch(
    struct mr_journal *j, uint32_t floor, uint64_t *sequence, uint64_t *base, struct mr_error *e)
{
    char floor_text[24];
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_str(epoch_script), MR_STR("1"),
        mr_str(j->cluster_key), mr_str(j->cluster_id), number_text(floor_text, floor)};
    struct mr_reply *reply = NULL;
    int err = mr_redis_call(j->redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return err;
    if (mr_reply_count(reply) != 4) {
        mr_reply_free(&reply);
        return mr_fail(e, MR_EFORMAT, "Redis: key %s is not a cluster record", j->cluster_key);
    }
    struct mr_str id = mr_reply_text(mr_reply_at(reply, 0));
    (void)snprintf(j->cluster_id, sizeof j->cluster_id, "%.*s", MR_STR_ARG(id));
    atomic_store(&j->epoch, (unsigned)mr_reply_int(mr_reply_at(reply, 1)));
    *sequence = (uint64_t)mr_reply_int(mr_reply_at(reply, 2));
    *base = (uint64_t)mr_reply_int(mr_reply_at(reply, 3));
    mr_reply_free(&reply);
    return MR_OK;
}

typedef int (*record_fn)(void *ctx, uint64_t sequence, struct mr_str record);

/* One entry of XRANGE: [id, [field, value]]. */
static int read_entry(const struct mr_reply *entry, uint64_t *sequence, struct mr_str *record)
{
    if (mr_reply_count(entry) != 2) return MR_EFORMAT;
    struct mr_str id = mr_reply_text(mr_reply_at(entry, 0));
    const struct mr_reply *fields = mr_reply_at(entry, 1);
    if (mr_reply_count(fields) != 2) return MR_EFORMAT;
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%.*s", MR_STR_ARG(id));
    *sequence = strtoull(digits, NULL, 10);
    *record = mr_reply_text(mr_reply_at(fields, 1));
    return MR_OK;
}

static int load_page(
    struct mr_journal *j, uint64_t *next, size_t *count, record_fn fn, struct mr_error *e)
{
    char from[24];
    const struct mr_str argv[] = {MR_STR("XRANGE"), mr_str(j->stream_key), number_text(from, *next),
        MR_STR("+"), MR_STR("COUNT"), MR_STR("256")};
    static_assert(READ_RECORDS == 256, "the text above");
    struct mr_reply *reply = NULL;
    int err = mr_redis_call(j->redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return err;
    *count = mr_reply_count(reply);
    for (size_t i = 0; i < *count && !err; i++) {
        uint64_t sequence = 0;
        struct mr_str record = {0};
        err = read_entry(mr_reply_at(reply, i), &sequence, &record);
        if (err || sequence < *next)
            err = mr_fail(e, MR_EFORMAT, "Redis: %s holds what is no record", j->stream_key);
        if (!err) err = fn(j->config.ctx, sequence, record);
        *next = sequence + 1;
    }
    mr_reply_free(&reply);
    return err;
}

static void make_cluster_id(char out[33])
{
    unsigned char raw[16];
    mr_assert(getrandom(raw, sizeof raw, 0) == (ssize_t)sizeof raw);
    for (size_t i = 0; i < sizeof raw; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

int mr_journal_open(const struct mr_journal_config *config, mr_duration timeout_ns,
    record_fn on_record, struct mr_journal **out, struct mr_journal_info *info, struct mr_error *e)
{
    MR_AUTO(mr_journal_close) struct mr_journal *j = mr_alloc(sizeof *j);
    const char *prefix = config->prefix ? config->prefix : MR_META_PREFIX;
    j->config = *config;
    j->cluster_key = mr_format("%s%s", prefix, MR_META_CLUSTER);
    j->stream_key = mr_format("%s%s", prefix, MR_META_JOURNAL);
    make_cluster_id(j->cluster_id);
    mr_list_init(&j->records);
    (void)pthread_mutex_init(&j->lock, NULL);
    j->stopped = true; /* until the epoch is taken */
    const struct mr_redis_config link = {
        .address = config->address, .password = config->password, .on_state = on_link, .ctx = j};
    int err = mr_redis_open(&link, &j->redis, e);
    if (err) return err;
    err = mr_redis_wait(j->redis, timeout_ns);
    if (err) return mr_fail(e, err, "Redis at %s does not answer", config->address);
    uint64_t sequence = 0;
    uint64_t base = 0;
    err = take_epoch(j, 1, &sequence, &base, e);
    if (err) return err;
    uint64_t next = base;
    for (size_t count = READ_RECORDS; count == READ_RECORDS;) {
        err = load_page(j, &next, &count, on_record, e);
        if (err) return err;
    }
    (void)pthread_mutex_lock(&j->lock);
    j->last = sequence;
    j->stopped = false;
    (void)pthread_mutex_unlock(&j->lock);
    *info = (struct mr_journal_info){.epoch = atomic_load(&j->epoch), .sequence = sequence};
    memcpy(info->cluster_id, j->cluster_id, sizeof info->cluster_id);
    *out = MR_STEAL(j);
    return MR_OK;
}

void mr_journal_close(struct mr_journal **jp)
{
    struct mr_journal *j = *jp;
    *jp = NULL;
    if (!j) return;
    mr_redis_close(&j->redis);
    drop_acked(j, UINT64_MAX);
    (void)pthread_mutex_destroy(&j->lock);
    mr_release(j->cluster_key);
    mr_release(j->stream_key);
    mr_release(j);
}

int mr_journal_raise_epoch(
    struct mr_journal *j, uint32_t at_least, uint32_t *epoch, struct mr_error *e)
{
    uint64_t sequence = 0;
    uint64_t base = 0;
    int err = take_epoch(j, at_least, &sequence, &base, e);
    if (!err) *epoch = atomic_load(&j->epoch);
    return err;
}

void mr_journal_append(struct mr_journal *j, uint64_t sequence, struct mr_str bytes)
{
    struct record *r = mr_alloc(sizeof *r + bytes.n);
    r->sequence = sequence;
    r->n = bytes.n;
    memcpy(r->bytes, bytes.p, bytes.n);
    (void)pthread_mutex_lock(&j->lock);
    mr_assert(sequence == j->last + 1);
    j->last = sequence;
    j->bytes += r->n;
    mr_list_add_tail(&j->records, &r->node);
    bool idle = !j->under_way;
    (void)pthread_mutex_unlock(&j->lock);
    if (idle) pump(j);
}

size_t mr_journal_unacked_bytes(struct mr_journal *j)
{
    (void)pthread_mutex_lock(&j->lock);
    size_t n = j->bytes;
    (void)pthread_mutex_unlock(&j->lock);
    return n;
}

void mr_journal_rewind(struct mr_journal *j)
{
    (void)pthread_mutex_lock(&j->lock);
    drop_acked(j, UINT64_MAX);
    j->fresh = true;
    j->stopped = false;
    j->age++;
    (void)pthread_mutex_unlock(&j->lock);
}

void mr_journal_set_base(struct mr_journal *j, uint64_t base)
{
    char epoch[24];
    char from[24];
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_str(base_script), MR_STR("2"),
        mr_str(j->cluster_key), mr_str(j->stream_key), number_text(epoch, atomic_load(&j->epoch)),
        number_text(from, base)};
    (void)mr_redis_send(
        j->redis, MR_ARRAY_LEN(argv), argv, NULL, NULL); /* missed: the next snapshot trims */
}

bool mr_journal_is_here(const struct mr_journal *j)
{
    return mr_redis_is_here(j->redis);
}
