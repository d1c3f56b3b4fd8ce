/* The output of tasks, kept in memory until their job is forgotten: the last 64 KiB of each task, 4
 * MiB of each job, 64 MiB in all. Pure: no clock, no I/O. Pieces stay in the order of arrival. A
 * piece has a position: the bytes of its job that arrived before it. A reader resumes from a
 * position. Evicted bytes are counted; the count comes with the task's next piece. */
#pragma once

#include "base/id.h"
#include "base/index.h"
#include "base/list.h"
#include "base/str.h"

struct mr_tasklog_bounds { /* 0: the default, as above */
    size_t task_bytes, job_bytes, bytes;
};

struct mr_tasklog_job;

struct mr_tasklog {
    struct mr_tasklog_bounds bounds;
    struct mr_index index; /* of jobs, by id */
    struct mr_tasklog_job **jobs;
    uint32_t jobs_count, jobs_room;
    struct mr_list pieces; /* of all jobs, oldest first */
    size_t bytes;          /* of texts and of the structs around them */
};

struct mr_tasklog_piece { /* lent until the log changes */
    uint32_t index, attempt;
    uint64_t at;   /* position in the job */
    uint64_t lost; /* evicted bytes of the task, right before this piece */
    struct mr_str worker, text;
};

struct mr_tasklog_tail { /* the output of a task's last attempt with output */
    uint32_t attempt;
    size_t bytes;  /* kept */
    uint64_t lost; /* evicted bytes before the kept ones */
    struct mr_str worker;
};

void mr_tasklog_init(struct mr_tasklog *l, const struct mr_tasklog_bounds *bounds);
void mr_tasklog_fini(struct mr_tasklog *l);
void mr_tasklog_forget(struct mr_tasklog *l, mr_job_id job);

/* `lost`: bytes before this text that the worker dropped. */
void mr_tasklog_add(struct mr_tasklog *l, mr_job_id job, uint32_t index, uint32_t attempt,
    struct mr_str worker, struct mr_str text, uint64_t lost);
bool mr_tasklog_has(const struct mr_tasklog *l, mr_job_id job, uint32_t index, uint32_t attempt);
/* The first piece with bytes after position `from`, without the bytes before it: of one task, or of
 * any (MR_NODE_NONE). `lost` of the piece excludes bytes before `from`. */
bool mr_tasklog_next(const struct mr_tasklog *l, mr_job_id job, uint32_t index, uint64_t from,
    struct mr_tasklog_piece *out);
/* Bytes that have arrived for the job: the position of the next piece. */
uint64_t mr_tasklog_position(const struct mr_tasklog *l, mr_job_id job);
/* False: no output of the task is kept. */
bool mr_tasklog_tail(
    const struct mr_tasklog *l, mr_job_id job, uint32_t index, struct mr_tasklog_tail *out);
/* Copies those bytes. */
void mr_tasklog_copy(const struct mr_tasklog *l, mr_job_id job, uint32_t index,
    const struct mr_tasklog_tail *tail, char *to);
uint64_t mr_tasklog_dropped(const struct mr_tasklog *l, mr_job_id job); /* evicted bytes */
