/* Knows the layout of the records that carry graphs; all other records are skipped. */
#include "services/scheduler/history/history.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "graph/bytes/bytes.h"
#include "services/scheduler/core/core.h"
#include "store/meta/journal/reader.h"
#include "store/meta/redis.h"
#include "store/meta/trace/reader.h"

struct mr_history {
    struct mr_redis *redis;
    char *dir;
};

int mr_history_open(
    const struct mr_history_config *config, struct mr_history **out, struct mr_error *e)
{
    MR_AUTO(mr_history_close) struct mr_history *h = mr_alloc(sizeof *h);
    const struct mr_redis_config link = {.address = config->redis, .password = config->password};
    h->dir = config->dir ? mr_format("%s/trace", config->dir) : NULL;
    int err = mr_redis_open(&link, &h->redis, e);
    if (err) return err;
    err = mr_redis_wait(h->redis, 2 * MR_SECOND);
    if (err) return mr_fail(e, err, "Redis at %s does not answer", config->redis);
    *out = MR_STEAL(h);
    return MR_OK;
}

void mr_history_close(struct mr_history **hp)
{
    struct mr_history *h = *hp;
    *hp = NULL;
    if (!h) return;
    mr_redis_close(&h->redis);
    mr_release(h->dir);
    mr_release(h);
}

struct mr_trace_source mr_history_source(const struct mr_history *h)
{
    return (struct mr_trace_source){.redis = h->redis, .dir = h->dir};
}

struct search {
    uint64_t job;
    struct mr_buf bytes;
};

/* Collects the pieces of the job's graph. A record begins with a u32 type. In a GRAPH record follow
 * u64 job, u64 offset and bytes. A snapshot writes the graph again, from offset 0. */
static int on_record(void *ctx, struct mr_str record)
{
    struct search *s = ctx;
    uint32_t type = 0;
    uint64_t head[2];
    if (record.n < sizeof type + sizeof head) return MR_OK;
    memcpy(&type, record.p, sizeof type);
    memcpy(head, record.p + sizeof type, sizeof head);
    if (type != MR_RECORD_GRAPH || head[0] != s->job) return MR_OK;
    if (!head[1]) mr_buf_clear(&s->bytes);
    if (head[1] != s->bytes.n) return MR_OK; /* the record with the graph's beginning was trimmed */
    size_t skip = sizeof type + sizeof head;
    mr_buf_add(&s->bytes, record.p + skip, record.n - skip);
    return mr_buf_status(&s->bytes);
}

int mr_history_graph(struct mr_history *h, mr_job_id job, struct mr_graph **out, struct mr_error *e)
{
    struct search s = {.job = job.v};
    mr_buf_init(&s.bytes, MR_JOB_BODY_BYTES_MAX * 4);
    int err = mr_journal_read(h->redis, NULL, on_record, &s, e);
    if (!err && !s.bytes.n) err = mr_fail(e, MR_ENOENT, "the journal has no such job");
    if (!err) err = mr_graph_from_bytes(mr_buf_str(&s.bytes), out, e);
    mr_buf_fini(&s.bytes);
    return err;
}

int mr_history_spans(struct mr_history *h, mr_job_id job, const struct mr_history_visit *visit,
    uint64_t *not_recorded, struct mr_error *e)
{
    const struct mr_trace_source source = {.redis = h->redis, .dir = h->dir};
    struct mr_trace_view view;
    struct mr_trace_tally tally;
    int err = mr_trace_view_load(&source, job, &view);
    if (err == MR_ENOENT) return mr_fail(e, err, "no trace of that job is in Redis");
    if (err) return mr_fail(e, err, "Redis: the trace of that job cannot be read");
    mr_trace_read(&source, &view, visit->wants, visit->fn, visit->ctx, &tally);
    mr_trace_view_fini(&view);
    *not_recorded = tally.not_recorded;
    return tally.is_away ? mr_fail(e, MR_EAWAY, "Redis went away") : MR_OK;
}

int mr_history_trace(struct mr_history *h, mr_job_id job, struct mr_trace_gather *out,
    uint64_t *not_recorded, struct mr_error *e)
{
    const struct mr_history_visit visit = {mr_trace_gather_wants, mr_trace_gather_span, out};
    int err = mr_history_spans(h, job, &visit, not_recorded, e);
    mr_trace_gather_finish(out);
    return err;
}

int mr_history_account(struct mr_history *h, mr_job_id job, uint32_t steps_max,
    struct mr_job_account *out, struct mr_error *e)
{
    static const uint32_t segments_max = 4096;
    const struct mr_trace_source source = {.redis = h->redis, .dir = h->dir};
    struct mr_trace_view view;
    struct mr_job_account_ask ask = {.job = job, .steps_max = steps_max};
    MR_AUTO(mr_free_ptr) mr_job_id *segments = mr_alloc_array(segments_max, sizeof *segments);
    int err = mr_trace_view_load(&source, job, &view);
    if (err == MR_ENOENT) return mr_fail(e, err, "no trace of that job is in Redis");
    if (err) return mr_fail(e, err, "Redis: the trace of that job cannot be read");
    err = mr_trace_segments_load(&source, segments, segments_max, &ask.segments_count);
    ask.segments = segments;
    if (!err) err = mr_job_account_read(&source, &view, &ask, out);
    mr_trace_view_fini(&view);
    return err ? mr_fail(e, err, "the trace of that job cannot be read") : MR_OK;
}
