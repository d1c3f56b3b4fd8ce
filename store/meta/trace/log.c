/* An entry is a block of spans with the counts of its job, or the counts alone. Entries wait in one
 * list in the order in which they came. A call to Redis carries entries from the front of the list;
 * they leave the list when Redis has answered. When a block is first sent, the log decides for good
 * whether the block goes to the job's stream in Redis, to a file, or nowhere. The call also writes
 * the counts into a hash in Redis, so the streams and the hash agree after every call.
 *
 * After each connect the log reads the hash of counts. The first time, it learns which traces
 * earlier processes left, and deletes those of jobs that do not live any more. Later, it notices
 * traces that Redis has lost. */
#include "store/meta/trace/log.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"
#include "store/meta/scripts.h"
#include "store/meta/trace/events.h"
#include "store/meta/trace/jobs.h"
#include "store/meta/trace/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL_ENTRIES_MAX 16
#define CALL_BYTES_MAX ((size_t)128 << 10)
#define WAITING_BYTES_MAX ((size_t)32 << 20)
#define ENTRY_FIELDS 4
#define RETRY MR_SECOND
#define LOADED_BYTES_MAX ((size_t)64 << 20)

struct entry {
    struct mr_list node;
    mr_job_id job;
    uint64_t number;
    char what; /* kind of the entry (trace_write.lua); '?': not decided yet */
    uint32_t count;
    struct mr_trace_place place;    /* place of the block, for an entry 'f' */
    struct mr_trace_waiting *block; /* the block or sheet, which views share; NULL: counts alone */
};

struct mr_trace_log {
    struct mr_trace_log_config config;
    struct mr_redis *redis;
    char *prefix, *dir, *cluster_key, *counts_key;
    /* The jobs that live, ascending; used until the hash of counts was read for the first time. */
    mr_job_id *alive;
    size_t alive_count;
    struct mr_trace_jobs jobs;
    struct mr_list entries;
    size_t waiting_bytes;
    uint64_t number; /* number of the next entry */
    uint64_t bytes, file_bytes;
    uint64_t spans, lost;
    int file_err; /* error of the last write to a file */
    /* Number of entries, at the front of the list, that the call under way carries. 0: no call is
     * under way. */
    uint32_t sent;
    mr_time retry; /* when to try again after a failed call; MR_NEVER: no call has failed */
    bool is_here, is_loaded, was_loaded, is_refused;
};

static bool is_alive(const struct mr_trace_log *l, mr_job_id id)
{
    if (mr_trace_is_segment(id)) return true;
    for (size_t low = 0, high = l->alive_count; low < high;) {
        size_t mid = low + (high - low) / 2;
        if (l->alive[mid].v == id.v) return true;
        if (l->alive[mid].v < id.v)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

static void not_alive(struct mr_trace_log *l, mr_job_id id)
{
    for (size_t i = 0; i < l->alive_count; i++)
        if (l->alive[i].v == id.v) {
            l->alive_count--;
            memmove(&l->alive[i], &l->alive[i + 1], (l->alive_count - i) * sizeof *l->alive);
            return;
        }
}

/* ---- entries --------------------------------------------------------------------------------- */

static struct mr_str bytes_of(const struct entry *e)
{
    return e->block ? mr_str_of(e->block->bytes, e->block->n) : (struct mr_str){0};
}

static size_t memory_of(const struct entry *e)
{
    return sizeof *e + (e->block ? sizeof *e->block + e->block->n : 0);
}

static struct entry *entry_add(struct mr_trace_log *l, mr_job_id job, char what)
{
    struct entry *e = mr_alloc(sizeof *e);
    e->job = job;
    e->number = l->number++;
    e->what = what;
    l->waiting_bytes += sizeof *e;
    mr_list_add_tail(&l->entries, &e->node);
    return e;
}

/* Queues a block with `count` spans, or a sheet. Returns the number of the entry. */
static uint64_t block_add(
    struct mr_trace_log *l, mr_job_id job, struct mr_str bytes, bool is_sheet, uint32_t count)
{
    struct entry *e = entry_add(l, job, '?');
    e->count = count;
    e->block = mr_trace_waiting_new(job, e->number, is_sheet, bytes);
    l->waiting_bytes += memory_of(e) - sizeof *e;
    return e->number;
}

static void entry_free(struct mr_trace_log *l, struct entry **ep)
{
    struct entry *e = *ep;
    *ep = NULL;
    l->waiting_bytes -= memory_of(e);
    mr_trace_waiting_put(&e->block);
    mr_release(e);
}

/* Queues an entry for the changed counts of a job, unless a queued entry of the job will carry
 * them. */
static void counts_add(struct mr_trace_log *l, struct mr_trace_job *j)
{
    if (j->waiting || j->counts_waiting || l->is_refused) return;
    j->counts_waiting = true;
    (void)entry_add(l, j->id, 'c');
}

static void lose(struct mr_trace_log *l, struct mr_trace_job *j, uint64_t count)
{
    j->counts.lost += count;
    l->lost += count;
    counts_add(l, j);
}

static bool goes_to_redis(const struct mr_trace_log *l, const struct mr_trace_job *j, size_t n)
{
    return j->counts.bytes + n <= l->config.job_bytes_max && l->bytes + n <= l->config.bytes_max;
}

/* Decides where the block of an entry goes: to Redis, to a file, or nowhere. */
static void settle(struct mr_trace_log *l, struct entry *e, struct mr_trace_job *j)
{
    struct mr_str bytes = bytes_of(e);
    if (goes_to_redis(l, j, bytes.n)) {
        e->what = e->block->is_sheet ? 's' : 'b';
        j->counts.bytes += bytes.n;
        l->bytes += bytes.n;
        return;
    }
    bool fits = l->dir && l->file_bytes + bytes.n <= l->config.file_bytes_max;
    if (fits) l->file_err = mr_trace_file_append(l->dir, j->id, bytes, &e->place);
    if (fits && !l->file_err) {
        e->what = e->block->is_sheet ? 'g' : 'f';
        j->counts.file_bytes += bytes.n;
        l->file_bytes += bytes.n;
        return;
    }
    e->what = 'c';
    j->counts.lost += e->count;
    l->lost += e->count;
}

/* Removes from the list the entries of the call that Redis has answered. */
static void written(struct mr_trace_log *l)
{
    for (; l->sent; l->sent--) {
        struct entry *e = MR_LIST_ITEM(mr_list_pop_head(&l->entries), struct entry, node);
        struct mr_trace_job *j = mr_trace_jobs_find(&l->jobs, e->job);
        if (j && e->block && j->waiting) j->waiting--;
        if (j && !e->block) j->counts_waiting = false;
        if (j) j->told = true;
        entry_free(l, &e);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void tell(struct mr_trace_log *l, enum mr_trace_news_kind what, int code, void *p)
{
    l->config.tell(l->config.ctx, (struct mr_trace_news){what, code, p});
}

static void on_state(void *ctx, bool here, const char *why)
{
    (void)why;
    tell(ctx, here ? MR_TRACE_HERE : MR_TRACE_AWAY, 0, NULL);
}

static void on_written(void *ctx, int err, const struct mr_reply *reply)
{
    int code = err;
    if (!err && mr_reply_type(reply) == MR_REPLY_ERROR) code = MR_EINTERNAL;
    if (!err && mr_str_eq(mr_reply_text(reply), MR_STR("refused"))) code = MR_ESTATE;
    tell(ctx, MR_TRACE_WRITTEN, code, NULL);
}

/* Copies the hash, because the reply is borrowed. Each text of the copy is a uint32_t length and
 * the bytes. */
static void on_loaded(void *ctx, int err, const struct mr_reply *reply)
{
    struct mr_buf *b = mr_alloc(sizeof *b);
    mr_buf_init(b, LOADED_BYTES_MAX);
    for (size_t i = 0; !err && i < mr_reply_count(reply); i++) {
        struct mr_str text = mr_reply_text(mr_reply_at(reply, i));
        uint32_t n = (uint32_t)text.n;
        mr_buf_add(b, &n, sizeof n);
        mr_buf_add_str(b, text);
    }
    tell(ctx, MR_TRACE_LOADED, err, b);
}

struct call {
    struct mr_str argv[5 + CALL_ENTRIES_MAX + 2 + ENTRY_FIELDS * CALL_ENTRIES_MAX];
    size_t argc;
    char *texts[CALL_ENTRIES_MAX][2];
    struct mr_buf counts[CALL_ENTRIES_MAX], places[CALL_ENTRIES_MAX];
    uint32_t count;
};

static void call_add(
    const struct mr_trace_log *l, struct call *c, uint32_t i, const struct entry *e)
{
    size_t at = 7 + c->count + ENTRY_FIELDS * (size_t)i;
    const struct mr_trace_job *j = mr_trace_jobs_find(&l->jobs, e->job);
    const struct mr_trace_counts none = {0};
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(e->job, id);
    mr_buf_init(&c->counts[i], 64);
    mr_buf_init(&c->places[i], 64);
    mr_trace_counts_pack(j ? &j->counts : &none, &c->counts[i]);
    mr_trace_place_pack(e->place, &c->places[i]);
    c->texts[i][0] = mr_format("%s" MR_META_TRACE "%s", l->prefix, id);
    c->texts[i][1] = mr_format("%" PRIu32 "-%" PRIu64 "|%s", l->config.epoch, e->number, id);
    c->argv[5 + i] = mr_str(c->texts[i][0]);
    c->argv[at] = mr_str_of(&e->what, 1);
    c->argv[at + 1] = mr_str(c->texts[i][1]);
    c->argv[at + 2] = mr_buf_str(&c->counts[i]);
    c->argv[at + 3] = e->what == 'b' || e->what == 's' ? bytes_of(e) : MR_STR("");
    if (e->what == 'f' || e->what == 'g') c->argv[at + 3] = mr_buf_str(&c->places[i]);
}

static void call_fini(struct call *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        mr_release(c->texts[i][0]);
        mr_release(c->texts[i][1]);
        mr_buf_fini(&c->counts[i]);
        mr_buf_fini(&c->places[i]);
    }
}

/* Returns how many entries the next call carries, and decides where the blocks among them go. */
static uint32_t choose(struct mr_trace_log *l)
{
    uint32_t count = 0;
    size_t bytes = 0;
    MR_LIST_EACH(node, &l->entries)
    {
        struct entry *e = MR_LIST_ITEM(node, struct entry, node);
        struct mr_trace_job *j = mr_trace_jobs_find(&l->jobs, e->job);
        size_t n = bytes_of(e).n;
        if (count == CALL_ENTRIES_MAX || (count && bytes + n > CALL_BYTES_MAX)) break;
        mr_assert(j || e->what != '?'); /* the entries of a job are removed with the job */
        if (e->what == '?') settle(l, e, j);
        bytes += n;
        count++;
    }
    return count;
}

static void pump(struct mr_trace_log *l)
{
    if (l->sent || !l->is_here || !l->is_loaded || l->is_refused) return;
    if (mr_list_is_empty(&l->entries)) return;
    struct call c = {.count = choose(l)};
    char count[16];
    char epoch[16];
    char incarnation[24];
    (void)snprintf(count, sizeof count, "%" PRIu32, c.count + 2);
    (void)snprintf(epoch, sizeof epoch, "%" PRIu32, l->config.epoch);
    c.argv[0] = MR_STR("EVAL");
    c.argv[1] = mr_script_trace_write();
    c.argv[2] = mr_str(count);
    c.argv[3] = mr_str(l->cluster_key);
    c.argv[4] = mr_str(l->counts_key);
    (void)snprintf(incarnation, sizeof incarnation, "%016" PRIx64, l->config.incarnation);
    c.argv[5 + c.count] = mr_str(epoch);
    c.argv[6 + c.count] = mr_str(incarnation);
    c.argc = 7 + c.count + ENTRY_FIELDS * (size_t)c.count;
    uint32_t i = 0;
    MR_LIST_EACH(node, &l->entries)
    {
        if (i == c.count) break;
        call_add(l, &c, i++, MR_LIST_ITEM(node, struct entry, node));
    }
    int err = mr_redis_send(l->redis, c.argc, c.argv, on_written, l);
    if (!err) l->sent = c.count;
    call_fini(&c);
}

static void load(struct mr_trace_log *l)
{
    const struct mr_str argv[] = {MR_STR("HGETALL"), mr_str(l->counts_key)};
    l->is_loaded = false;
    (void)mr_redis_send(l->redis, MR_ARRAY_LEN(argv), argv, on_loaded, l);
}

/* ---- what Redis has -------------------------------------------------------------------------- */

static void delete_file(void *ctx, mr_job_id job)
{
    struct mr_trace_log *l = ctx;
    if (!is_alive(l, job) && !mr_trace_jobs_find(&l->jobs, job)) mr_trace_file_remove(l->dir, job);
}

static void loaded_row(struct mr_trace_log *l, struct mr_str name, struct mr_str value)
{
    mr_job_id id;
    struct mr_trace_counts had = {0};
    if (mr_job_id_parse(name, &id)) return;
    struct mr_trace_job *j = mr_trace_jobs_find(&l->jobs, id);
    if (l->was_loaded) { /* the counts in memory are newer than those in Redis */
        if (j) j->seen = true;
        return;
    }
    if (!j && !is_alive(l, id)) {
        (void)entry_add(l, id, 'd');
        return;
    }
    if (mr_trace_counts_unpack(value, &had)) had = (struct mr_trace_counts){0};
    j = mr_trace_jobs_add(&l->jobs, id);
    j->told = true;
    j->counts.spans += had.spans;
    j->counts.lost += had.lost;
    j->counts.bytes += had.bytes;
    j->counts.file_bytes += had.file_bytes;
    l->bytes += had.bytes;
    l->file_bytes += had.file_bytes;
}

/* Corrects the counts of a job whose trace Redis has lost. */
static void unload(struct mr_trace_log *l, struct mr_trace_job *j)
{
    l->bytes -= j->counts.bytes;
    j->counts.bytes = 0;
    counts_add(l, j);
}

static void loaded(struct mr_trace_log *l, const struct mr_buf *b)
{
    struct mr_str pair[2];
    for (uint32_t i = 0; i < l->jobs.count; i++)
        l->jobs.items[i].seen = false;
    for (size_t at = 0, i = 0; at < b->n; i++) {
        uint32_t n = 0;
        memcpy(&n, b->p + at, sizeof n);
        pair[i & 1] = mr_str_of(b->p + at + sizeof n, n);
        at += sizeof n + n;
        if (i & 1) loaded_row(l, pair[0], pair[1]);
    }
    for (uint32_t i = 0; l->was_loaded && i < l->jobs.count; i++)
        if (!l->jobs.items[i].seen && l->jobs.items[i].told) unload(l, &l->jobs.items[i]);
    if (!l->was_loaded && l->dir) mr_trace_file_each(l->dir, delete_file, l);
    l->is_loaded = l->was_loaded = true;
    mr_release(l->alive);
    l->alive = NULL;
    l->alive_count = 0;
}

static void drop_all(struct mr_trace_log *l)
{
    for (struct mr_list *n = mr_list_pop_head(&l->entries); n; n = mr_list_pop_head(&l->entries)) {
        struct entry *e = MR_LIST_ITEM(n, struct entry, node);
        entry_free(l, &e);
    }
    l->sent = 0;
}

static void on_answer(struct mr_trace_log *l, mr_time now, int code)
{
    /* MR_EINTERNAL means that Redis refused the entries. The counts will show that they are
     * lost. */
    if (code == MR_OK || code == MR_EINTERNAL) {
        written(l);
        pump(l);
        return;
    }
    l->sent = 0;
    if (code == MR_ESTATE) {
        l->is_refused = true;
        drop_all(l);
        return;
    }
    l->retry = mr_time_after(now, RETRY); /* Redis is away or out of memory */
}

void mr_trace_news_fini(struct mr_trace_news *news)
{
    struct mr_buf *b = news->p;
    if (b) mr_buf_fini(b);
    mr_release(b);
    news->p = NULL;
}

void mr_trace_log_hear(struct mr_trace_log *l, mr_time now, struct mr_trace_news news)
{
    switch (news.what) {
    case MR_TRACE_HERE:
        l->is_here = true;
        load(l);
        break;
    case MR_TRACE_AWAY: l->is_here = false; break;
    case MR_TRACE_WRITTEN: on_answer(l, now, news.code); break;
    case MR_TRACE_LOADED:
        if (news.code)
            l->retry = mr_time_after(now, RETRY);
        else
            loaded(l, news.p);
        pump(l);
        break;
    }
    mr_trace_news_fini(&news);
}

mr_time mr_trace_log_deadline(const struct mr_trace_log *l)
{
    return l->retry;
}

void mr_trace_log_tick(struct mr_trace_log *l, mr_time now)
{
    if (now < l->retry) return;
    l->retry = MR_NEVER;
    if (l->is_here && !l->is_loaded) load(l);
    pump(l);
}

bool mr_trace_log_is_idle(const struct mr_trace_log *l)
{
    return mr_list_is_empty(&l->entries) || l->is_refused;
}

/* ---- calls by the owner's thread ------------------------------------------------------------- */

uint64_t mr_trace_log_add(
    struct mr_trace_log *l, mr_job_id job, struct mr_str block, uint32_t count)
{
    struct mr_trace_job *j = mr_trace_jobs_add(&l->jobs, job);
    j->counts.spans += count;
    l->spans += count;
    if (l->waiting_bytes + block.n > WAITING_BYTES_MAX || l->is_refused) {
        lose(l, j, count);
        return 0;
    }
    j->waiting++;
    uint64_t number = block_add(l, job, block, false, count);
    pump(l);
    return number;
}

void mr_trace_log_add_sheet(struct mr_trace_log *l, mr_job_id job, struct mr_str sheet)
{
    struct mr_trace_job *j = mr_trace_jobs_add(&l->jobs, job);
    if (l->waiting_bytes + sheet.n > WAITING_BYTES_MAX || l->is_refused) return;
    j->waiting++;
    (void)block_add(l, job, sheet, true, 0);
    pump(l);
}

void mr_trace_log_lose(struct mr_trace_log *l, mr_job_id job, uint64_t count)
{
    struct mr_trace_job *j = mr_trace_jobs_add(&l->jobs, job);
    j->counts.spans += count;
    l->spans += count;
    lose(l, j, count);
    pump(l);
}

void mr_trace_log_forget(struct mr_trace_log *l, mr_job_id job)
{
    struct mr_trace_job *j = mr_trace_jobs_find(&l->jobs, job);
    /* When the hash of counts is read, a trace of this job is deleted. */
    if (!l->was_loaded) not_alive(l, job);
    if (!j) return;
    l->bytes -= j->counts.bytes;
    l->file_bytes -= j->counts.file_bytes;
    if (l->dir) mr_trace_file_remove(l->dir, job);
    mr_trace_jobs_remove(&l->jobs, j);
    uint32_t i = 0;
    MR_LIST_EACH(node, &l->entries) /* the queued entries of a deleted job are useless */
    {
        struct entry *e = MR_LIST_ITEM(node, struct entry, node);
        if (i++ < l->sent || e->job.v != job.v) continue;
        mr_list_remove(&e->node);
        entry_free(l, &e);
    }
    (void)entry_add(l, job, 'd');
    pump(l);
}

static void view(const struct mr_trace_log *l, mr_job_id job, bool all, struct mr_trace_view *out)
{
    mr_trace_view_init(out, job);
    out->epoch = l->config.epoch;
    out->number = l->number;
    const struct mr_trace_job *j = mr_trace_jobs_find(&l->jobs, job);
    if (j) out->spans = j->counts.spans;
    MR_LIST_EACH(node, &l->entries)
    {
        struct entry *e = MR_LIST_ITEM(node, struct entry, node);
        if (!e->block || (!all && e->job.v != job.v)) continue;
        out->number = MR_MIN(out->number, e->number);
        /* the block of an entry 'c' was dropped and has been counted as lost */
        if (e->what != 'c') mr_trace_view_add(out, e->block);
    }
}

void mr_trace_log_view(const struct mr_trace_log *l, mr_job_id job, struct mr_trace_view *out)
{
    view(l, job, false, out);
}

void mr_trace_log_view_all(const struct mr_trace_log *l, mr_job_id job, struct mr_trace_view *out)
{
    view(l, job, true, out);
}

uint32_t mr_trace_log_segments(const struct mr_trace_log *l, mr_job_id *out, uint32_t max)
{
    return mr_trace_jobs_segments(&l->jobs, false, out, max);
}

uint32_t mr_trace_log_sample_segments(const struct mr_trace_log *l, mr_job_id *out, uint32_t max)
{
    return mr_trace_jobs_segments(&l->jobs, true, out, max);
}

void mr_trace_log_totals(const struct mr_trace_log *l, struct mr_trace_log_totals *out)
{
    *out = (struct mr_trace_log_totals){.spans = l->spans,
        .lost = l->lost,
        .bytes = l->bytes,
        .file_bytes = l->file_bytes,
        .file_err = l->file_err,
        .waiting_bytes = l->waiting_bytes};
}

static int by_id(const void *a, const void *b)
{
    const mr_job_id *x = a;
    const mr_job_id *y = b;
    return x->v < y->v ? -1 : x->v > y->v;
}

int mr_trace_log_open(
    const struct mr_trace_log_config *config, struct mr_trace_log **out, struct mr_error *e)
{
    MR_AUTO(mr_trace_log_close) struct mr_trace_log *l = mr_alloc(sizeof *l);
    l->config = *config;
    l->prefix = mr_copy_text(config->prefix ? config->prefix : MR_META_PREFIX);
    l->dir = config->dir ? mr_copy_text(config->dir) : NULL;
    l->cluster_key = mr_format("%s" MR_META_CLUSTER, l->prefix);
    l->counts_key = mr_format("%s" MR_META_TRACES, l->prefix);
    l->number = 1;
    l->retry = MR_NEVER;
    l->alive_count = config->jobs_count;
    l->alive = mr_alloc_array(MR_MAX(config->jobs_count, (size_t)1), sizeof *l->alive);
    if (config->jobs_count) memcpy(l->alive, config->jobs, config->jobs_count * sizeof *l->alive);
    qsort(l->alive, l->alive_count, sizeof *l->alive, by_id);
    mr_list_init(&l->entries);
    const struct mr_redis_config link = {
        .address = config->address, .password = config->password, .on_state = on_state, .ctx = l};
    int err = mr_redis_open(&link, &l->redis, e);
    if (err) return err;
    *out = MR_STEAL(l);
    return MR_OK;
}

void mr_trace_log_close(struct mr_trace_log **lp)
{
    struct mr_trace_log *l = *lp;
    *lp = NULL;
    if (!l) return;
    mr_redis_close(&l->redis);
    drop_all(l);
    mr_release(l->prefix);
    mr_release(l->dir);
    mr_release(l->cluster_key);
    mr_release(l->counts_key);
    mr_release(l->alive);
    mr_trace_jobs_fini(&l->jobs);
    mr_release(l);
}
