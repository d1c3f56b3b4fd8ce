/* Reads a stream in small pages, so that other users of Redis do not wait long for one page. */
#include "store/meta/trace/reader.h"

#include "base/alloc.h"
#include "store/meta/keys.h"
#include "store/meta/redis.h"
#include "store/meta/trace/parts.h"

#include <inttypes.h>
#include <stdio.h>

#define PAGE "4" /* entries in a page; a page usually has 256 KiB */

struct reading {
    const struct mr_trace_source *source;
    const struct mr_trace_view *view;
    mr_trace_wants_fn wants;
    mr_trace_span_fn fn;
    void *ctx;
    uint64_t spans;
    struct mr_buf file;
};

static void one_span(void *ctx, const struct mr_trace_span *span)
{
    struct reading *r = ctx;
    r->spans++;
    r->fn(r->ctx, span);
}

static void one_block(struct reading *r, struct mr_str bytes)
{
    struct mr_trace_block head;
    if (mr_trace_block_read(bytes, &head) || head.job.v != r->view->job.v) return;
    if (r->wants && !r->wants(r->ctx, &head))
        r->spans += head.count;
    else
        /* If spans are damaged, the count shows that they are missing. */
        (void)mr_trace_decode(bytes, one_span, r);
}

/* Reads one entry: [id, [field, value]]. */
static void one_entry(struct reading *r, const struct mr_reply *entry)
{
    struct mr_trace_place place;
    if (mr_reply_type(entry) != MR_REPLY_LIST || mr_reply_count(entry) != 2) return;
    const struct mr_reply *fields = mr_reply_at(entry, 1);
    if (mr_reply_type(fields) != MR_REPLY_LIST || mr_reply_count(fields) < 2) return;
    struct mr_str field = mr_reply_text(mr_reply_at(fields, 0));
    struct mr_str value = mr_reply_text(mr_reply_at(fields, 1));
    if (mr_str_eq(field, MR_STR("b"))) one_block(r, value);
    if (!mr_str_eq(field, MR_STR("f")) || !r->source->dir) return;
    if (mr_trace_place_unpack(value, &place)) return;
    if (mr_trace_file_read(r->source->dir, r->view->job, place, &r->file)) return;
    one_block(r, mr_buf_str(&r->file));
}

static const char *prefix_of(const struct mr_trace_source *s)
{
    return s->prefix ? s->prefix : MR_META_PREFIX;
}

/* Reads a page that begins at `from`, an id or "(id", and sets `from` to begin after the last entry
 * of the page. Returns the number of entries. 0: no entries are left, or Redis has not answered
 * (`*err`). */
static size_t one_page(struct reading *r, const char *key, char from[64], int *err)
{
    char until[48];
    (void)snprintf(until, sizeof until, "(%" PRIu32 "-%" PRIu64, r->view->epoch, r->view->number);
    const struct mr_str argv[] = {
        MR_STR("XRANGE"), mr_str(key), mr_str(from), mr_str(until), MR_STR("COUNT"), MR_STR(PAGE)};
    struct mr_reply *reply = NULL;
    *err = mr_redis_call(r->source->redis, MR_ARRAY_LEN(argv), argv, &reply, NULL);
    if (*err) return 0;
    size_t n = mr_reply_type(reply) == MR_REPLY_LIST ? mr_reply_count(reply) : 0;
    for (size_t i = 0; i < n; i++)
        one_entry(r, mr_reply_at(reply, i));
    const struct mr_reply *last = n ? mr_reply_at(reply, n - 1) : NULL;
    struct mr_str id = {0};
    if (last && mr_reply_count(last)) id = mr_reply_text(mr_reply_at(last, 0));
    if (id.n == 0 || id.n > 48) n = 0;
    (void)snprintf(from, 64, "(%.*s", MR_STR_ARG(id));
    mr_reply_free(&reply);
    return n;
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

void mr_trace_read(const struct mr_trace_source *source, const struct mr_trace_view *view,
    mr_trace_wants_fn wants, mr_trace_span_fn fn, void *ctx, struct mr_trace_tally *out)
{
    struct reading r = {.source = source, .view = view, .wants = wants, .fn = fn, .ctx = ctx};
    char id[MR_JOB_ID_TEXT_MAX];
    char from[64] = "-";
    int err = MR_OK;
    mr_job_id_format(view->job, id);
    MR_AUTO(mr_free_ptr) char *key = mr_format("%s" MR_META_TRACE "%s", prefix_of(source), id);
    mr_buf_init(&r.file, MR_TRACE_BLOCK_BYTES_MAX);
    while (one_page(&r, key, from, &err))
        ;
    for (size_t at = 0; at < view->blocks.n;) {
        uint32_t n = 0;
        memcpy(&n, view->blocks.p + at, sizeof n);
        one_block(&r, mr_str_of(view->blocks.p + at + sizeof n, n));
        at += sizeof n + n;
    }
    mr_buf_fini(&r.file);
    *out = (struct mr_trace_tally){.spans = r.spans,
        .not_recorded = view->spans > r.spans ? view->spans - r.spans : 0,
        .is_away = err != MR_OK};
}
