/* Encodes spans of tasks as bytes. A block holds spans of one job. It contains the names of its
 * operators and workers, and its times are wall-clock times. So a block can be read without any
 * other data, long after the process that wrote it has ended. The functions have no clock and no
 * I/O. A decoder treats its input as untrusted and checks all of it. Times are kept in ticks of 100
 * ns. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

#define MR_TRACE_BLOCK_BYTES_MAX ((size_t)1 << 20)
#define MR_TRACE_TICK_NS 100u
#define MR_TRACE_NAME_BYTES_MAX 1024

/* One attempt of a task. Times are ns since 1970; 0: the attempt did not get that far. `accounted`
 * is when the scheduler recorded the end of the attempt. */
struct mr_trace_span {
    uint32_t index;   /* index of the task in its job */
    uint32_t attempt; /* counts from 1 */
    uint32_t slot;    /* executor thread of the worker */
    uint32_t outcome; /* 0: success */
    /* index of the input whose value came last; `index`: the task waited for none, or it is not
     * known */
    uint32_t last_input;
    uint64_t ready, sent, started, finished, accounted;
    uint64_t received; /* when the worker had the task's message */
    /* when the last input came to the worker; 0: the inputs came with the task, or the worker made
     * the last one itself */
    uint64_t inputs;
    uint64_t cpu_ns;
    uint64_t input_ns;   /* time to map and load inputs */
    uint64_t restore_ns; /* part of input_ns in which the store read inputs back from disk */
    uint64_t output_ns;  /* time to store the result */
    uint64_t room_ns;    /* part of output_ns in which the store had no room */
    uint64_t late_ns;    /* time in which the thread could run and the kernel ran another one */
    uint64_t delayed_ns; /* wait of the worker's threads for a processor, before the start */
    uint64_t training;   /* account/training_shares.h */
    uint32_t held;       /* enum mr_trace_held */
    uint64_t bytes;      /* bytes of the task's value */
    /* Names, set by the decoder and borrowed from the block; "": unknown. */
    struct mr_str op, worker;
    /* Numbers, set by the caller of the encoder. Within a block one number always has the same
     * name. */
    uint32_t op_id, worker_id;
};

/* Why the scheduler held a task back after it was ready. */
enum mr_trace_held {
    MR_TRACE_HELD_NOT,
    MR_TRACE_HELD_MEMORY,     /* memory was short */
    MR_TRACE_HELD_RESTRICTED, /* few workers may run the task: resources, names, quarantine */
};

struct mr_trace_block { /* the head of a block */
    mr_job_id job;
    uint32_t count; /* number of spans */
    uint32_t index_min, index_max;
    uint64_t finished_min, finished_max; /* ns; least and greatest end of the spans */
};

struct mr_trace_encoder;

struct mr_trace_encoder *mr_trace_encoder_new(void);
void mr_trace_encoder_free(struct mr_trace_encoder **e);
/* Begins a block and drops the one before. */
void mr_trace_encoder_begin(struct mr_trace_encoder *e, mr_job_id job);
/* Adds a span. MR_ELIMIT: the block is full. The caller then ends the block, begins another one and
 * adds the span there. */
int mr_trace_encoder_add(struct mr_trace_encoder *e, const struct mr_trace_span *span);
size_t mr_trace_encoder_bytes(const struct mr_trace_encoder *e); /* bytes of the block so far */
uint32_t mr_trace_encoder_count(const struct mr_trace_encoder *e);
/* What the block's numbers of lanes, workers and operators stand for. A lane is an executor thread.
 * `workers` and `ops` have the worker_id and op_id of the spans. They are lent until the next
 * begin. */
struct mr_trace_encoder_numbers {
    uint32_t lanes_count, workers_count, ops_count;
    const uint64_t *workers, *ops;
};
struct mr_trace_encoder_lane {
    uint32_t worker; /* the block's number of the worker */
    uint32_t slot;
};
void mr_trace_encoder_numbers(
    const struct mr_trace_encoder *e, struct mr_trace_encoder_numbers *out);
struct mr_trace_encoder_lane mr_trace_encoder_lane(const struct mr_trace_encoder *e, uint32_t lane);
/* Stores the block's numbers of the lane and of the operator of the last span. */
void mr_trace_encoder_last(const struct mr_trace_encoder *e, uint32_t *lane, uint32_t *op);
/* Ends the block. The bytes are borrowed until the next begin. The block must have a span. */
struct mr_str mr_trace_encoder_end(struct mr_trace_encoder *e);

/* Reads the head of a block without its spans. MR_EFORMAT: the bytes are not a block. */
int mr_trace_block_read(struct mr_str block, struct mr_trace_block *out);

typedef void (*mr_trace_span_fn)(void *ctx, const struct mr_trace_span *span);
/* Calls `fn` for each span in order. All bytes are checked. After MR_EFORMAT, `fn` may have been
 * called for spans before the damage. op_id and worker_id number the names within the block. */
int mr_trace_decode(struct mr_str block, mr_trace_span_fn fn, void *ctx);

/* Reads the spans of blocks one at a time, for a reader that takes turns between blocks. */
struct mr_trace_decoder;

struct mr_trace_decoder *mr_trace_decoder_new(void);
void mr_trace_decoder_free(struct mr_trace_decoder **d);
/* Begins a block and drops the one before. The caller keeps the block until its last span was read.
 * MR_EFORMAT: the bytes are not a block; then there are no spans. */
int mr_trace_decoder_begin(struct mr_trace_decoder *d, struct mr_str block);
/* Stores the next span. False: there are no more spans, or the rest of the block is damaged. */
bool mr_trace_decoder_next(struct mr_trace_decoder *d, struct mr_trace_span *out);
