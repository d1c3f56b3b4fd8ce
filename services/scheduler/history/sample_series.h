/* Series of samples (store/meta/trace/samples.h), reduced to a limited number of points. A window
 * of time is divided into intervals of equal length. A point has the smallest, the mean and the
 * largest sample of one interval, so no peak gets lost. The functions have no clock.
 * mr_series_read waits for Redis. */
#pragma once

#include "store/meta/trace/reader.h"
#include "store/meta/trace/samples.h"

#define MR_SERIES_NAME_BYTES 160

struct mr_series_ask {
    uint64_t from_ns, until_ns;
    uint32_t points_max;
    uint32_t processes_max;
    char process[MR_SERIES_NAME_BYTES]; /* "": all processes */
    char after[MR_SERIES_NAME_BYTES];   /* only processes with a greater name */
};

struct mr_series_point {
    uint32_t interval;
    uint32_t count; /* of samples */
    uint64_t min[MR_SAMPLE_VALUES], max[MR_SAMPLE_VALUES], sum[MR_SAMPLE_VALUES];
};

struct mr_series_process {
    char *name, *node; /* owned */
    enum mr_sample_kind kind;
    struct mr_series_point *points; /* by interval */
    uint32_t points_count, points_room;
};

struct mr_series {
    struct mr_series_ask ask;
    uint64_t step_ns;
    struct mr_series_process *processes; /* by name */
    uint32_t count;
    bool more; /* processes with greater names had no room */
};

/* The window must not be empty. */
void mr_series_init(struct mr_series *s, const struct mr_series_ask *ask);
void mr_series_fini(struct mr_series *s);
/* Adds a sample, unless it is outside of what was asked for. `ctx` is a struct mr_series. */
void mr_series_add(void *ctx, const struct mr_sample *sample);
/* Adds the samples of all segments that may have samples of the window. `segments` ascend. */
void mr_series_read(struct mr_series *s, const struct mr_trace_source *source,
    const struct mr_trace_view *view, const mr_job_id *segments, uint32_t count);
