/* The thread that reads traces back: it waits for Redis and decodes millions of spans. Neither may
 * delay the core thread or the writer. It answers one question at a time. */
#pragma once

#include "host/inbox.h"
#include "services/scheduler/history/job_account.h"
#include "services/scheduler/telemetry/trace.h"
#include "store/meta/trace/log.h"

struct mr_trace_question {
    struct mr_trace_ask ask;
    uint64_t ticket;
    /* what the log has of the job, and blocks that are not written yet. SPANS: the job's blocks.
     * ACCOUNT, TILES, SAMPLES: the blocks of all jobs; SAMPLES: and of all segments. */
    struct mr_trace_view view;
    /* The members below are for ACCOUNT and TILES. */
    uint64_t now_ns;
    uint64_t over_ns; /* when the job ended; 0: it has not */
    /* ACCOUNT: segments of events. SAMPLES: segments of samples. Owned. */
    mr_job_id *segments;
    uint32_t segments_count;
    struct mr_series_ask series; /* SAMPLES */
    char *name_space;            /* ACCOUNT: owned text; NULL: none */
};

struct mr_trace_answer { /* the message MR_SHELL_TRACE brings it to the core thread */
    uint64_t ticket;
    struct mr_trace_gather gather; /* SPANS */
    uint64_t not_recorded;         /* SPANS: number of spans that were dropped */
    struct mr_job_account account; /* ACCOUNT */
    struct mr_series series;       /* SAMPLES */
    struct mr_buf packed;          /* TILES: the packed TilesResponse */
    int err; /* ACCOUNT, TILES: MR_ENOENT if the trace has nothing of the job */
};

struct mr_trace_reader;

struct mr_trace_source_config {
    const char *address, *password, *dir;
    struct mr_inbox *answers; /* the core thread's inbox, of struct mr_shell_message */
};
int mr_trace_reader_open(
    const struct mr_trace_source_config *config, struct mr_trace_reader **out, struct mr_error *e);
void mr_trace_reader_close(struct mr_trace_reader **r);
/* Passes a question to the thread. Any thread may call this function. */
void mr_trace_reader_ask(struct mr_trace_reader *r, struct mr_trace_question **q);
void mr_trace_question_free(struct mr_trace_question **q);
void mr_trace_answer_free(struct mr_trace_answer **answer);
