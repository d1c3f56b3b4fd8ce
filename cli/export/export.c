/* The curves are written after all spans. Spans come in the order of their ends, so even the last
 * span may have begun early and change a curve from there on. */
#include "cli/export/export.h"

#include "base/alloc.h"
#include "base/err.h"
#include "cli/export/series.h"

#define FLUSH_BYTES ((size_t)256 << 10)
/* Limit of the bytes between two calls of `write`: a task with very many consumers makes one large
 * packet. */
#define PIECE_BYTES_MAX ((size_t)512 << 20)

enum curve { RUNNING, WAITING, VALUES, CURVES };

static const char *const curve_names[] = {
    [RUNNING] = "tasks running", [WAITING] = "tasks ready", [VALUES] = "bytes of needed values"};

struct mr_export {
    struct mr_export_config k;
    void *writer;
    struct mr_buf out;
    struct mr_export_lanes lanes;
    struct mr_trace_names ops;
    struct mr_export_flows *flows; /* NULL: there are no edges */
    struct mr_export_series curves[CURVES];
    uint32_t workers_named, lanes_named;
    int err;
};

static void needed(void *ctx, uint64_t from, uint64_t until, uint64_t bytes)
{
    struct mr_export *x = ctx;
    mr_export_series_add(&x->curves[VALUES], from, until, (double)bytes);
}

struct mr_export *mr_export_open(const struct mr_export_config *config)
{
    struct mr_export *x = mr_alloc(sizeof *x);
    x->k = *config;
    mr_buf_init(&x->out, PIECE_BYTES_MAX);
    mr_export_lanes_init(&x->lanes, MR_EXPORT_JOB_PID + 1);
    mr_trace_names_init(&x->ops);
    for (unsigned i = 0; i < CURVES; i++)
        mr_export_series_init(&x->curves[i]);
    if (config->edges) x->flows = mr_export_flows_new(config->edges, needed, x);
    x->writer = config->format->open(&x->out, &config->about);
    return x;
}

static void flush(struct mr_export *x, size_t bytes_min)
{
    if (x->out.n < bytes_min) return;
    if (!x->err) x->err = mr_buf_status(&x->out);
    if (!x->err) x->err = x->k.write(x->k.ctx, mr_buf_str(&x->out));
    mr_buf_clear_above(&x->out, 4 * FLUSH_BYTES);
}

/* Names the workers and lanes that are new. */
static void name_lanes(struct mr_export *x)
{
    const struct mr_export_lanes *l = &x->lanes;
    for (; x->workers_named < l->names.count; x->workers_named++)
        x->k.format->worker(
            x->writer, l->workers[x->workers_named].pid, l->names.names[x->workers_named]);
    for (; x->lanes_named < l->count; x->lanes_named++) {
        const struct mr_export_lane *lane = &l->lanes[x->lanes_named];
        x->k.format->lane(x->writer, l->workers[lane->worker].pid, lane);
    }
}

int mr_export_span(struct mr_export *x, const struct mr_export_span *span)
{
    struct mr_export_step step = {0};
    if (!span->started || x->err) return x->err;
    uint32_t lane = mr_export_lanes_take(&x->lanes, span);
    name_lanes(x);
    if (x->flows) mr_export_flows_take(x->flows, span, lane, &step);
    const struct mr_export_slice slice = {.span = span,
        .op = mr_trace_names_number(&x->ops, span->op),
        .lane = &x->lanes.lanes[lane],
        .lanes = &x->lanes,
        .step = &step};
    x->k.format->slice(x->writer, &slice);
    mr_export_series_add(&x->curves[RUNNING], span->started, span->finished, 1);
    if (span->ready) mr_export_series_add(&x->curves[WAITING], span->ready, span->started, 1);
    flush(x, FLUSH_BYTES);
    return x->err;
}

struct drawing {
    struct mr_export *x;
    uint32_t number;
};

static void draw_point(void *ctx, uint64_t time, double value)
{
    const struct drawing *d = ctx;
    d->x->k.format->point(d->x->writer, d->number, curve_names[d->number], time, value);
}

int mr_export_close(struct mr_export **xp)
{
    struct mr_export *x = *xp;
    *xp = NULL;
    if (x->flows) mr_export_flows_end(x->flows);
    for (uint32_t i = 0; i < CURVES; i++) {
        if (i == VALUES && !x->flows) continue;
        struct drawing d = {x, i};
        x->k.format->curve(x->writer, i, curve_names[i], i == VALUES);
        mr_export_series_read(&x->curves[i], draw_point, &d);
    }
    x->k.format->close(x->writer);
    flush(x, 0);
    int err = x->err;
    mr_export_flows_free(&x->flows);
    mr_export_lanes_fini(&x->lanes);
    mr_trace_names_fini(&x->ops);
    mr_buf_fini(&x->out);
    mr_release(x);
    return err;
}
