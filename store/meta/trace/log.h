/* Keeps the traces of jobs. A trace consists of blocks of spans, and a span is one attempt of a
 * task (codec.h). Each job has a stream in Redis. Beyond a limit for each job and one for all jobs,
 * blocks go to one file a job, and their place in the file goes to the stream. A hash has the
 * counts of every job: its spans and bytes. If there is no room for a block, the block is dropped
 * and counted.
 *
 * No thread waits for a trace. The log has a connection of its own with at most one call of 128 KiB
 * under way. Redis runs one call at a time, so a call of the journal waits for at most one call of
 * the log. Blocks wait while Redis is away, up to a bound. A call consists of entries. An entry
 * stores a block or its place, updates the counts, or deletes a trace. Each entry carries the
 * scheduler's epoch and a number. So a call that is repeated after a lost answer writes nothing
 * twice, and Redis refuses the calls of a scheduler that has been replaced.
 *
 * Used by one owner thread. Only the callback `tell` is called on the connection's thread. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/time.h"
#include "store/meta/trace/view.h"

struct mr_trace_log;

enum mr_trace_news_kind { MR_TRACE_HERE, MR_TRACE_AWAY, MR_TRACE_WRITTEN, MR_TRACE_LOADED };

/* A message from the connection's thread to the owner's thread. */
struct mr_trace_news {
    enum mr_trace_news_kind what;
    int code;
    void *p;
};

struct mr_trace_log_config {
    const char *address;  /* address of Redis */
    const char *password; /* NULL: no password */
    const char *prefix;   /* NULL: MR_META_PREFIX */
    /* Directory for files, made when it is needed. NULL: there are no files, and blocks beyond a
     * limit are dropped. */
    const char *dir;
    /* epoch and incarnation of the scheduler that writes the traces */
    uint32_t epoch;
    uint64_t incarnation;
    /* Limits of the bytes in Redis: of one job, and of all jobs. */
    uint64_t job_bytes_max, bytes_max;
    uint64_t file_bytes_max; /* limit of the bytes of all files together */
    /* the live jobs; traces of other jobs are deleted, except segments of events (events.h) */
    const mr_job_id *jobs;
    size_t jobs_count;
    /* Passes a message to the owner, which calls mr_trace_log_hear. */
    void (*tell)(void *ctx, struct mr_trace_news news);
    void *ctx;
};

int mr_trace_log_open(
    const struct mr_trace_log_config *config, struct mr_trace_log **out, struct mr_error *e);
/* Entries that still wait to be written to Redis are lost. */
void mr_trace_log_close(struct mr_trace_log **log);

/* Adds a block with `count` spans of `job`. The bytes are copied. Returns the number of the block's
 * entry; 0: the block was dropped. */
uint64_t mr_trace_log_add(
    struct mr_trace_log *log, mr_job_id job, struct mr_str block, uint32_t count);
/* Adds the sheet (lib/tiles) of the job's block that was added last. A reader of blocks skips
 * sheets. If there is no room, the sheet is dropped: a reader makes it again from the block. */
void mr_trace_log_add_sheet(struct mr_trace_log *log, mr_job_id job, struct mr_str sheet);
/* Counts spans of a job that were lost before they reached the log. */
void mr_trace_log_lose(struct mr_trace_log *log, mr_job_id job, uint64_t count);
void mr_trace_log_forget(struct mr_trace_log *log, mr_job_id job);

void mr_trace_log_hear(struct mr_trace_log *log, mr_time now, struct mr_trace_news news);
/* Frees a message that was not passed to mr_trace_log_hear. */
void mr_trace_news_fini(struct mr_trace_news *news);
mr_time mr_trace_log_deadline(const struct mr_trace_log *log);
void mr_trace_log_tick(struct mr_trace_log *log, mr_time now);
bool mr_trace_log_is_idle(const struct mr_trace_log *log); /* true: no entry waits to be written */

/* Stores what a reader of the job needs. The caller frees it with mr_trace_view_fini. */
void mr_trace_log_view(const struct mr_trace_log *log, mr_job_id job, struct mr_trace_view *out);
/* As mr_trace_log_view, but with the waiting blocks of all jobs. The view can be used to read any
 * job; only out->spans is the number of `job` alone. */
void mr_trace_log_view_all(
    const struct mr_trace_log *log, mr_job_id job, struct mr_trace_view *out);

/* Stores the ids of the oldest segments of events (events.h) in `out`, at most `max` of them, the
 * oldest first. Returns how many segments there are. */
uint32_t mr_trace_log_segments(const struct mr_trace_log *log, mr_job_id *out, uint32_t max);
/* The same for the segments of samples (samples.h). */
uint32_t mr_trace_log_sample_segments(const struct mr_trace_log *log, mr_job_id *out, uint32_t max);

struct mr_trace_log_totals {
    uint64_t spans, lost; /* counted since the start of the process */
    uint64_t bytes, file_bytes, waiting_bytes;
    int file_err; /* error of the last write to a file */
};
void mr_trace_log_totals(const struct mr_trace_log *log, struct mr_trace_log_totals *out);
