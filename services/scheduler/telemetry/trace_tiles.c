#include "services/scheduler/telemetry/trace_tiles.h"

#include "base/defs.h"
#include "services/scheduler/base/job_lookup.h"
#include "services/scheduler/tiles/classes.h"

#include <millrace/v1/jobs.pb-c.h>

static Millrace__V1__TileRow *row_out(struct mr_shell *sh, const struct mr_job_tiles_row *r)
{
    Millrace__V1__TileRow *m = mr_shell_take(sh, sizeof *m);
    size_t bytes = r->runs_count * sizeof(uint32_t);
    millrace__v1__tile_row__init(m);
    m->worker = mr_shell_text(sh, r->worker);
    m->slot = r->slot;
    m->n_lengths = m->n_colors = m->n_fill = r->runs_count;
    m->lengths = mr_shell_take(sh, bytes);
    m->colors = mr_shell_take(sh, bytes);
    m->fill = mr_shell_take(sh, bytes);
    for (uint32_t i = 0; i < r->runs_count; i++) {
        const struct mr_tile_run *run = &r->runs[i];
        m->lengths[i] = run->length;
        m->colors[i] = run->name == MR_TILE_NONE ? 0 : run->name + 1u;
        m->fill[i] = run->fill;
    }
    return m;
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

void mr_trace_tiles_answer(
    struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_trace_answer *answer)
{
    const struct mr_job_tiles_picture *p = &answer->tiles;
    Millrace__V1__TilesResponse m = MILLRACE__V1__TILES_RESPONSE__INIT;
    if (answer->err) {
        fail(call, answer->err);
        return;
    }
    m.from_ns = p->from_ns;
    m.until_ns = p->until_ns;
    m.more_spans_ns = p->few_ns;
    m.rows_count = p->rows_all;
    m.n_names = p->names_count;
    m.names = mr_shell_take(sh, MR_MAX(m.n_names, (size_t)1) * sizeof *m.names);
    for (uint32_t i = 0; i < p->names_count; i++)
        m.names[i] = mr_shell_text(sh, p->names[i]);
    m.n_rows = p->rows_count;
    m.rows = mr_shell_take(sh, MR_MAX(m.n_rows, (size_t)1) * sizeof *m.rows);
    for (uint32_t i = 0; i < p->rows_count; i++)
        m.rows[i] = row_out(sh, &p->rows[i]);
    (void)mr_rpc_call_reply_pb(call, &m.base);
}
