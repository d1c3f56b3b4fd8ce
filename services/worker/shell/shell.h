/* The worker around its core: one network thread, which is the core's, with the loop of lib/rpc and
 * an inbox; executors; the prefetch thread. Private to services/worker. */
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
#include "services/worker/exec/executor.h"
#include "services/worker/exec/prefetch.h"
#include "train/service/service.h"
#include "services/worker/shell/wire.h"
#include "store/arena/client_limit.h"

#define MR_WORKER_LOGS_MAX 4096u
#define MR_WORKER_EXIT_FATAL 1   /* refused for good, or a start that cannot succeed */
#define MR_WORKER_EXIT_LETHAL 75 /* a task ignored its cancel flag: start me again */
#define MR_WORKER_EXIT_STORE 76  /* the object store is gone: start me again */

enum mr_item_kind { MR_ITEM_REPORT, MR_ITEM_FETCHED, MR_ITEM_SIGNAL, MR_ITEM_LOGGED };

struct mr_item { /* in the network thread's inbox */
    enum mr_item_kind kind;
    struct mr_run_report report;
    struct mr_fetched fetched;
};

struct mr_worker_options {
    const char *scheduler;
    const char *trainer;      /* NULL: none */
    const char *store_socket; /* NULL: none */
    const char *store_address;
    const char *name;
    const char *node;
    const char *dir;                /* NULL: no crash record */
    const struct mr_rpc_auth *auth; /* outlives the shell */
    struct mr_peer_rules peers;
    const char *const *listen;
    size_t listen_count;
    uint32_t slots;
    uint32_t processor; /* the first for training roles, counted round and round */
    uint64_t memory_bytes;
    struct mr_store_limit limit; /* of its control group */
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
    struct mr_store *store;
    struct mr_crash_record *crash_record;
    struct mr_suspect suspects_found[MR_SLOTS_MAX];
    struct mr_ws_run *suspect_runs;
    struct mr_executor_env env;
    const struct mr_op_desc **ops;
    struct mr_worker_op *core_ops;
    struct mr_work_sharing *work_sharing;
    struct mr_wake_counter wake_counter; /* of items that executors reported */
    uint64_t reported;                   /* of them, those whose reports were taken */
    struct mr_loan_lock
        loan_lock; /* all of this, but for the inbox and the wake_counter; see delegate.c */
    mr_time sleeps_until;
    mr_duration nap; /* at most, while reports that change nothing are left in the inbox */
    bool delays_wake, by_delegate;
    struct mr_executor_env here_env;
    struct mr_executor *here; /* for what is too small to be handed to a thread */
    struct mr_run_report here_report;
    bool has_here_report;
    struct mr_executor **executors; /* by slot; those of long-running tasks start when needed */
    uint32_t executors_count;
    struct mr_run **runs; /* by strand id; NULL when it ended */
    uint32_t runs_room, runs_count;
    struct mr_prefetch *prefetch;
    mr_object_id drops[1024]; /* of one job, to be released */
    uint32_t drops_count;
    mr_job_id drops_job;
    mr_object_id
        wants[64]; /* objects that tasks are about to read, for the store to restore them */
    uint32_t wants_count;
    bool wants_at_once;

    /* the stream */
    const char *scheduler;
    struct mr_rpc_channel *channel;
    struct mr_rpc_call *call;
    mr_time connect_at; /* MR_NEVER: nothing to open */
    uint64_t incarnation;
    mr_time alone_since, alone_reported; /* not yet registered; 0: no */
    struct mr_pb_arena arena_in, arena_out;
    struct mr_buf wire;
    bool has_sent_register;
    mr_time logs_at, logs_looked_at; /* when to look what running tasks wrote; MR_NEVER: nothing */
    struct mr_worker_log *logs;      /* to be sent */
    uint32_t logs_count;
    size_t logs_bytes;

    struct mr_rpc_server *server;
    struct mr_params_service *params; /* of training roles in this process */
    char *address;                    /* of it, for others; NULL: none */
    struct mr_stats *stats;
    struct mr_counter *tasks_done, *tasks_failed, *strands, *fetches, *reconnects;
    struct mr_gauge *memory;
    mr_time memory_at;
    uint64_t memory_used;
    mr_time now;
    mr_time end_at; /* MR_NEVER: not ending */
    int exit_code;
    uint32_t signals;
    bool ending;
};

int mr_worker_shell_open(
    const struct mr_worker_options *o, struct mr_worker_shell **out, struct mr_error *e);
int mr_worker_shell_run(struct mr_worker_shell *sh);            /* the exit code */
bool mr_worker_shell_is_idle(const struct mr_worker_shell *sh); /* no executor is at work */
void mr_worker_shell_close(struct mr_worker_shell **sh);
void mr_worker_shell_signal(struct mr_worker_shell *sh); /* any thread: end, at once if repeated */

/* delegate.c */
mr_time mr_worker_shell_sleep_deadline(struct mr_worker_shell *sh, mr_time deadline);
void mr_worker_shell_allow_delegates(struct mr_worker_shell *sh, bool on);
void mr_worker_shell_on_report(void *ctx, const struct mr_run_report *r);
void mr_worker_shell_take(struct mr_worker_shell *sh, const struct mr_item *item); /* shell.c */

/* effects.c */
void mr_worker_shell_step(struct mr_worker_shell *sh, const struct mr_worker_event *ev);
void mr_worker_shell_turn(struct mr_worker_shell *sh);
void mr_worker_shell_report(struct mr_worker_shell *sh, const struct mr_run_report *r);
bool mr_worker_shell_delegate_turn(struct mr_worker_shell *sh);

/* scheduler_session.c */
void mr_worker_link_open(struct mr_worker_shell *sh);
void mr_worker_link_close(struct mr_worker_shell *sh);
bool mr_worker_link_may_send(const struct mr_worker_shell *sh);
void mr_worker_link_send(struct mr_worker_shell *sh, const struct mr_ws_up *up);
void mr_worker_link_free(struct mr_worker_shell *sh);
void mr_worker_link_logs_of_running(struct mr_worker_shell *sh);
void mr_worker_link_log(struct mr_worker_shell *sh, const struct mr_strand_item *item);
