#include "services/scheduler/tiles/offline.h"

#include "base/alloc.h"

#define SEGMENTS_MAX 4096u

int mr_job_tiles_offline(struct mr_job_tiles *t, struct mr_history *h,
    const struct mr_job_tiles_ask *ask, struct mr_job_tiles_picture *out, struct mr_error *e)
{
    const struct mr_trace_source source = mr_history_source(h);
    struct mr_trace_view view;
    int err = mr_trace_view_load(&source, mr_job_tiles_job(t), &view);
    if (err == MR_ENOENT) return mr_fail(e, err, "no trace of that job is in Redis");
    if (err) return mr_fail(e, err, "Redis: the trace of that job cannot be read");
    struct mr_job_tiles_ask all = *ask;
    MR_AUTO(mr_free_ptr) mr_job_id *segments = mr_alloc_array(SEGMENTS_MAX, sizeof *segments);
    err = mr_trace_segments_load(&source, segments, SEGMENTS_MAX, &all.segments_count);
    all.segments = segments;
    if (!err) err = mr_job_tiles_draw(t, &source, &view, &all, out);
    mr_trace_view_fini(&view);
    return err ? mr_fail(e, err, "the timeline of that job cannot be drawn") : MR_OK;
}
