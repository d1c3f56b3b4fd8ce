/* Samples: what the processes of the cluster use, at many moments. Samples are kept in segments, as
 * events are (events.h). The id of a segment has tag 0. Its number is the second since 1970 in
 * which the segment began, divided by 16, or greater if that number is taken. Such a number is
 * smaller than that of every segment of events, which is a second after 1987. Each block can be
 * read alone. The functions have no clock and no I/O. A decoder treats its input as untrusted. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

enum mr_sample_kind { /* of a process; the numbers are written to disk */
    MR_SAMPLE_WORKER = 1,
    MR_SAMPLE_OBJECTSTORE,
    MR_SAMPLE_SCHEDULER,
    MR_SAMPLE_GATEWAY,
    MR_SAMPLE_TRAINER,
};

enum mr_sample_value {       /* the numbers are written to disk */
    MR_SAMPLE_MEMORY_BYTES,  /* resident memory; kept in units of 1024 bytes */
    MR_SAMPLE_CPU_MILLI,     /* processors kept busy, in thousandths */
    MR_SAMPLE_RECEIVED,      /* bytes of gRPC messages a second */
    MR_SAMPLE_SENT,          /* bytes of gRPC messages a second */
    MR_SAMPLE_SPILLED_BYTES, /* objects on disk and not in memory; kept in units of 1024 bytes */
    MR_SAMPLE_WRITTEN,       /* bytes of objects written to disk a second */
    MR_SAMPLE_QUEUED,        /* tasks that wait */
    MR_SAMPLE_VALUES,
};

struct mr_sample {
    struct mr_str process, node; /* from the decoder: lent by the block */
    enum mr_sample_kind kind;
    uint64_t at; /* ns since 1970; kept in ms */
    uint64_t values[MR_SAMPLE_VALUES];
};

/* Returns the name of a kind of process, as in the API: "worker", "objectstore" … NULL: there is no
 * such kind. */
const char *mr_sample_kind_name(uint32_t kind);
/* Returns the name of a value, as in the API: "memory_bytes", "cpu_milli" … */
const char *mr_sample_value_name(enum mr_sample_value value);

#define MR_SAMPLE_SEGMENT_SECONDS 16u
#define MR_SAMPLE_SEGMENT_END (1u << 29) /* larger than the number of every segment of samples */

static inline mr_job_id mr_sample_segment_id(uint64_t second)
{
    return mr_job_id_make(0, (uint32_t)(second / MR_SAMPLE_SEGMENT_SECONDS));
}

static inline bool mr_sample_is_segment(mr_job_id id)
{
    return id.v < MR_SAMPLE_SEGMENT_END;
}

/* Begins a block in `block`, which loses its content. */
void mr_samples_begin(struct mr_buf *block);
/* Adds a sample. A name has at most MR_TRACE_NAME_BYTES_MAX bytes. The caller keeps the block below
 * MR_TRACE_BLOCK_BYTES_MAX. */
void mr_samples_add(struct mr_buf *block, const struct mr_sample *s);
/* Sets the segment to which the block belongs. */
void mr_samples_end(struct mr_buf *block, mr_job_id segment);

typedef void (*mr_sample_fn)(void *ctx, const struct mr_sample *s);
/* Calls `fn` for each sample of the block in order. A block of another kind has none. After
 * MR_EFORMAT, `fn` may have been called for the samples before the damage. */
int mr_samples_decode(struct mr_str block, mr_sample_fn fn, void *ctx);
