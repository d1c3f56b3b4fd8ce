/* The output of tasks, kept in memory until their job is forgotten: at most the last 64 KiB of each
 * task, 4 MiB of each job, and 64 MiB in all. Pure: no clock, no I/O. Pieces stay in the order of
 * arrival. The position of a piece is the number of bytes of its job that arrived before it. A
 * reader resumes from a position. Evicted bytes are counted; the count comes with the task's next
 * piece. */
#pragma once

#include "base/id.h"
#include "base/index.h"
#include "base/list.h"
#include "base/str.h"

struct mr_tasklog_bounds { /* limits; 0: the default, named above */
    size_t task_bytes, job_bytes, bytes;
};

struct mr_tasklog_job;

struct mr_tasklog {
    struct mr_tasklog_bounds bounds;
    struct mr_index index; /* from an id to a job */
    struct mr_tasklog_job **jobs;
    uint32_t jobs_count, jobs_room;
    struct mr_list pieces; /* pieces of all jobs, the oldest first */
    size_t bytes;          /* memory of texts and of the structs around them */
};

struct mr_tasklog_piece { /* a piece of output, lent until the log changes */
    uint32_t index, attempt;
    uint64_t at; /* position in the job's output */
    /* how many bytes right before this piece are missing: dropped by the worker, or evicted here */
    uint64_t lost;
    struct mr_str worker, text;
};

struct mr_tasklog_tail { /* the output of the last attempt that wrote any */
    uint32_t attempt;
    size_t bytes;  /* bytes of it that are kept */
    uint64_t lost; /* how many other bytes of it the worker dropped or this log evicted */
    struct mr_str worker;
};

void mr_tasklog_init(struct mr_tasklog *l, const struct mr_tasklog_bounds *bounds);
void mr_tasklog_fini(struct mr_tasklog *l);
void mr_tasklog_forget(struct mr_tasklog *l, mr_job_id job);

/* Adds a piece of output. `lost`: how many bytes the worker dropped right before this text. */
void mr_tasklog_add(struct mr_tasklog *l, mr_job_id job, uint32_t index, uint32_t attempt,
    struct mr_str worker, struct mr_str text, uint64_t lost);
bool mr_tasklog_has(const struct mr_tasklog *l, mr_job_id job, uint32_t index, uint32_t attempt);
/* Finds the first piece with bytes after position `from`, of the task `index` or of any task
 * (MR_NODE_NONE). The piece comes without its bytes before `from`, and `lost` does not count
 * evicted bytes before `from`. False: there is no such piece. */
bool mr_tasklog_next(const struct mr_tasklog *l, mr_job_id job, uint32_t index, uint64_t from,
    struct mr_tasklog_piece *out);
/* Returns how many bytes have arrived for the job, which is the position of its next piece. */
uint64_t mr_tasklog_position(const struct mr_tasklog *l, mr_job_id job);
/* Describes the kept output of a task. False: no output of the task is kept. */
bool mr_tasklog_tail(
    const struct mr_tasklog *l, mr_job_id job, uint32_t index, struct mr_tasklog_tail *out);
/* Copies the output that `tail` describes, tail->bytes bytes, to `to`. */
void mr_tasklog_copy(const struct mr_tasklog *l, mr_job_id job, uint32_t index,
    const struct mr_tasklog_tail *tail, char *to);
/* Returns how many bytes of the job were evicted. */
uint64_t mr_tasklog_dropped(const struct mr_tasklog *l, mr_job_id job);
