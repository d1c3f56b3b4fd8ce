/* Events of the cluster: when workers and jobs came and went. Together with the spans of jobs, they
 * say which slots existed at each moment, and which jobs waited for them (lib/account).
 *
 * Events are kept in segments. A segment is stored like the trace of a job, under an id that no job
 * has: its tag is 0, and its number is the second since 1970 in which it began. A segment consists
 * of blocks. It begins with the workers and jobs that are present then, so it can be read without
 * the segments before it. The functions have no clock and no I/O. A decoder treats its input as
 * untrusted. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

enum mr_trace_event_kind {
    /* A scheduler's process began. Workers that do not join it count as gone from then on. */
    MR_TRACE_EVENT_BEGAN = 1,
    MR_TRACE_EVENT_JOINED,   /* a worker takes tasks from now on */
    MR_TRACE_EVENT_GONE,     /* a worker was lost or has left */
    MR_TRACE_EVENT_ACCEPTED, /* the journal has a job's record */
    MR_TRACE_EVENT_OVER,     /* the journal has the record of a job's end */
    MR_TRACE_EVENT_PAUSED,   /* the process of a worker or of the scheduler was paused */
};

/* Times are ns since 1970. */
struct mr_trace_event {
    enum mr_trace_event_kind kind;
    uint64_t at;
    /* JOINED: when the worker's process began. ACCEPTED: when the job was submitted. OVER: when the
     * job ended. PAUSED: when the pause began. */
    uint64_t since;
    uint64_t incarnation; /* JOINED, GONE, PAUSED: the worker's; 0: the scheduler was paused */
    mr_job_id job;        /* ACCEPTED, OVER */
    uint32_t slots;       /* JOINED */
    uint32_t processors;  /* JOINED: that the worker's process may use; 0: not known */
    /* JOINED, GONE, PAUSED: the worker's name. ACCEPTED: the client that submitted the job. Lent by
     * the block. */
    struct mr_str name;
    struct mr_str name_space; /* ACCEPTED: the job's namespace. Empty: none. Lent by the block. */
};

/* Returns the id under which a segment is stored that begins at `second`. */
static inline mr_job_id mr_trace_segment_id(uint32_t second)
{
    return mr_job_id_make(0, second);
}

static inline bool mr_trace_is_segment(mr_job_id id)
{
    return mr_job_id_tag(id) == 0;
}

/* Begins a block of a segment in `block`, which loses its content. */
void mr_trace_events_begin(struct mr_buf *block, mr_job_id segment);
/* Adds an event. A name of more than MR_TRACE_NAME_BYTES_MAX bytes is written as empty. The caller
 * keeps the block below MR_TRACE_BLOCK_BYTES_MAX. */
void mr_trace_events_add(struct mr_buf *block, const struct mr_trace_event *e);

typedef void (*mr_trace_event_fn)(void *ctx, const struct mr_trace_event *e);
/* Calls `fn` for each event of the block in order. A block of spans has none. After MR_EFORMAT,
 * `fn` may have been called for the events before the damage. */
int mr_trace_events_decode(struct mr_str block, mr_trace_event_fn fn, void *ctx);
