/* Spans of tasks as bytes. A block holds spans of one job and explains itself: names of operators
 * and workers stand in it, times are of the wall clock. Whoever has a block needs nothing else to
 * read it, so a trace outlives the process, and the numbering, that wrote it.
 *
 * Pure: no clock, no I/O. What a decoder reads is outside bytes and is checked; a block that
 * passes the check is read without another look. Times are kept in ticks of 100 ns. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

#define MR_TRACE_BLOCK_BYTES_MAX ((size_t)1 << 20)
#define MR_TRACE_TICK_NS 100u
#define MR_TRACE_NAME_BYTES_MAX 1024

/* One attempt of a task. Times are ns since 1970, 0: not reached. */
struct mr_trace_span {
    uint32_t index;   /* of the task in its job */
    uint32_t attempt; /* from 1 */
    uint32_t slot;    /* of the worker */
    uint32_t outcome; /* 0: well */
    uint64_t ready, sent, started, finished, accounted;
    uint64_t cpu_ns;
    uint64_t bytes;            /* of its value */
    struct mr_str op, worker;  /* decoded: on loan with the block; "": not known */
    uint32_t op_id, worker_id; /* for the encoder: its caller's numbers of those two. One number has
                                * one name within a block */
};

struct mr_trace_block { /* what stands in front of a block */
    mr_job_id job;
    uint32_t count; /* spans */
    uint32_t index_min, index_max;
    uint64_t finished_min, finished_max; /* ns, of all times the spans have: their end */
};

struct mr_trace_encoder;

struct mr_trace_encoder *mr_trace_encoder_new(void);
void mr_trace_encoder_free(struct mr_trace_encoder **e);
void mr_trace_encoder_begin(struct mr_trace_encoder *e, mr_job_id job); /* drops what is open */
/* MR_ELIMIT: the block takes no more; end it and begin another. */
int mr_trace_encoder_add(struct mr_trace_encoder *e, const struct mr_trace_span *span);
size_t mr_trace_encoder_bytes(const struct mr_trace_encoder *e); /* of the block so far */
uint32_t mr_trace_encoder_count(const struct mr_trace_encoder *e);
/* The block, on loan until the next `begin`. Not of nothing. */
struct mr_str mr_trace_encoder_end(struct mr_trace_encoder *e);

/* What a block says of itself, the spans unread: MR_EFORMAT. */
int mr_trace_block_read(struct mr_str block, struct mr_trace_block *out);

typedef void (*mr_trace_span_fn)(void *ctx, const struct mr_trace_span *span);
/* All spans in the order they came. Checks everything: when it says MR_EFORMAT, some spans may have
 * been told already. op_id and worker_id count the names of this block. */
int mr_trace_decode(struct mr_str block, mr_trace_span_fn fn, void *ctx);
