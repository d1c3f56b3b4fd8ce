/* The workers and jobs that a cluster had, from the events of its trace
 * (store/meta/trace/events.h). Used by the code that divides the time of slots into classes
 * (job_account.h), and by the code that draws a timeline as tiles. */
#pragma once

#include "services/scheduler/history/names.h"
#include "store/meta/trace/events.h"
#include "store/meta/trace/reader.h"

struct mr_past_worker_event { /* BEGAN, JOINED, GONE or PAUSED */
    enum mr_trace_event_kind kind;
    uint32_t worker; /* number of the name in `workers` */
    uint32_t slots, processors;
    uint64_t at, since, incarnation;
};

struct mr_past_job {
    mr_job_id id;
    uint64_t submitted, accepted; /* accepted: 0 if it is not known */
    uint64_t over;                /* when the job ended; 0: it has not */
    uint64_t told;                /* when the journal had the record of the end */
    uint32_t client;              /* number of the name in `clients` */
    uint32_t name_space;          /* number of the namespace in `spaces`; 0: none */
};

struct mr_cluster_past {
    struct mr_trace_names workers, clients;
    struct mr_trace_names spaces;        /* namespaces of jobs; number 0 is the empty text */
    struct mr_past_worker_event *events; /* in the order in which they were written */
    uint32_t events_count, events_room;
    struct mr_past_job *jobs; /* in order of first appearance; see mr_cluster_past_select */
    uint32_t jobs_count, jobs_room;
    struct mr_index by_id; /* the jobs, until mr_cluster_past_select */
};

void mr_cluster_past_init(struct mr_cluster_past *p);
void mr_cluster_past_fini(struct mr_cluster_past *p);
struct mr_past_range {
    const mr_job_id *segments; /* all segments, the oldest first */
    uint32_t count;
    uint64_t from, until; /* 0 and UINT64_MAX: all of the past */
};

/* Reads the segments that have events of the range. */
void mr_cluster_past_read(struct mr_cluster_past *p, const struct mr_trace_source *source,
    const struct mr_trace_view *view, const struct mr_past_range *range);
/* Returns the job, lent until the next call. It is added if it is not there. */
struct mr_past_job *mr_cluster_past_job(struct mr_cluster_past *p, mr_job_id id);
/* Keeps the jobs that were submitted before `until` and not over before `from`, and sorts them by
 * their submission. */
void mr_cluster_past_select(struct mr_cluster_past *p, uint64_t from, uint64_t until);
