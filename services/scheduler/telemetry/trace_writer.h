/* The thread that encodes spans and writes them. For trace.c and trace_writer.c only.
 *
 *   core thread   spans, names, questions ──▶ writer ──▶ Redis, files
 *                         ▲                     │ question, with the spans that are not written
 *                         └────── answer ── reader ◀── Redis, files
 */
#pragma once

#include "host/os/stats.h"
#include "services/scheduler/telemetry/trace_reader.h"
#include "store/meta/trace/events.h"

enum mr_trace_message_kind {
    /* p: struct mr_buf of struct mr_sched_span; a: wall clock minus monotonic clock */
    MR_TRACE_SPANS,
    MR_TRACE_WORKER,  /* a: slot, p: name */
    MR_TRACE_OP,      /* a: number, p: name */
    MR_TRACE_EVENT,   /* p: struct mr_trace_event_copy */
    MR_TRACE_SAMPLES, /* p: struct mr_buf *, a block of samples; a: the present time */
    MR_TRACE_LOST,    /* job; a: number of the job's spans that were dropped */
    MR_TRACE_ENDED,   /* job */
    MR_TRACE_FORGET,  /* job */
    MR_TRACE_ASK,     /* p: struct mr_trace_question */
    MR_TRACE_NEWS,    /* news: Redis has answered a write of the log */
    MR_TRACE_STOP,
};

struct mr_trace_event_copy {
    struct mr_trace_event event; /* its texts are in `texts` */
    char texts[];
};

struct mr_trace_message {
    enum mr_trace_message_kind kind;
    uint64_t a;
    mr_job_id job;
    void *p;
    struct mr_trace_news news;
};

struct mr_trace_writer;

/* mr_trace_writer_inbox takes messages from the core thread and from Redis's connection.
 * mr_trace_writer_spent returns emptied span buffers to the core thread.
 * mr_trace_writer_bytes_taken counts the bytes of spans that left the inbox. */
int mr_trace_writer_open(const struct mr_trace_log_config *config, struct mr_trace_reader *reader,
    struct mr_trace_writer **out, struct mr_error *e);
void mr_trace_writer_close(struct mr_trace_writer **w);
struct mr_inbox *mr_trace_writer_inbox(struct mr_trace_writer *w);
/* The items are struct mr_buf *. */
struct mr_inbox *mr_trace_writer_spent(struct mr_trace_writer *w);
uint64_t mr_trace_writer_bytes_taken(const struct mr_trace_writer *w);
