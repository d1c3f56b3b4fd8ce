#include "services/scheduler/telemetry/trace_sheets.h"

#include "base/alloc.h"

#define SPANS_MIN 1000u
#define TIME_MAX (UINT64_MAX / 4) /* a later time is an error */

void mr_trace_collect(struct mr_trace_collected *c, const struct mr_trace_encoder *encoder,
    const struct mr_trace_span *span)
{
    uint32_t lane = 0, op = 0;
    if (!span->started || span->finished < span->started || span->finished > TIME_MAX) return;
    mr_trace_encoder_last(encoder, &lane, &op);
    if (c->count == c->room) {
        uint32_t more = MR_MAX(32u, c->room * 2);
        c->spans = mr_grow(c->spans, c->room * sizeof *c->spans, more * sizeof *c->spans);
        c->room = more;
    }
    c->spans[c->count++] = (struct mr_tile_span){
        .from = span->started, .until = span->finished, .lane = lane, .name = (uint16_t)op};
}

void mr_trace_collected_fini(struct mr_trace_collected *c)
{
    mr_release(c->spans);
    *c = (struct mr_trace_collected){0};
}

void mr_trace_sheets_init(struct mr_trace_sheets *s)
{
    *s = (struct mr_trace_sheets){0};
    mr_buf_init(&s->bytes, MR_TILE_SHEET_BYTES_MAX);
}

void mr_trace_sheets_fini(struct mr_trace_sheets *s)
{
    mr_tile_sheet_fini(&s->sheet);
    mr_buf_fini(&s->bytes);
}

struct mr_str mr_trace_sheets_make(struct mr_trace_sheets *s, const struct mr_trace_sheet_of *of)
{
    struct mr_trace_encoder_numbers n;
    if (of->spans->count < SPANS_MIN) return (struct mr_str){0};
    mr_trace_encoder_numbers(of->encoder, &n);
    struct mr_str *names = mr_alloc_array(n.ops_count, sizeof *names);
    struct mr_str *workers = mr_alloc_array(n.workers_count, sizeof *workers);
    struct mr_tile_lane *lanes = mr_alloc_array(n.lanes_count, sizeof *lanes);
    for (uint32_t i = 0; i < n.ops_count; i++)
        names[i] = of->op(of->ctx, n.ops[i]);
    for (uint32_t i = 0; i < n.workers_count; i++)
        workers[i] = of->worker(of->ctx, n.workers[i]);
    for (uint32_t i = 0; i < n.lanes_count; i++) {
        const struct mr_trace_encoder_lane l = mr_trace_encoder_lane(of->encoder, i);
        lanes[i] = (struct mr_tile_lane){l.worker, l.slot};
    }
    const struct mr_tile_legend legend = {
        names, workers, lanes, n.ops_count, n.workers_count, n.lanes_count};
    mr_tile_sheet_make(&s->sheet, of->spans->spans, of->spans->count);
    mr_buf_clear(&s->bytes);
    int err = mr_tile_sheet_write(&s->sheet, &of->id, &legend, &s->bytes);
    mr_release(names);
    mr_release(workers);
    mr_release(lanes);
    return err ? (struct mr_str){0} : mr_buf_str(&s->bytes);
}
