/* What log.c and reader.c know of each other: the counts of a job, the place of a block
 * in a file. For those files only. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

struct mr_trace_counts { /* a pack of four integers in the hash */
    uint64_t spans;      /* that there ever were */
    uint64_t lost;       /* of them: not kept anywhere */
    uint64_t bytes;      /* in Redis */
    uint64_t file_bytes;
};
void mr_trace_counts_pack(const struct mr_trace_counts *c, struct mr_buf *out);
int mr_trace_counts_unpack(struct mr_str bytes, struct mr_trace_counts *out); /* MR_EFORMAT */

struct mr_trace_place {
    uint64_t at, bytes;
};
void mr_trace_place_pack(struct mr_trace_place p, struct mr_buf *out);
int mr_trace_place_unpack(struct mr_str bytes, struct mr_trace_place *out); /* MR_EFORMAT */

/* DIR/<job>.trace; mr_release it. */
char *mr_trace_file(const char *dir, mr_job_id job);
/* The job of such a file's name; false: it is none. */
bool mr_trace_file_job(const char *name, mr_job_id *out);
int mr_trace_file_append(const char *dir, mr_job_id job, struct mr_str block,
    struct mr_trace_place *out); /* MR_EIO, MR_EDISKFULL */
int mr_trace_file_read(
    const char *dir, mr_job_id job, struct mr_trace_place place, struct mr_buf *out);
/* Calls back for the job of each file there. */
void mr_trace_file_each(const char *dir, void (*fn)(void *ctx, mr_job_id job), void *ctx);
void mr_trace_file_remove(const char *dir, mr_job_id job);
