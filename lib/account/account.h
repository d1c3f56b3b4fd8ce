/* Divides the time of slots into classes (class.h). Between mr_account_open and mr_account_close
 * each moment of each slot is passed to the sink exactly once, so the classes add up to the time of
 * all slots.
 *
 * The time in which a task ran is split by the times that its worker measured. The time in which a
 * slot was idle gets its classes from the task that ended the idleness. They follow from when that
 * task was ready, sent, received, had its inputs, and started, and from what its last input waited
 * for (chain.h). Before that task's job was submitted, the slot waited for another job: the one
 * submitted last among those that were not over. The classes then follow from what that job waited
 * for. If all jobs were over, there was no work, or a client had not yet submitted its next job.
 *
 * The caller reports attempts in the order in which the scheduler accounted them. An input then
 * comes before the tasks that need it. Memory is bounded by the number of slots, of jobs, and of
 * recent attempts, not by the number of tasks. All times are ns of one clock. One thread. */
#pragma once

#include "account/chain.h"

struct mr_account;

struct mr_account_piece {
    uint32_t lane;
    enum mr_account_class class;
    mr_time from, to; /* from < to */
    /* The task that ran, or that the slot waited for; MR_ACCOUNT_NONE: none, or not known. */
    uint32_t job, index;
    uint32_t op; /* operator of that task; MR_ACCOUNT_NONE: not known */
};

struct mr_account_config {
    mr_time from, until; /* the beginning and the end of the account */
    uint32_t recent_max; /* number of attempts that are remembered, at least 1024 */
    /* Takes a piece. The pieces of a slot do not overlap and have no order. */
    void (*sink)(void *ctx, const struct mr_account_piece *piece);
    /* Takes the critical path of the job `path_job` when the job is over (chain.h); NULL: it is not
     * wanted. The path ends where a task on it is no longer remembered. */
    void (*path)(void *ctx, const struct mr_account_segment *segments, uint32_t count);
    uint32_t path_job;
    void *ctx;
};

/* One attempt of a task. Times that are not known are 0. */
struct mr_account_task {
    uint32_t job, index;
    uint32_t op;
    /* index of the input whose value came last; `index`: the task waited for none */
    uint32_t last_input;
    uint32_t lane;    /* number of the slot; MR_ACCOUNT_NONE: the task had no slot */
    mr_time ready;    /* when the scheduler learned that the last input had a value */
    mr_time sent;     /* when the scheduler sent the task */
    mr_time received; /* when the worker received the task */
    /* when the last input came to the worker, if it came after the task and from elsewhere */
    mr_time inputs;
    mr_time started, finished;
    mr_time accounted;      /* when the scheduler had processed the completion */
    mr_duration cpu_ns;     /* processor time of the operator */
    mr_duration input_ns;   /* time to map and decode the inputs, at the start */
    mr_duration restore_ns; /* part of input_ns in which inputs were read back from disk */
    mr_duration output_ns;  /* time to store the result, at the end */
    mr_duration room_ns;    /* part of output_ns in which the store had no room */
    mr_duration late_ns;    /* time in which the thread could run and the kernel ran another one */
    mr_duration delayed_ns; /* wait of the worker's threads for a processor, before the start */
    uint64_t training;      /* what a training role's time went into (account/training_shares.h) */
    /* why the scheduler held the task back between `ready` and `sent`: MR_ACCOUNT_MEMORY,
     * MR_ACCOUNT_RESTRICTED, or 0 */
    uint8_t hold;
    /* The task runs on a thread of its own, beside the slots. Then `lane` stands for this thread.
     * The lane exists only from `ready` to `finished`. No call of mr_account_lane names it. */
    bool is_beside;
};

/* `config` is copied. */
struct mr_account *mr_account_open(const struct mr_account_config *config);
/* Passes the rest of the pieces to the sink, and frees the account. */
void mr_account_close(struct mr_account **a);

/* A slot begins to exist, or exists again. Its process began at `began`; the slot takes tasks from
 * `joined` on. */
void mr_account_lane(struct mr_account *a, uint32_t lane, mr_time began, mr_time joined);
/* The slot's worker was lost or has left. To be called after mr_account_task for all attempts that
 * ended on this slot before `at`. A slot that was gone before the account begins has no part in it,
 * unless it exists again later. */
void mr_account_lane_gone(struct mr_account *a, uint32_t lane, mr_time at);

/* The process of the slot's worker was paused between the two times. If `lane` is MR_ACCOUNT_NONE,
 * the scheduler's process was. To be called before mr_account_task for attempts that were accounted
 * after the pause. */
void mr_account_pause(struct mr_account *a, uint32_t lane, mr_time from, mr_time until);

/* A job was submitted; jobs come in the order of `submitted`. `client`: number of the client. If an
 * earlier job has the same client, the time without jobs before this job is the client's
 * (MR_ACCOUNT_CLIENT). `accepted`: when Redis had the job's record; 0: not known. */
void mr_account_job(
    struct mr_account *a, uint32_t job, uint32_t client, mr_time submitted, mr_time accepted);
/* The job is over. To be called after mr_account_task for all attempts of the job. `told`: when
 * clients could know it, because Redis had the record of the end; at least `at`. Between `at` and
 * `told` the job waits for the journal. */
void mr_account_job_over(struct mr_account *a, uint32_t job, mr_time at, mr_time told);

void mr_account_task(struct mr_account *a, const struct mr_account_task *task);
/* Begins to load the memory that mr_account_task will need for a task. Changes nothing. A caller
 * that knows the tasks in advance saves time with it. */
void mr_account_task_soon(const struct mr_account *a, const struct mr_account_task *task);

struct mr_account_sums {
    uint64_t ns[MR_ACCOUNT_CLASSES];
};
/* A sink: adds the piece to a struct mr_account_sums. */
void mr_account_sum(void *sums, const struct mr_account_piece *piece);
/* Returns the time of the classes of slots that run a task. */
uint64_t mr_account_sums_busy(const struct mr_account_sums *sums);
