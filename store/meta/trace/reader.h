/* Reads a job's trace back: what Redis and files have, then what waits for them. Any process may;
 * it waits for Redis, so it is called where waiting hurts nobody. Everything read is outside
 * bytes and is checked. */
#pragma once

#include "store/meta/trace/codec.h"
#include "store/meta/trace/log.h"

struct mr_redis;

struct mr_trace_source {
    struct mr_redis *redis; /* borrowed */
    const char *prefix;     /* NULL: MR_META_PREFIX */
    const char *dir;        /* of files; NULL: none are read */
};

struct mr_trace_tally {
    uint64_t spans;        /* that were read */
    uint64_t not_recorded; /* that there were besides */
    bool is_away;          /* Redis did not answer: only what waits was read */
};

/* What Redis knows of a job, for a reader without the scheduler. MR_ENOENT: no trace. */
int mr_trace_view_load(
    const struct mr_trace_source *source, mr_job_id job, struct mr_trace_view *out);

/* Tells every span. `wants` (may be NULL) is asked of each block first: false passes it over, its
 * spans counted as read. */
typedef bool (*mr_trace_wants_fn)(void *ctx, const struct mr_trace_block *block);
void mr_trace_read(const struct mr_trace_source *source, const struct mr_trace_view *view,
    mr_trace_wants_fn wants, mr_trace_span_fn fn, void *ctx, struct mr_trace_tally *out);
