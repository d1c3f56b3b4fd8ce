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

/* Entries in a page. A page of PAGE blocks usually has 256 KiB. If the page before had only places
 * in files, which are short, the next one has PAGE_OF_PLACES. */
#define PAGE "4"
#define PAGE_OF_PLACES "256"

struct mr_trace_cursor {
    const struct mr_trace_source *source;
    const struct mr_trace_view *view;
    mr_job_id job;
    char *key;
    char from[64];         /* where the next page begins: an id, or "(id" for the entry after it */
    struct mr_reply *page; /* NULL: the next page is to be read */
    size_t entry, entries; /* the next entry of the page, and their number */
    bool is_at_view, is_away; /* is_at_view: the pages have been read */
    bool is_short;            /* the last page had only places in files */
    uint32_t after_epoch;     /* entries of the view up to this one are skipped */
    uint64_t after_number;
    uint32_t at; /* index of the next entry of the view */
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
        MR_STR("COUNT"), c->is_short ? MR_STR(PAGE_OF_PLACES) : MR_STR(PAGE)};
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
    c->is_short = true;
    return true;
}

static bool id_read(struct mr_str text, struct mr_trace_entry *out)
{
    char id[64];
    (void)snprintf(id, sizeof id, "%.*s", (int)MR_MIN(text.n, sizeof id - 1), text.n ? text.p : "");
    return sscanf(id, "%" SCNu32 "-%" SCNu64, &out->epoch, &out->number) == 2;
}

/* Reads an entry, [id, [field, value]]. False: it has no block and no sheet. */
static bool entry_of(const struct mr_reply *reply, struct mr_trace_entry *out)
{
    struct mr_trace_place place;
    *out = (struct mr_trace_entry){0};
    if (mr_reply_type(reply) != MR_REPLY_LIST || mr_reply_count(reply) != 2) return false;
    const struct mr_reply *fields = mr_reply_at(reply, 1);
    if (mr_reply_type(fields) != MR_REPLY_LIST || mr_reply_count(fields) < 2) return false;
    struct mr_str field = mr_reply_text(mr_reply_at(fields, 0));
    struct mr_str value = mr_reply_text(mr_reply_at(fields, 1));
    if (field.n != 1 || !id_read(mr_reply_text(mr_reply_at(reply, 0)), out)) return false;
    char what = field.p[0];
    out->is_sheet = what == 's' || what == 'g';
    out->is_in_file = what == 'f' || what == 'g';
    if (!out->is_in_file) {
        out->bytes = value;
        return what == 'b' || what == 's';
    }
    if (mr_trace_place_unpack(value, &place)) return false;
    out->file_at = place.at;
    out->file_bytes = place.bytes;
    return true;
}

void mr_trace_cursor_after(struct mr_trace_cursor *c, uint32_t epoch, uint64_t number)
{
    (void)snprintf(c->from, sizeof c->from, "(%" PRIu32 "-%" PRIu64, epoch, number);
    c->after_epoch = epoch;
    c->after_number = number;
}

bool mr_trace_cursor_entry(struct mr_trace_cursor *c, struct mr_trace_entry *out)
{
    for (;;) {
        while (!c->is_at_view && c->entry == c->entries)
            c->is_at_view = !page_read(c);
        if (c->is_at_view) break;
        bool is_good = entry_of(mr_reply_at(c->page, c->entry++), out);
        if (is_good && !out->is_in_file) c->is_short = false;
        if (is_good) return true;
    }
    *out = (struct mr_trace_entry){.epoch = c->view->epoch};
    while (c->at < mr_trace_view_count(c->view)) {
        const struct mr_trace_waiting *w = mr_trace_view_at(c->view, c->at++);
        out->number = w->number;
        out->is_sheet = w->is_sheet;
        out->bytes = mr_str_of(w->bytes, w->n);
        bool is_old = out->epoch < c->after_epoch ||
                      (out->epoch == c->after_epoch && w->number <= c->after_number);
        if (w->job.v == c->job.v && !is_old) return true;
    }
    return false;
}

bool mr_trace_cursor_next(struct mr_trace_cursor *c, struct mr_str *block)
{
    struct mr_trace_block head;
    struct mr_trace_entry e;
    while (mr_trace_cursor_entry(c, &e)) {
        if (e.is_sheet) continue;
        if (e.is_in_file) {
            const struct mr_trace_place place = {e.file_at, e.file_bytes};
            if (!c->source->dir || mr_trace_file_read(c->source->dir, c->job, place, &c->file))
                continue;
            e.bytes = mr_buf_str(&c->file);
        }
        if (mr_trace_block_read(e.bytes, &head) || head.job.v != c->job.v) continue;
        *block = e.bytes;
        return true;
    }
    return false;
}

int mr_trace_entry_read(const struct mr_trace_source *source, const struct mr_trace_view *view,
    mr_job_id job, const struct mr_trace_entry *entry, struct mr_buf *out)
{
    const struct mr_trace_place place = {entry->file_at, entry->file_bytes};
    struct mr_trace_entry found;
    mr_buf_clear(out);
    if (entry->is_in_file)
        return source->dir && !mr_trace_file_read(source->dir, job, place, out) ? MR_OK : MR_ENOENT;
    uint32_t waiting = view->epoch == entry->epoch ? mr_trace_view_count(view) : 0;
    for (uint32_t i = 0; i < waiting; i++) {
        const struct mr_trace_waiting *w = mr_trace_view_at(view, i);
        if (w->number != entry->number) continue;
        mr_buf_add(out, w->bytes, w->n);
        return MR_OK;
    }
    if (!source->redis) return MR_ENOENT;
    char id[48], text[MR_JOB_ID_TEXT_MAX];
    struct mr_reply *reply = NULL;
    mr_job_id_format(job, text);
    (void)snprintf(id, sizeof id, "%" PRIu32 "-%" PRIu64, entry->epoch, entry->number);
    MR_AUTO(mr_free_ptr) char *key = mr_format("%s" MR_META_TRACE "%s", prefix_of(source), text);
    const struct mr_str argv[] = {MR_STR("XRANGE"), mr_str(key), mr_str(id), mr_str(id)};
    int err = mr_redis_call(source->redis, MR_ARRAY_LEN(argv), argv, &reply, NULL);
    if (err) return err;
    err = MR_ENOENT;
    if (mr_reply_type(reply) == MR_REPLY_LIST && mr_reply_count(reply) == 1 &&
        entry_of(mr_reply_at(reply, 0), &found)) {
        const struct mr_trace_place moved = {found.file_at, found.file_bytes};
        err = MR_OK;
        if (!found.is_in_file)
            mr_buf_add_str(out, found.bytes);
        else if (!source->dir || mr_trace_file_read(source->dir, job, moved, out))
            err = MR_ENOENT;
    }
    mr_reply_free(&reply);
    return err ? err : mr_buf_status(out);
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
