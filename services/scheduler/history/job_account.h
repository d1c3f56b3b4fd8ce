/* The account of a job: what the time of all slots went into while the job was in the cluster
 * (lib/account). The account of a namespace, or of all jobs, is that of a window of time. It is
 * read from traces: the events of the cluster say which slots and which jobs there were, and the
 * spans of these jobs say what the slots did. Waits for Redis, so it must not run on the thread of
 * an event loop. */
#pragma once

#include "account/account.h"
#include "base/err.h"
#include "store/meta/trace/reader.h"

struct mr_job_account_ask {
    mr_job_id job;            /* 0: the account is of more than one job */
    struct mr_str name_space; /* if `job` is 0: of the jobs of this namespace; empty: of all jobs */
    /* The account's window; 0: from the submission of the job, until its end. Times are ns since
     * 1970. */
    uint64_t from_ns, until_ns;
    /* the present time: the window of a job that is not over ends then; 0: the window ends with
     * the job's last span */
    uint64_t now_ns;
    uint64_t over_ns; /* when the job ended; 0: it has not, or it is not known */
    /* ids of the segments of events (store/meta/trace/events.h), the oldest first */
    const mr_job_id *segments;
    uint32_t segments_count;
    uint32_t steps_max; /* limit of steps of the critical path */
    /* An account of more spans is read by two threads; 0: the default. */
    uint64_t spans_alone;
    /* Takes the pieces of time (lib/account), each with its slot; NULL: they are not wanted. */
    void (*on_piece)(
        void *ctx, struct mr_str worker, uint32_t slot, const struct mr_account_piece *piece);
    void *ctx;
};

/* The account's own jobs are the one that was asked for, those of the namespace, or all jobs. */
struct mr_job_account_op { /* sums over the own jobs' tasks of one operator */
    struct mr_str name;    /* owned text */
    uint64_t attempts;
    uint64_t wall_ns, cpu_ns, queue_ns, bytes;
    uint64_t median_ns, p99_ns; /* of the wall time of an attempt; error: 5 % */
    uint64_t white_ns;          /* idle time of slots that waited for a task of the operator */
};

struct mr_job_account_step { /* a part of the critical path */
    uint64_t from_ns, to_ns;
    enum mr_account_class class;
    /* the job's task that the step belongs to; MR_ACCOUNT_NONE: it is not known, or the slot ran a
     * task of another job */
    uint32_t index;
    uint32_t op; /* index in `ops`; MR_ACCOUNT_NONE: it is not known */
};

struct mr_job_account {
    uint64_t from_ns, until_ns;
    uint64_t accepted_ns; /* when the journal had the job; 0: not known */
    bool is_over;         /* the job is over */
    /* Processors that a worker in the window could use: the largest number of all workers. 0: it is
     * not known. */
    uint32_t processors;
    struct mr_account_sums sums;
    uint64_t slot_ns;  /* sum of `sums`: the time of all slots in the window */
    uint64_t other_ns; /* part of `sums`: slots ran tasks of jobs other than the own ones */
    struct mr_job_account_op *ops; /* the longest wall time first */
    uint32_t ops_count;
    struct mr_account_sums path;       /* the time of the critical path by class */
    struct mr_job_account_step *steps; /* the earliest first */
    uint32_t steps_count;
    bool is_path_cut;      /* the path has more steps than `steps`, or its beginning is not known */
    uint64_t not_recorded; /* spans of the job that were dropped */
    bool is_away;          /* Redis did not answer: some spans were not read */
};

/* Reads the account. `view`: of all jobs (mr_trace_log_view_all), or of the job alone. MR_ENOENT:
 * the trace has nothing of the job, or no job of the namespace was in the cluster in the window. */
int mr_job_account_read(const struct mr_trace_source *source, const struct mr_trace_view *view,
    const struct mr_job_account_ask *ask, struct mr_job_account *out);
void mr_job_account_fini(struct mr_job_account *a);
/* Returns the time in which slots ran tasks. */
uint64_t mr_job_account_busy(const struct mr_job_account *a);
