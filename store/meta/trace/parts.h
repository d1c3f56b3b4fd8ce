/* Private to log.c and reader.c: the counts of a job, and the place of a block in a file. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

struct mr_trace_counts { /* the counts of one job; packed as four integers in the hash of counts */
    uint64_t spans;      /* all spans of the job so far */
    uint64_t lost;       /* spans that were dropped */
    uint64_t bytes;      /* bytes of the job's blocks in Redis */
    uint64_t file_bytes;
};
void mr_trace_counts_pack(const struct mr_trace_counts *c, struct mr_buf *out);
/* MR_EFORMAT: the bytes are malformed */
int mr_trace_counts_unpack(struct mr_str bytes, struct mr_trace_counts *out);

struct mr_trace_place {
    uint64_t at, bytes;
};
void mr_trace_place_pack(struct mr_trace_place p, struct mr_buf *out);
/* MR_EFORMAT: the bytes are malformed */
int mr_trace_place_unpack(struct mr_str bytes, struct mr_trace_place *out);

int mr_trace_file_append(const char *dir, mr_job_id job, struct mr_str block,
    struct mr_trace_place *out); /* returns MR_EIO or MR_EDISKFULL on failure */
int mr_trace_file_read(
    const char *dir, mr_job_id job, struct mr_trace_place place, struct mr_buf *out);
/* Calls `fn` for the job of each trace file in the directory. */
void mr_trace_file_each(const char *dir, void (*fn)(void *ctx, mr_job_id job), void *ctx);
void mr_trace_file_remove(const char *dir, mr_job_id job);
