/* The journal is a stream and a hash in Redis; a Lua script writes both together. Records wait in a
 * list until Redis acknowledges them. Up to CALLS_MAX calls are under way at a time; meanwhile
 * records collect for the next call. Redis runs the calls in order, and refuses a call if records
 * before it are missing. So when a call fails, the calls after it fail too, and all unacknowledged
 * records are sent again from the first one. That begins a new `turn`. The answer to a call of an
 * older turn can still acknowledge records. It begins no new turn, and does not make the owner
 * write a snapshot. The script skips records that Redis has, so no record is written twice. The
 * records of a call are the fields of one stream entry, which has the sequence number of its last
 * record as id: an entry for each record would double the cost of a call in Redis. */
#include "store/meta/journal/journal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "store/meta/journal/open.h"
#include "store/meta/redis.h"
#include "store/meta/scripts.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL_RECORDS_MAX 1000
#define CALL_BYTES_MAX ((size_t)2 << 20)
#define CALLS_MAX 4 /* calls under way at a time */

struct record {
    struct mr_list node;
    uint64_t sequence;
    size_t n;
    char bytes[];
};

struct mr_journal {
    struct mr_journal_config config;
    struct mr_redis *redis;
    struct mr_journal_keys keys;
    char cluster_id[MR_CLUSTER_ID_BYTES];
    char incarnation[MR_INCARNATION_TEXT];
    atomic_uint epoch;
    /* Redis answers, but its last answer about the journal was an error or had an unexpected
     * form. */
    atomic_bool is_doubted;
    /* The state that the owner was told last; used on the connection's thread. */
    bool told_here;
    char told_why[200];

    pthread_mutex_t lock;
    /* Records that are not acknowledged yet, in order. */
    struct mr_list records;
    size_t bytes;
    uint64_t last; /* sequence number of the newest record */
    /* The first record that was not sent in this turn. &records: all records were sent. */
    struct mr_list *next;
    uint32_t calls; /* calls to Redis that have no answer yet */
    /* The first record of a snapshot that will replace the journal in Redis. 0: no snapshot. */
    uint64_t begin;
    /* The last record of this snapshot. 0: no snapshot, or its end is not known yet. */
    uint64_t whole;
    /* True: no calls are sent, because the epoch was refused or the owner is writing a snapshot. */
    bool stopped;
    /* How often mr_journal_rewind has run. The answer to a call that was sent before the last
     * rewind acknowledges no record. */
    uint32_t age;
    uint32_t turn;        /* number of times that sending began again from the first record */
    char append_hash[41]; /* SHA-1 of the append script; "": Redis may not have the script */
};

struct call {
    struct mr_journal *j;
    uint32_t age;
    uint32_t turn;
};

static void on_answer(void *ctx, int err, const struct mr_reply *reply);

/* Fills `argv` with records from `next` on and returns their number. Sets `*end` to the first
 * record after these. If a call has the last record of a snapshot, no record follows it in the
 * call. The caller holds the lock. */
static size_t take_records(struct mr_journal *j, struct mr_str *argv, struct mr_list **end)
{
    size_t bytes = 0;
    size_t count = 0;
    struct mr_list *node = j->next;
    while (node != &j->records && count < CALL_RECORDS_MAX) {
        struct record *r = MR_LIST_ITEM(node, struct record, node);
        if (count && bytes + r->n > CALL_BYTES_MAX) break;
        argv[count++] = mr_str_of(r->bytes, r->n);
        bytes += r->n;
        node = node->next;
        if (r->sequence == j->whole) break;
    }
    *end = node;
    return count;
}

/* Sends one call. True: the call is sent. False: Redis is not connected, or too much is queued. The
 * caller holds the lock while the call is written, which keeps the calls in order. */
static bool send_call(struct mr_journal *j)
{
    enum { FIXED = 13 };
    struct mr_str argv[FIXED + CALL_RECORDS_MAX];
    char epoch[24];
    char first[24];
    char begin[24];
    char whole[24];
    char format[24];
    bool known = j->append_hash[0] != 0;
    struct mr_list *end = NULL;
    size_t count = take_records(j, argv + FIXED, &end);
    argv[0] = known ? MR_STR("EVALSHA") : MR_STR("EVAL");
    argv[1] = known ? mr_str(j->append_hash) : mr_script_journal_append();
    uint64_t sequence = MR_LIST_ITEM(j->next, struct record, node)->sequence;
    bool is_staged = sequence <= j->whole;
    argv[2] = MR_STR("3");
    argv[3] = mr_str(j->keys.cluster);
    argv[4] = mr_str(j->keys.stream);
    argv[5] = mr_str(j->keys.staging);
    argv[6] = mr_str(j->cluster_id);
    argv[7] = mr_journal_number(epoch, atomic_load(&j->epoch));
    argv[8] = mr_journal_number(first, sequence);
    argv[9] = mr_journal_number(begin, is_staged ? j->begin : 0);
    argv[10] = mr_journal_number(whole, is_staged ? j->whole : 0);
    argv[11] = mr_str(j->incarnation);
    argv[12] = mr_journal_number(format, MR_JOURNAL_FORMAT);
    struct call *c = mr_alloc(sizeof *c);
    *c = (struct call){j, j->age, j->turn};
    if (mr_redis_send(j->redis, FIXED + count, argv, on_answer, c)) {
        mr_release(c); /* on_link calls pump again when Redis is back */
        return false;
    }
    j->next = end;
    j->calls++;
    return true;
}

/* Sends calls while there are records to send and fewer than CALLS_MAX calls have no answer yet. */
static void pump(struct mr_journal *j)
{
    (void)pthread_mutex_lock(&j->lock);
    while (
        !j->stopped && j->next != &j->records && j->calls < CALLS_MAX && mr_redis_is_here(j->redis))
        if (!send_call(j)) break;
    (void)pthread_mutex_unlock(&j->lock);
}

/* Frees the records up to `last`. The caller holds the lock. */
static void drop_acked(struct mr_journal *j, uint64_t last)
{
    while (!mr_list_is_empty(&j->records)) {
        struct record *r = MR_LIST_ITEM(j->records.next, struct record, node);
        if (r->sequence > last) break;
        if (j->next == &r->node) j->next = r->node.next;
        mr_list_remove(&r->node);
        j->bytes -= r->n;
        mr_release(r);
    }
}

enum verdict { V_FAILED, V_UNKNOWN_SCRIPT, V_ACKED, V_BEHIND, V_REFUSED };

static enum verdict judge(int err, const struct mr_reply *reply, uint64_t *number)
{
    if (err) return V_FAILED;
    if (mr_reply_type(reply) == MR_REPLY_ERROR) {
        struct mr_str text = mr_reply_text(reply);
        return text.n >= 8 && !memcmp(text.p, "NOSCRIPT", 8) ? V_UNKNOWN_SCRIPT : V_FAILED;
    }
    if (mr_reply_type(reply) != MR_REPLY_LIST || mr_reply_count(reply) != 2) return V_FAILED;
    struct mr_str word = mr_reply_text(mr_reply_at(reply, 0));
    *number = (uint64_t)mr_reply_int(mr_reply_at(reply, 1));
    if (mr_str_eq(word, MR_STR("ok"))) return V_ACKED;
    if (mr_str_eq(word, MR_STR("behind"))) return V_BEHIND;
    return mr_str_eq(word, MR_STR("refused")) ? V_REFUSED : V_FAILED;
}

/* Tells the owner whether Redis serves the journal (`here`), and why, if that has changed. This
 * function and those below run in callbacks of the connection, which come one at a time. */
static void tell_state(struct mr_journal *j, bool here, const char *why)
{
    if (j->told_here == here && (here || strcmp(j->told_why, why) == 0)) return;
    j->told_here = here;
    (void)snprintf(j->told_why, sizeof j->told_why, "%s", why);
    if (j->config.on_state) j->config.on_state(j->config.ctx, here, why);
}

/* Notes that Redis has answered with an error or in an unexpected form; perhaps another program
 * uses the key. Only a person can repair this. Until the repair, the call is tried again after
 * growing pauses. */
static void doubt(struct mr_journal *j, const struct mr_reply *reply, const char *key)
{
    atomic_store(&j->is_doubted, true);
    bool is_error = mr_reply_type(reply) == MR_REPLY_ERROR;
    struct mr_str text = is_error ? mr_reply_text(reply) : MR_STR("an answer of another shape");
    /* Cuts the name and the line of the script from the error. */
    const char *tail = memmem(text.p, text.n, " script: ", 9);
    if (tail) text.n = (size_t)(tail - text.p);
    MR_AUTO(mr_free_ptr)
    char *why = key ? mr_format("%.*s (key %s)", MR_STR_ARG(text), key)
                    : mr_format("%.*s", MR_STR_ARG(text));
    mr_redis_pause(j->redis, why);
}

/* Ends the state that doubt() began, because Redis has executed a call again. */
static void trust(struct mr_journal *j)
{
    if (atomic_exchange(&j->is_doubted, false)) tell_state(j, true, "it serves again");
}

static void on_answer(void *ctx, int err, const struct mr_reply *reply)
{
    struct call c = *(struct call *)ctx;
    struct mr_journal *j = c.j;
    mr_release(ctx);
    uint64_t number = 0;
    enum verdict v = judge(err, reply, &number);
    (void)pthread_mutex_lock(&j->lock);
    j->calls--;
    bool acked = v == V_ACKED && c.age == j->age;
    bool of_turn = c.age == j->age && c.turn == j->turn;
    /* True: Redis lacks records, and the owner has to write a snapshot. False also if the owner
     * knows this already, or if a call before this one failed. */
    bool behind = v == V_BEHIND && of_turn && !j->stopped;
    if (acked) {
        if (number >= j->whole) j->begin = j->whole = 0;
        drop_acked(j, number);
    }
    if (of_turn && (v == V_FAILED || v == V_UNKNOWN_SCRIPT)) {
        if (v == V_UNKNOWN_SCRIPT) j->append_hash[0] = 0;
        j->next = j->records.next;
        j->turn++;
    }
    if (behind || v == V_REFUSED) j->stopped = true;
    (void)pthread_mutex_unlock(&j->lock);
    if (v == V_FAILED && reply) doubt(j, reply, NULL);
    if (v == V_ACKED) trust(j);
    if (acked && j->config.on_acked) j->config.on_acked(j->config.ctx, number);
    if (behind && j->config.on_rewind) j->config.on_rewind(j->config.ctx);
    if (v == V_REFUSED && j->config.on_refused)
        j->config.on_refused(j->config.ctx, (uint32_t)number);
    /* After a failure the connection is broken, or closed for a pause; when it is back, on_link
     * calls pump. */
    if (v != V_FAILED) pump(j);
}

/* Checks after a reconnect that Redis still has the records that it had acknowledged. A journal
 * without new records would not notice a loss otherwise. */
static void on_check(void *ctx, int err, const struct mr_reply *reply)
{
    struct mr_journal *j = ctx;
    if (err) return;
    if (mr_reply_type(reply) == MR_REPLY_ERROR) { /* the error says nothing about the records */
        doubt(j, reply, j->keys.cluster);
        return;
    }
    if (mr_reply_type(reply) != MR_REPLY_LIST || mr_reply_count(reply) != 2) return;
    struct mr_str text = mr_reply_text(mr_reply_at(reply, 0));
    struct mr_str whose = mr_reply_text(mr_reply_at(reply, 1));
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%.*s", MR_STR_ARG(text));
    uint64_t kept = strtoull(digits, NULL, 10);
    /* If the journal in Redis has the incarnation of another scheduler, Redis has an older copy of
     * the journal. */
    if (whose.n && !mr_str_eq(whose, mr_str(j->incarnation))) kept = 0;
    (void)pthread_mutex_lock(&j->lock);
    bool none = mr_list_is_empty(&j->records);
    uint64_t expected =
        none ? j->last : MR_LIST_ITEM(j->records.next, struct record, node)->sequence - 1;
    bool behind = !j->stopped && !j->whole && kept < expected;
    if (behind) j->stopped = true;
    (void)pthread_mutex_unlock(&j->lock);
    if (none) trust(j);
    if (behind && j->config.on_rewind) j->config.on_rewind(j->config.ctx);
}

static void on_loaded(void *ctx, int err, const struct mr_reply *reply)
{
    struct mr_journal *j = ctx;
    struct mr_str hash = err ? MR_STR("") : mr_reply_text(reply);
    if (hash.n != sizeof j->append_hash - 1 || mr_reply_type(reply) != MR_REPLY_TEXT) return;
    (void)pthread_mutex_lock(&j->lock);
    memcpy(j->append_hash, hash.p, hash.n);
    (void)pthread_mutex_unlock(&j->lock);
}

static void on_link(void *ctx, bool here, const char *why)
{
    struct mr_journal *j = ctx;
    (void)pthread_mutex_lock(&j->lock);
    j->append_hash[0] = 0; /* another Redis server may not have the script */
    (void)pthread_mutex_unlock(&j->lock);
    if (here) {
        const struct mr_str load[] = {MR_STR("SCRIPT"), MR_STR("LOAD"), mr_script_journal_append()};
        (void)mr_redis_send(j->redis, MR_ARRAY_LEN(load), load, on_loaded, j);
        const struct mr_str argv[] = {
            MR_STR("HMGET"), mr_str(j->keys.cluster), MR_STR("sequence"), MR_STR("incarnation")};
        (void)mr_redis_send(j->redis, MR_ARRAY_LEN(argv), argv, on_check, j);
    }
    if (!here || !atomic_load(&j->is_doubted)) tell_state(j, here, why);
    if (here) pump(j);
}

static int claim(struct mr_journal *j, struct mr_journal_claim *c, struct mr_error *e)
{
    *c = (struct mr_journal_claim){0};
    memcpy(c->cluster_id, j->cluster_id, sizeof c->cluster_id);
    memcpy(c->incarnation, j->incarnation, sizeof c->incarnation);
    int err = mr_journal_claim(j->redis, &j->keys, c, e);
    if (err) return err;
    memcpy(j->cluster_id, c->cluster_id, sizeof j->cluster_id);
    atomic_store(&j->epoch, c->epoch);
    return MR_OK;
}

int mr_journal_open(const struct mr_journal_config *config, mr_duration timeout_ns,
    mr_journal_record_fn on_record, struct mr_journal **out, struct mr_journal_info *info,
    struct mr_error *e)
{
    MR_AUTO(mr_journal_close) struct mr_journal *j = mr_alloc(sizeof *j);
    j->config = *config;
    mr_journal_keys_fill(&j->keys, config->prefix);
    mr_journal_make_cluster_id(j->cluster_id);
    uint64_t incarnation = mr_journal_draw_incarnation(j->incarnation);
    mr_list_init(&j->records);
    j->next = &j->records;
    (void)pthread_mutex_init(&j->lock, NULL);
    j->stopped = true; /* until the epoch is claimed, no call is sent */
    const struct mr_redis_config link = {
        .address = config->address, .password = config->password, .on_state = on_link, .ctx = j};
    int err = mr_redis_open(&link, &j->redis, e);
    if (err) return err;
    err = mr_redis_wait(j->redis, timeout_ns);
    if (err) return mr_fail(e, err, "Redis at %s does not answer", config->address);
    struct mr_journal_claim c;
    err = claim(j, &c, e);
    if (!err) err = mr_journal_load(j->redis, j->keys.stream, c.base, on_record, config->ctx, e);
    if (err) return err;
    (void)pthread_mutex_lock(&j->lock);
    j->last = c.sequence;
    j->stopped = false;
    (void)pthread_mutex_unlock(&j->lock);
    *info = (struct mr_journal_info){
        .epoch = c.epoch, .incarnation = incarnation, .sequence = c.sequence};
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
    mr_journal_keys_fini(&j->keys);
    mr_release(j);
}

void mr_journal_raise_epoch(struct mr_journal *j, uint32_t epoch)
{
    mr_assert(epoch > atomic_load(&j->epoch));
    atomic_store(&j->epoch, epoch);
}

void *mr_journal_record_new(size_t bytes)
{
    struct record *r = mr_alloc(sizeof *r + bytes);
    r->n = bytes;
    return r->bytes;
}

void mr_journal_record_free(void **record)
{
    if (*record) mr_release(MR_CONTAINER_OF((char *)*record, struct record, bytes[0]));
    *record = NULL;
}

void mr_journal_append(struct mr_journal *j, uint64_t sequence, struct mr_str bytes)
{
    void *record = mr_journal_record_new(bytes.n);
    memcpy(record, bytes.p, bytes.n);
    mr_journal_append_given(j, sequence, &record);
}

void mr_journal_append_given(struct mr_journal *j, uint64_t sequence, void **record)
{
    struct record *r = MR_CONTAINER_OF((char *)*record, struct record, bytes[0]);
    *record = NULL;
    r->sequence = sequence;
    (void)pthread_mutex_lock(&j->lock);
    mr_assert(sequence == j->last + 1);
    j->last = sequence;
    j->bytes += r->n;
    mr_list_add_tail(&j->records, &r->node);
    if (j->next == &j->records) j->next = &r->node;
    (void)pthread_mutex_unlock(&j->lock);
}

void mr_journal_flush(struct mr_journal *j)
{
    pump(j);
}

void mr_journal_rewind(struct mr_journal *j)
{
    (void)pthread_mutex_lock(&j->lock);
    drop_acked(j, UINT64_MAX);
    j->begin = j->last + 1;
    j->whole = 0;
    j->stopped = true; /* until the end of the snapshot is known, no call is sent */
    j->age++;
    j->turn++;
    (void)pthread_mutex_unlock(&j->lock);
}

void mr_journal_rewound(struct mr_journal *j)
{
    (void)pthread_mutex_lock(&j->lock);
    mr_assert(j->stopped);
    mr_assert(j->begin && j->begin <= j->last);
    j->whole = j->last;
    j->stopped = false;
    (void)pthread_mutex_unlock(&j->lock);
}

void mr_journal_set_base(struct mr_journal *j, uint64_t base)
{
    char epoch[24];
    char from[24];
    const struct mr_str argv[] = {MR_STR("EVAL"), mr_script_journal_base(), MR_STR("2"),
        mr_str(j->keys.cluster), mr_str(j->keys.stream),
        mr_journal_number(epoch, atomic_load(&j->epoch)), mr_journal_number(from, base)};
    /* If this call is lost, the call for the next snapshot trims the stream. */
    (void)mr_redis_send(j->redis, MR_ARRAY_LEN(argv), argv, NULL, NULL);
}

void mr_journal_attend(struct mr_journal *j, bool on)
{
    mr_redis_attend(j->redis, on);
}

void mr_journal_look(struct mr_journal *j)
{
    mr_redis_look(j->redis);
}

bool mr_journal_is_here(const struct mr_journal *j)
{
    return mr_redis_is_here(j->redis) && !atomic_load(&j->is_doubted);
}
