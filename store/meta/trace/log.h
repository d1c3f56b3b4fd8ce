/* Keeps blocks of spans: a Redis stream a job up to a cap a job and a cap in all, past which they
 * go to a file a job with their place in the stream, and a hash with the counts of every job. What
 * finds no room anywhere is dropped and counted.
 *
 * A trace is never waited for. One call is under way at a time on a connection of its own, of at
 * most 128 KiB, so that the journal's calls never stand behind more than that; blocks wait while
 * Redis is away, up to a bound. Entries carry (epoch, number), so that a call repeated after a lost
 * answer writes nothing twice, and a superseded scheduler writes nothing.
 *
 * One owner thread; only `tell` is called on the connection's. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/time.h"

struct mr_trace_log;

enum mr_trace_news_kind { MR_TRACE_HERE, MR_TRACE_AWAY, MR_TRACE_WRITTEN, MR_TRACE_LOADED };

struct mr_trace_news { /* from the connection to the owner */
    enum mr_trace_news_kind what;
    int code;
    void *p;
};

struct mr_trace_log_config {
    const char *address;  /* of Redis */
    const char *password; /* NULL: none */
    const char *prefix;   /* NULL: MR_META_PREFIX */
    const char *dir;      /* for files, made when needed; NULL: none, and blocks past a cap go */
    uint32_t epoch;
    uint64_t incarnation;              /* of the same scheduler */
    uint64_t job_bytes_max, bytes_max; /* in Redis */
    uint64_t file_bytes_max;           /* in files, all jobs */
    const mr_job_id *jobs;             /* that live: traces of any other are deleted */
    size_t jobs_count;
    void (*tell)(void *ctx, struct mr_trace_news news); /* give it to mr_trace_log_hear */
    void *ctx;
};

int mr_trace_log_open(
    const struct mr_trace_log_config *config, struct mr_trace_log **out, struct mr_error *e);
void mr_trace_log_close(struct mr_trace_log **log); /* what waits is lost: drain first */

/* A whole block of `count` spans of `job`; copied. */
void mr_trace_log_add(struct mr_trace_log *log, mr_job_id job, struct mr_str block, uint32_t count);
/* That many spans of the job were lost before they came here. */
void mr_trace_log_lose(struct mr_trace_log *log, mr_job_id job, uint64_t count);
void mr_trace_log_forget(struct mr_trace_log *log, mr_job_id job);

void mr_trace_log_hear(struct mr_trace_log *log, mr_time now, struct mr_trace_news news);
void mr_trace_news_fini(struct mr_trace_news *news); /* of what is not heard any more */
mr_time mr_trace_log_deadline(const struct mr_trace_log *log);
void mr_trace_log_tick(struct mr_trace_log *log, mr_time now);
bool mr_trace_log_is_idle(const struct mr_trace_log *log); /* nothing waits */

/* What a reader needs of a job to have its whole trace: see reader.h. */
struct mr_trace_view {
    mr_job_id job;
    uint64_t spans;       /* that there ever were */
    uint32_t epoch;       /* entries before (epoch, number) are Redis's, */
    uint64_t number;      /* the others are these: */
    struct mr_buf blocks; /* u32 bytes, block, … */
};
void mr_trace_log_view(const struct mr_trace_log *log, mr_job_id job, struct mr_trace_view *out);
void mr_trace_view_init(struct mr_trace_view *v, mr_job_id job);
void mr_trace_view_fini(struct mr_trace_view *v);

struct mr_trace_log_totals {
    uint64_t spans, lost; /* since the start */
    uint64_t bytes, file_bytes, waiting_bytes;
    int file_err; /* of the last write to a file */
};
void mr_trace_log_totals(const struct mr_trace_log *log, struct mr_trace_log_totals *out);
