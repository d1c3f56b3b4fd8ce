/* The timeline of a job, at every scale: which operator, or which class of time
 * (lib/account/class.h), each slot spent its time on. The job's trace is read when its timeline is
 * first asked for. Later questions by operator read only what was written since. For questions by
 * class, the whole trace is read again at times while the job runs (classes.h).
 *
 * A window with few spans is drawn from these spans. A window with more of them is drawn from the
 * sheets of its blocks, or from a pyramid of the whole job (lib/tiles). So an answer takes about
 * the same time at every scale, and memory hardly grows with the number of spans. The functions
 * wait for Redis and files, so they must not run on the thread of an event loop. */
#pragma once

#include "base/err.h"
#include "services/scheduler/history/job_account.h"
#include "services/scheduler/history/timeline_page.h"
#include "tiles/picture.h"

enum mr_job_tiles_color { MR_JOB_TILES_OP, MR_JOB_TILES_CLASS };

struct mr_job_tiles_ask {
    enum mr_job_tiles_color color;
    /* The window. from_ns 0: the beginning of the job. until_ns 0: the end of the job, or now. All
     * times are ns since 1970. */
    uint64_t from_ns, until_ns;
    uint32_t width; /* pixels, at least 1 */
    uint32_t first_row, rows;
    /* When the job was submitted and ended; 0: not known. With now_ns, an over_ns of 0 means that
     * the job is not over. */
    uint64_t submitted_ns, over_ns;
    uint64_t now_ns; /* the present time; 0: a job whose end is not known ends with its last span */
    /* ids of the segments of events, the oldest first */
    const mr_job_id *segments;
    uint32_t segments_count;
};

struct mr_job_tiles_row {
    struct mr_str worker; /* owned text, which ends with a NUL */
    uint32_t slot;
    struct mr_tile_run *runs; /* owned; the lengths add up to the width */
    uint32_t runs_count;
};

struct mr_job_tiles_picture {
    uint64_t from_ns, until_ns;
    uint64_t few_ns;      /* a window of this width has about 4,000 spans of all slots */
    struct mr_str *names; /* as `worker`; the `name` of a run is an index into them */
    uint32_t names_count;
    struct mr_job_tiles_row *rows;
    uint32_t rows_count, rows_all; /* rows_all: the number of all slots */
};
void mr_job_tiles_picture_fini(struct mr_job_tiles_picture *p);

struct mr_job_tiles;

struct mr_job_tiles_limits {
    uint64_t exact_max;  /* a window with more spans is not drawn from spans alone */
    uint64_t sheets_max; /* a window with more spans is not drawn from sheets */
    uint32_t cells_max;  /* limit of the pyramid (lib/tiles/pyramid.h) */
};

/* `limits`: NULL for those that suit a scheduler; others are for tests. */
struct mr_job_tiles *mr_job_tiles_new(mr_job_id job, const struct mr_job_tiles_limits *limits);
void mr_job_tiles_free(struct mr_job_tiles **t);
mr_job_id mr_job_tiles_job(const struct mr_job_tiles *t);

/* Draws a picture. `view`: of all jobs (mr_trace_log_view_all), or of the job alone. MR_ENOENT: the
 * trace has nothing of the job. MR_EAWAY: Redis does not answer. MR_EINVAL: the window has less
 * than 1 ns for each pixel. MR_ELIMIT: the job has too many spans for a picture by class. */
int mr_job_tiles_draw(struct mr_job_tiles *t, const struct mr_trace_source *source,
    const struct mr_trace_view *view, const struct mr_job_tiles_ask *ask,
    struct mr_job_tiles_picture *out);
/* Passes the spans that overlap the window of out->want to mr_trace_gather_span, and calls
 * mr_trace_gather_finish. Reads only blocks with such spans. `*not_recorded`: spans of the job that
 * were not found. */
void mr_job_tiles_spans(struct mr_job_tiles *t, const struct mr_trace_source *source,
    const struct mr_trace_view *view, struct mr_trace_gather *out, uint64_t *not_recorded);
