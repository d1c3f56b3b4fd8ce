/* Reads the trace of a job: blocks in Redis, blocks in files, and blocks that still wait in the
 * scheduler. Any process may use this reader. It waits for Redis, so it must not run on the thread
 * of an event loop. All input is untrusted and checked. */
#pragma once

#include "store/meta/trace/codec.h"
#include "store/meta/trace/log.h"

struct mr_redis;

struct mr_trace_source {
    struct mr_redis *redis; /* borrowed; NULL: only the blocks of the view are read */
    const char *prefix;     /* NULL: MR_META_PREFIX */
    const char *dir;        /* directory of the files; NULL: no files are read */
};

struct mr_trace_tally {
    uint64_t spans;        /* spans that were read */
    uint64_t not_recorded; /* spans of the job that were not found */
    bool is_away;          /* Redis did not answer; only the scheduler's waiting blocks were read */
};

/* Fills a view from Redis alone, for a reader without a scheduler. MR_ENOENT: the job has no
 * trace. */
int mr_trace_view_load(
    const struct mr_trace_source *source, mr_job_id job, struct mr_trace_view *out);

/* Calls `fn` for every span. `wants` (may be NULL) is called for each block first; false: the block
 * is skipped and its spans count as read. */
typedef bool (*mr_trace_wants_fn)(void *ctx, const struct mr_trace_block *block);
void mr_trace_read(const struct mr_trace_source *source, const struct mr_trace_view *view,
    mr_trace_wants_fn wants, mr_trace_span_fn fn, void *ctx, struct mr_trace_tally *out);

/* Reads the blocks of a job one after another. `view` may be one of all jobs
 * (mr_trace_log_view_all). `source` and `view` stay valid until the close. */
struct mr_trace_cursor;

struct mr_trace_cursor *mr_trace_cursor_open(
    const struct mr_trace_source *source, const struct mr_trace_view *view, mr_job_id job);
void mr_trace_cursor_close(struct mr_trace_cursor **cursor);
/* Stores the next block with a valid head, lent until the next call. False: none is left. */
bool mr_trace_cursor_next(struct mr_trace_cursor *cursor, struct mr_str *block);

/* An entry of a trace. */
struct mr_trace_entry {
    uint32_t epoch; /* the entries of a job are in the order of epoch and number */
    uint64_t number;
    bool is_sheet; /* the entry is the sheet (lib/tiles) of the block before it */
    bool is_in_file;
    uint64_t file_at, file_bytes; /* place in the job's file */
    struct mr_str bytes;          /* the block or sheet, lent; empty if it is in a file */
};
/* Begins after the entry. To be called before the first entry is read. */
void mr_trace_cursor_after(struct mr_trace_cursor *cursor, uint32_t epoch, uint64_t number);
/* Stores the next entry, lent until the next call. Its bytes are not checked. False: none is
 * left. */
bool mr_trace_cursor_entry(struct mr_trace_cursor *cursor, struct mr_trace_entry *out);
/* Reads the bytes of an entry again. MR_ENOENT: they are in the file, in Redis and in the view no
 * more. */
int mr_trace_entry_read(const struct mr_trace_source *source, const struct mr_trace_view *view,
    mr_job_id job, const struct mr_trace_entry *entry, struct mr_buf *out);
/* True: Redis did not answer, and some blocks were not read. */
bool mr_trace_cursor_is_away(const struct mr_trace_cursor *cursor);

/* Reads the ids of the segments of events (events.h) from Redis, at most `max` of them, the oldest
 * first. */
int mr_trace_segments_load(
    const struct mr_trace_source *source, mr_job_id *out, uint32_t max, uint32_t *count);
/* The same for the segments of samples (samples.h). */
int mr_trace_sample_segments_load(
    const struct mr_trace_source *source, mr_job_id *out, uint32_t max, uint32_t *count);
