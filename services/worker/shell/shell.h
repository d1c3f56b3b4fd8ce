/* The worker's process around its core: the network thread, which owns the core, polls gRPC and has
 * an inbox; the executors; the prefetch thread. A strand is a list of tasks, its items, that one
 * executor runs back to back. For services/worker only. */
#pragma once

#include "host/loan_lock.h"
#include "host/pool/work_sharing.h"
#include "host/inbox.h"
#include "host/os/stats.h"
#include "host/wake_counter.h"
#include "rpc/client.h"
#include "rpc/util/auth.h"
#include "rpc/loop.h"
#include "services/worker/core/core.h"
#include "services/worker/shell/item.h"
#include "train/service/service.h"
#include "services/worker/shell/identity.h"
#include "store/arena/client_limit.h"

#define MR_WORKER_LOGS_MAX 4096u
/* the scheduler refused the worker for good, or the start failed */
#define MR_WORKER_EXIT_FATAL 1
/* a task ignored its cancel flag: the supervisor starts the worker again */
#define MR_WORKER_EXIT_LETHAL 75
/* the object store is gone: the supervisor starts the worker again */
#define MR_WORKER_EXIT_STORE 76

struct mr_worker_options {
    const char *scheduler;
    const char *trainer;      /* NULL: none */
    const char *store_socket; /* NULL: none */
    const char *store_address;
    const char *name;
    const char *node;
    const char *dir;                /* NULL: no crash record */
    mr_time began;                  /* when the process began */
    const struct mr_rpc_auth *auth; /* outlives the shell */
    struct mr_peer_rules peers;
    const char *const *listen;
    size_t listen_count;
    uint32_t slots;
    /* first processor for training roles; the next roles get the next processors, cyclically */
    uint32_t processor;
    uint64_t memory_bytes;
    struct mr_store_limit limit; /* memory limit of the control group */
    const struct mr_ws_resource *resources;
    uint32_t resources_count;
    struct mr_registry *registry;
    const struct mr_registry *builtin;
    const struct mr_roots *roots;
    bool allow_exec;
};

struct mr_worker_shell {
    struct mr_worker *core;
    struct mr_worker_effects fx;
    struct mr_worker_identity identity;
    struct mr_rpc_loop *loop;
    struct mr_inbox *inbox;
    struct mr_pulse pulse; /* marked in each turn of the network thread's loop */
    /* the last pause of the process that the scheduler was not told of; 0: none */
    mr_time paused_from, paused_until;
    struct mr_store *store;
    struct mr_crash_record *crash_record;
    struct mr_suspect suspects_found[MR_SLOTS_MAX];
    struct mr_ws_run *suspect_runs;
    struct mr_executor_env env;
    const struct mr_op_desc **ops;
    struct mr_worker_op *core_ops;
    struct mr_work_sharing *work_sharing;
    struct mr_wake_counter wake_counter; /* counts items that executors reported */
    uint64_t reported;                   /* items of reports that were taken from the inbox */
    struct mr_loan_lock
        loan_lock; /* guards this struct, except inbox and wake_counter; see delegate.c */
    mr_time sleeps_until;
    mr_duration nap; /* longest sleep while reports that start no task are left in the inbox */
    bool delays_wake, by_delegate;
    struct mr_executor_env here_env;
    /* executor without a thread, for strands that are too small to be handed to a thread */
    struct mr_executor *here;
    struct mr_run_report here_report;
    bool has_here_report;
    /* by slot; executors for long-running tasks start when they are needed */
    struct mr_executor **executors;
    uint32_t executors_count;
    struct mr_run **runs; /* by number of the strand; NULL: the strand has ended */
    uint32_t runs_room, runs_count;
    struct mr_prefetch *prefetch;
    mr_object_id drops[1024]; /* objects of `drops_job` that are to be released */
    uint32_t drops_count;
    mr_job_id drops_job;
    mr_object_id
        wants[64]; /* objects that tasks will read soon, for the store to read back from disk */
    uint32_t wants_count;
    bool wants_at_once;

    /* the stream */
    const char *scheduler;
    struct mr_rpc_channel *channel;
    struct mr_rpc_call *call;
    mr_time connect_at; /* when to open the stream; MR_NEVER: not planned */
    uint64_t incarnation;
    /* while the worker is not registered: since when, and the last warning; 0: none */
    mr_time alone_since, alone_reported;
    struct mr_pb_arena arena_in, arena_out;
    struct mr_buf wire;
    bool has_sent_register;
    /* `logs_at`: when to collect the output of running tasks; MR_NEVER: they have no new output.
     * `logs_looked_at`: when `logs_at` came last */
    mr_time logs_at, logs_looked_at;
    struct mr_ws_log *logs; /* output that is to be sent */
    uint32_t logs_count;
    size_t logs_bytes;

    struct mr_rpc_server *server;
    struct mr_params_service *params; /* gRPC services of training roles in this process */
    char *address;                    /* of `server`, for other processes; NULL: none */
    struct mr_stats *stats;
    struct mr_counter *tasks_done, *tasks_failed, *strands, *fetches, *reconnects;
    struct mr_gauge *memory;
    mr_time memory_at;
    uint64_t memory_used;
    mr_duration cpu_ns; /* of the process; this and `traffic` are read as often as memory_used */
    struct mr_rpc_traffic traffic;
    mr_time now;
    mr_time end_at; /* MR_NEVER: not ending */
    int exit_code;
    uint32_t signals;
    bool ending;
};

int mr_worker_shell_open(
    const struct mr_worker_options *o, struct mr_worker_shell **out, struct mr_error *e);
int mr_worker_shell_run(struct mr_worker_shell *sh);            /* returns the exit code */
bool mr_worker_shell_is_idle(const struct mr_worker_shell *sh); /* no executor runs a strand */
void mr_worker_shell_close(struct mr_worker_shell **sh);
/* Called on any thread. The first call ends the worker when its running tasks have ended, or after
 * 30 s. A second call ends the worker at once. */
void mr_worker_shell_signal(struct mr_worker_shell *sh);
/* Called on any thread when the process goes on after a pause. */
void mr_worker_shell_continued(struct mr_worker_shell *sh, mr_time at);
/* Handles an item of the inbox. */
void mr_worker_shell_take(struct mr_worker_shell *sh, const struct mr_item *item);
