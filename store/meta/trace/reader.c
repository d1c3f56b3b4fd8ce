/* Reads a stream in small pages, so that other users of Redis do not wait long for one page. */
#include "store/meta/trace/reader.h"

#include "base/alloc.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"
#include "store/meta/trace/events.h"
#include "store/meta/trace/parts.h"
#include "store/meta/trace/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE "4" /* entries in a page; a page usually has 256 KiB */

struct mr_trace_cursor {
    const struct mr_trace_source *source;
    const struct mr_trace_view *view;
    mr_job_id job;
    char *key;
    char from[64];         /* where the next page begins: an id, or "(id" for the entry after it */
    struct mr_reply *page; /* NULL: the next page is to be read */
    size_t entry, entries; /* the next entry of the page, and their number */
    bool is_at_view, is_away; /* is_at_view: the pages have been read */
    size_t at;                /* offset of the next block in view->blocks */
    struct mr_buf file;
};

static const char *prefix_of(const struct mr_trace_source *s)
{
    return s->prefix ? s->prefix : MR_META_PREFIX;
}

struct mr_trace_cursor *mr_trace_cursor_open(
    const struct mr_trace_source *source, const struct mr_trace_view *view, mr_job_id job)
{
    struct mr_trace_cursor *c = mr_alloc(sizeof *c);
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(job, id);
    c->source = source;
    c->view = view;
    c->job = job;
    c->key = mr_format("%s" MR_META_TRACE "%s", prefix_of(source), id);
    (void)snprintf(c->from, sizeof c->from, "-");
    c->is_at_view = !source->redis;
    mr_buf_init(&c->file, MR_TRACE_BLOCK_BYTES_MAX);
    return c;
}

void mr_trace_cursor_close(struct mr_trace_cursor **cp)
{
    struct mr_trace_cursor *c = *cp;
    *cp = NULL;
    if (!c) return;
    mr_reply_free(&c->page);
    mr_buf_fini(&c->file);
    mr_release(c->key);
    mr_release(c);
}

bool mr_trace_cursor_is_away(const struct mr_trace_cursor *c)
{
    return c->is_away;
}

/* Reads the next page. False: no entries are left, or Redis does not answer. */
static bool page_read(struct mr_trace_cursor *c)
{
    char until[48];
    (void)snprintf(until, sizeof until, "(%" PRIu32 "-%" PRIu64, c->view->epoch, c->view->number);
    const struct mr_str argv[] = {MR_STR("XRANGE"), mr_str(c->key), mr_str(c->from), mr_str(until),
        MR_STR("COUNT"), MR_STR(PAGE)};
    mr_reply_free(&c->page);
    c->is_away = mr_redis_call(c->source->redis, MR_ARRAY_LEN(argv), argv, &c->page, NULL) != MR_OK;
    if (c->is_away) return false;
    c->entry = 0;
    c->entries = mr_reply_type(c->page) == MR_REPLY_LIST ? mr_reply_count(c->page) : 0;
    const struct mr_reply *last = c->entries ? mr_reply_at(c->page, c->entries - 1) : NULL;
    struct mr_str id = {0};
    if (last && mr_reply_count(last)) id = mr_reply_text(mr_reply_at(last, 0));
    if (id.n == 0 || id.n > 48) return false;
    (void)snprintf(c->from, sizeof c->from, "(%.*s", MR_STR_ARG(id));
    return true;
}

/* Returns the block of an entry, [id, [field, value]]; an empty text: the entry has none. */
static struct mr_str entry_block(struct mr_trace_cursor *c, const struct mr_reply *entry)
{
    const struct mr_str none = {0};
    struct mr_trace_place place;
    if (mr_reply_type(entry) != MR_REPLY_LIST || mr_reply_count(entry) != 2) return none;
    const struct mr_reply *fields = mr_reply_at(entry, 1);
    if (mr_reply_type(fields) != MR_REPLY_LIST || mr_reply_count(fields) < 2) return none;
    struct mr_str field = mr_reply_text(mr_reply_at(fields, 0));
    struct mr_str value = mr_reply_text(mr_reply_at(fields, 1));
    if (mr_str_eq(field, MR_STR("b"))) return value;
    if (!mr_str_eq(field, MR_STR("f")) || !c->source->dir) return none;
    if (mr_trace_place_unpack(value, &place)) return none;
    if (mr_trace_file_read(c->source->dir, c->job, place, &c->file)) return none;
    return mr_buf_str(&c->file);
}

/* Stores the next block from Redis or the view in `*block`, or an empty text if the entry has no
 * readable block. False: no entries are left. */
static bool any_next(struct mr_trace_cursor *c, struct mr_str *block)
{
    while (!c->is_at_view && c->entry == c->entries)
        c->is_at_view = !page_read(c);
    if (!c->is_at_view) {
        *block = entry_block(c, mr_reply_at(c->page, c->entry++));
        return true;
    }
    uint32_t n = 0;
    if (c->at == c->view->blocks.n) return false;
    memcpy(&n, c->view->blocks.p + c->at, sizeof n);
    *block = mr_str_of(c->view->blocks.p + c->at + sizeof n, n);
    c->at += sizeof n + n;
    return true;
}

bool mr_trace_cursor_next(struct mr_trace_cursor *c, struct mr_str *block)
{
    struct mr_trace_block head;
    while (any_next(c, block))
        if (block->n && !mr_trace_block_read(*block, &head) && head.job.v == c->job.v) return true;
    return false;
}

int mr_trace_view_load(
    const struct mr_trace_source *source, mr_job_id job, struct mr_trace_view *out)
{
    char id[MR_JOB_ID_TEXT_MAX];
    struct mr_trace_counts counts = {0};
    struct mr_reply *reply = NULL;
    mr_job_id_format(job, id);
    MR_AUTO(mr_free_ptr) char *key = mr_format("%s" MR_META_TRACES, prefix_of(source));
    const struct mr_str argv[] = {MR_STR("HGET"), mr_str(key), mr_str(id)};
    int err = mr_redis_call(source->redis, MR_ARRAY_LEN(argv), argv, &reply, NULL);
    if (err) return err;
    err = MR_ENOENT;
    if (mr_reply_type(reply) == MR_REPLY_TEXT)
        err = mr_trace_counts_unpack(mr_reply_text(reply), &counts);
    mr_reply_free(&reply);
    if (err) return err;
    mr_trace_view_init(out, job);
    out->spans = counts.spans;
    out->epoch = UINT32_MAX;
    return MR_OK;
}

struct reading {
    mr_trace_span_fn fn;
    void *ctx;
    uint64_t spans;
};

static void one_span(void *ctx, const struct mr_trace_span *span)
{
    struct reading *r = ctx;
    r->spans++;
    r->fn(r->ctx, span);
}

void mr_trace_read(const struct mr_trace_source *source, const struct mr_trace_view *view,
    mr_trace_wants_fn wants, mr_trace_span_fn fn, void *ctx, struct mr_trace_tally *out)
{
    struct reading r = {.fn = fn, .ctx = ctx};
    struct mr_trace_cursor *c = mr_trace_cursor_open(source, view, view->job);
    struct mr_trace_block head;
    struct mr_str block;
    while (mr_trace_cursor_next(c, &block)) {
        (void)mr_trace_block_read(block, &head);
        if (wants && !wants(ctx, &head))
            r.spans += head.count;
        else /* spans of a damaged block that cannot be read are counted as not_recorded */
            (void)mr_trace_decode(block, one_span, &r);
    }
    *out = (struct mr_trace_tally){.spans = r.spans,
        .not_recorded = view->spans > r.spans ? view->spans - r.spans : 0,
        .is_away = mr_trace_cursor_is_away(c)};
    mr_trace_cursor_close(&c);
}

static int by_id(const void *a, const void *b)
{
    const mr_job_id *x = a, *y = b;
    return x->v < y->v ? -1 : x->v > y->v;
}

static int segments_load(const struct mr_trace_source *source, bool samples, mr_job_id *out,
    uint32_t max, uint32_t *count)
{
    struct mr_reply *reply = NULL;
    MR_AUTO(mr_free_ptr) char *key = mr_format("%s" MR_META_TRACES, prefix_of(source));
    const struct mr_str argv[] = {MR_STR("HKEYS"), mr_str(key)};
    int err = mr_redis_call(source->redis, MR_ARRAY_LEN(argv), argv, &reply, NULL);
    *count = 0;
    for (size_t i = 0; !err && i < mr_reply_count(reply) && *count < max; i++) {
        mr_job_id id;
        if (mr_job_id_parse(mr_reply_text(mr_reply_at(reply, i)), &id)) continue;
        if (mr_trace_is_segment(id) && mr_sample_is_segment(id) == samples) out[(*count)++] = id;
    }
    mr_reply_free(&reply);
    qsort(out, *count, sizeof *out, by_id);
    return err;
}

int mr_trace_segments_load(
    const struct mr_trace_source *source, mr_job_id *out, uint32_t max, uint32_t *count)
{
    return segments_load(source, false, out, max, count);
}

int mr_trace_sample_segments_load(
    const struct mr_trace_source *source, mr_job_id *out, uint32_t max, uint32_t *count)
{
    return segments_load(source, true, out, max, count);
}
