/* The scheduler's shell: the one thread that owns the core, the gRPC loop and everything below.
 * It turns messages into events and effects into messages; it decides nothing about tasks.
 *
 *   intake   a thread that parses submitted graphs (parsing a million tasks must not stop
 * heartbeats) ledger   the journal: sequence numbers, snapshots, replay sessions streams of workers
 * and stores follow   calls that wait for something of a job: its end, its events, its values trace
 * spans of finished tasks, for Timeline and Profile
 *
 * One struct of the whole, because every handler needs most of it; each part's fields are written
 * by its own file only. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "host/inbox.h"
#include "rpc/client.h"
#include "rpc/util/auth.h"
#include "rpc/loop.h"
#include "rpc/util/pb.h"
#include "rpc/server.h"
#include "rpc/server/waits.h"
#include "services/scheduler/core/core.h"
#include "store/meta/journal/journal.h"

#include <millrace/v1/cluster.pb-c.h>
#include <millrace/v1/jobs.pb-c.h>
#include <millrace/v1/session.pb-c.h>
#include <millrace/v1/templates.pb-c.h>

struct mr_follow;
struct mr_intake;
struct mr_ledger;
struct mr_sessions;
struct mr_trace;
struct mr_logs;
struct mr_cluster_watch;
struct mr_catalogue;

struct mr_scheduler_options {
    const char *redis; /* "unix:PATH" or "HOST:PORT" */
    const char *redis_password;
    const char *token_file;  /* of users; NULL: none */
    const char *secret_file; /* between services; NULL: none */
    struct mr_peer_rules peers;
    mr_duration redis_timeout;
    const char *dir; /* for what Redis may not hold; NULL: none */
    uint64_t trace_job_bytes, trace_bytes, trace_file_bytes;
    uint64_t reading_bytes;   /* of jobs that are being read, in all */
    uint32_t events_kept;     /* of the cluster, for those who watch it */
    mr_duration reading_idle; /* without a byte of one of them, until it is given up */
    struct mr_sched_config core;
};

enum mr_shell_message_kind {
    MR_SHELL_PARSED, /* p: struct mr_intake_done */
    MR_SHELL_TRACE,  /* p: struct mr_trace_answer */
    MR_SHELL_ACKED,  /* n: sequence */
    MR_SHELL_AWAY,
    MR_SHELL_BACK,
    MR_SHELL_REWIND,
    MR_SHELL_REFUSED, /* n: higher epoch */
    MR_SHELL_SIGNAL,
};

struct mr_shell_message {
    enum mr_shell_message_kind kind;
    uint64_t n;
    void *p;
};

struct mr_shell {
    struct mr_scheduler_options options;
    struct mr_arena arena;
    struct mr_sched *core;
    struct mr_sched_effects fx;
    struct mr_rpc_loop *loop;
    struct mr_rpc_server *server;
    struct mr_rpc_auth *auth;
    struct mr_rpc_waits waits;
    struct mr_stats *stats;
    struct mr_inbox *inbox;
    struct mr_pb_arena scratch; /* of the message in hand */
    char cluster_id[33];
    uint64_t started_wall_ns;
    bool is_stopping;
    bool has_settled; /* the workers of its earlier life are back, or lost */
    int exit_code;

    struct mr_ledger *ledger;
    struct mr_intake *intake;
    struct mr_catalogue *catalogue; /* ops of foreign workers, with their documentation */
    struct mr_sessions *sessions;
    struct mr_follow *follow;
    struct mr_trace *trace;
    struct mr_logs *logs;
    struct mr_cluster_watch *cluster_watch;
    struct mr_list answers; /* submit.c: calls that wait for the core's reply */
    mr_time answers_due;    /* not above the least of all */
    struct mr_list reading; /* submit.c: calls whose bodies come */
    mr_time reading_due;
};

/* Steps the core with the time filled in; effects are performed at the end of the turn. */
void mr_shell_step(struct mr_shell *sh, struct mr_sched_event *ev);
int mr_shell_push(struct mr_shell *sh, struct mr_shell_message m); /* any thread */

int mr_shell_open(const struct mr_scheduler_options *options, const char *const *listen,
    size_t listen_count, struct mr_shell **out, struct mr_error *e);
int mr_shell_run(struct mr_shell *sh); /* until stopped; the exit code */
void mr_shell_close(struct mr_shell **sh);

bool mr_shell_is_early(struct mr_shell *sh); /* until it has settled */

/* Unpacks a request into the scratch arena, or fails the call. */
void *mr_shell_request(struct mr_shell *sh, struct mr_rpc_call *call, struct mr_rpc_message *m,
    const ProtobufCMessageDescriptor *type);
struct mr_shell *mr_shell_of(
    const struct mr_rpc_call *call);                       /* context of calls without their own */
void *mr_shell_take(struct mr_shell *sh, size_t bytes);    /* scratch of the message in hand */
char *mr_shell_text(struct mr_shell *sh, struct mr_str s); /* scratch copy with a NUL */
void mr_shell_fail(struct mr_rpc_call *call, int code, const char *fmt, ...) MR_PRINTF(3, 4);

/* The services, one file each. */
extern const struct mr_rpc_service mr_jobs_service;
extern const struct mr_rpc_service mr_cluster_service;
extern const struct mr_rpc_service mr_templates_service;
extern const struct mr_rpc_service mr_worker_session_service;
extern const struct mr_rpc_service mr_store_session_service;
