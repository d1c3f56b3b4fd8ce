#include "services/scheduler/telemetry/trace_tiles.h"

#include "base/alloc.h"
#include "base/unconst.h"
#include "rpc/util/pb.h"
#include "services/scheduler/tiles/classes.h"

#include <millrace/v1/jobs.pb-c.h>

static void row_out(const struct mr_job_tiles_row *r, Millrace__V1__TileRow *m)
{
    millrace__v1__tile_row__init(m);
    m->worker = mr_unconst(r->worker.p);
    m->slot = r->slot;
    m->n_lengths = m->n_colors = m->n_fill = r->runs_count;
    m->lengths = mr_alloc_array(r->runs_count, 3 * sizeof *m->lengths);
    m->colors = m->lengths + r->runs_count;
    m->fill = m->colors + r->runs_count;
    for (uint32_t i = 0; i < r->runs_count; i++) {
        const struct mr_tile_run *run = &r->runs[i];
        m->lengths[i] = run->length;
        m->colors[i] = run->name == MR_TILE_NONE ? 0 : run->name + 1u;
        m->fill[i] = run->fill;
    }
}

void mr_trace_tiles_pack(const struct mr_job_tiles_picture *p, struct mr_buf *out)
{
    Millrace__V1__TilesResponse m = MILLRACE__V1__TILES_RESPONSE__INIT;
    m.from_ns = p->from_ns;
    m.until_ns = p->until_ns;
    m.more_spans_ns = p->few_ns;
    m.rows_count = p->rows_all;
    m.n_names = p->names_count;
    m.names = mr_alloc_array(m.n_names, sizeof *m.names);
    for (uint32_t i = 0; i < p->names_count; i++)
        m.names[i] = mr_unconst(p->names[i].p);
    Millrace__V1__TileRow *rows = mr_alloc_array(p->rows_count, sizeof *rows);
    m.n_rows = p->rows_count;
    m.rows = mr_alloc_array(m.n_rows, sizeof *m.rows);
    for (uint32_t i = 0; i < p->rows_count; i++) {
        row_out(&p->rows[i], &rows[i]);
        m.rows[i] = &rows[i];
    }
    mr_pb_pack(&m.base, out);
    for (uint32_t i = 0; i < p->rows_count; i++)
        mr_release(rows[i].lengths);
    mr_release(m.rows);
    mr_release(rows);
    mr_release(m.names);
}

static void fail(struct mr_rpc_call *call, int err)
{
    if (err == MR_ELIMIT)
        mr_shell_fail(call, err,
            "color: a job with more than %u spans has no tiles by class; its profile has the classes",
            MR_TILE_CLASSES_SPANS_MAX);
    else if (err == MR_EAWAY)
        mr_shell_fail(call, err, "Redis does not answer: the trace of that job cannot be read now");
    else if (err == MR_EINVAL)
        mr_shell_fail(call, err, "until_ns: expected at least from_ns plus 1 ns for each pixel");
    else
        mr_shell_fail(call, err, "the trace has nothing of that job");
}

void mr_trace_tiles_answer(struct mr_rpc_call *call, struct mr_trace_answer *answer)
{
    if (answer->err)
        fail(call, answer->err);
    else
        (void)mr_rpc_call_reply_packed(call, &answer->packed);
}
