/* What tasks wrote, kept in the scheduler's memory until their job is forgotten: the last 64 KiB of
 * each task, the last 4 MiB of each job, the last 64 MiB of all. Pure: no clock, no I/O. Pieces
 * are kept in the order in which they came; each has a position in its job, the bytes that came
 * before it, so that a reader can go on where it was. What makes room is counted, and told with
 * the task's next piece. */
#pragma once

#include "base/id.h"
#include "base/index.h"
#include "base/list.h"
#include "base/str.h"

struct mr_tasklog_bounds { /* 0: as above */
    size_t task_bytes, job_bytes, bytes;
};

struct mr_tasklog_job;

struct mr_tasklog {
    struct mr_tasklog_bounds bounds;
    struct mr_index index; /* of jobs, by id */
    struct mr_tasklog_job **jobs;
    uint32_t jobs_count, jobs_room;
    struct mr_list pieces; /* of all jobs, oldest first */
    size_t bytes;          /* of their texts, and of what stands around them */
};

struct mr_tasklog_piece { /* on loan until the log changes */
    uint32_t index, attempt;
    uint64_t at;   /* its position in the job */
    uint64_t lost; /* bytes of its task, just before it, that are not kept */
    struct mr_str worker, text;
};

struct mr_tasklog_tail { /* the last attempt of a task that wrote anything */
    uint32_t attempt;
    size_t bytes;  /* kept */
    uint64_t lost; /* before them */
    struct mr_str worker;
};

void mr_tasklog_init(struct mr_tasklog *l, const struct mr_tasklog_bounds *bounds);
void mr_tasklog_fini(struct mr_tasklog *l);
void mr_tasklog_forget(struct mr_tasklog *l, mr_job_id job);

/* `lost`: bytes before this text that its worker did not keep. */
void mr_tasklog_add(struct mr_tasklog *l, mr_job_id job, uint32_t index, uint32_t attempt,
    struct mr_str worker, struct mr_str text, uint64_t lost);
bool mr_tasklog_has(const struct mr_tasklog *l, mr_job_id job, uint32_t index, uint32_t attempt);
/* The first piece that reaches beyond `from`, cut to begin there, of one task or (MR_NODE_NONE) of
 * any. What the reader has seen already is not in its `lost`. */
bool mr_tasklog_next(const struct mr_tasklog *l, mr_job_id job, uint32_t index, uint64_t from,
    struct mr_tasklog_piece *out);
/* Bytes that came for the job in all: the position of what comes next. */
uint64_t mr_tasklog_position(const struct mr_tasklog *l, mr_job_id job);
/* False: it wrote nothing, or nothing of it is kept. */
bool mr_tasklog_tail(
    const struct mr_tasklog *l, mr_job_id job, uint32_t index, struct mr_tasklog_tail *out);
/* Copies those bytes. */
void mr_tasklog_copy(const struct mr_tasklog *l, mr_job_id job, uint32_t index,
    const struct mr_tasklog_tail *tail, char *to);
uint64_t mr_tasklog_dropped(const struct mr_tasklog *l, mr_job_id job); /* bytes made room for */
