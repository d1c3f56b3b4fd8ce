/* The state of the core thread. This thread owns the scheduler's core, the gRPC loop and every
 * struct below. The functions are what handlers of calls need: they step the core, unpack a
 * request, take memory for the answer, or fail the call.
 *
 * One struct has the state of the whole process, because most handlers need most of it. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "host/inbox.h"
#include "host/pulse.h"
#include "rpc/client.h"
#include "rpc/util/auth.h"
#include "rpc/loop.h"
#include "rpc/util/pb.h"
#include "rpc/server.h"
#include "rpc/server/waits.h"
#include "services/scheduler/core/core.h"

#include <millrace/v1/cluster.pb-c.h>
#include <millrace/v1/jobs.pb-c.h>
#include <millrace/v1/session.pb-c.h>
#include <millrace/v1/templates.pb-c.h>

struct mr_watch;
struct mr_parser;
struct mr_journal_link;
struct mr_sessions;
struct mr_trace;
struct mr_logs;
struct mr_cluster_watch;
struct mr_live;
struct mr_usage;
struct mr_predict;
struct mr_catalogue;

struct mr_scheduler_options {
    const char *redis; /* "unix:PATH" or "HOST:PORT" */
    const char *redis_password;
    const char *redis_password_file; /* NULL: none */
    const char *token_file;          /* token file of users; NULL: none */
    const char *secret_file;         /* file with the secret of the services; NULL: none */
    struct mr_peer_rules peers;
    mr_duration redis_timeout;
    const char
        *dir; /* traces beyond their bound in Redis go to files in DIR/trace; NULL: to no file */
    uint64_t trace_job_bytes, trace_bytes, trace_file_bytes;
    /* limit of bytes of all bodies of submissions that are being received */
    uint64_t reading_bytes;
    mr_duration reading_idle; /* a submission that sends no byte for this time is refused */
    uint32_t events_kept;     /* how many of the latest cluster events are kept for Cluster.Watch */
    struct mr_sched_config core;
};

enum mr_shell_message_kind {
    MR_SHELL_PARSED,    /* a parser thread's result; p: struct mr_parser_result */
    MR_SHELL_TRACE,     /* the trace reader's answer; p: struct mr_trace_answer */
    MR_SHELL_PREDICTED, /* the outcome of a prediction; p: struct mr_predict_run */
    MR_SHELL_ACKED,     /* Redis has acknowledged the journal up to sequence number n */
    MR_SHELL_AWAY,      /* the connection to Redis broke */
    MR_SHELL_BACK,      /* the connection to Redis is open again */
    MR_SHELL_REWIND,    /* Redis came back with an older journal */
    MR_SHELL_REFUSED,   /* another scheduler owns the journal; n: that scheduler's epoch */
    MR_SHELL_SIGNAL,    /* n: the signal's number */
    MR_SHELL_CONTINUED, /* n: time when the process went on after a pause */
};

struct mr_shell_message { /* a message from another thread to the core thread */
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
    struct mr_pulse pulse; /* marked in each turn of the core thread's loop */
    /* memory of one request and its answer; the next request clears it */
    struct mr_pb_arena scratch;
    char cluster_id[33];
    uint64_t started_wall_ns;
    bool is_stopping;
    /* after a restart: every worker that the journal names has registered again or is lost */
    bool has_recovered;
    int exit_code;

    struct mr_journal_link *journal;
    struct mr_parser *parser;
    struct mr_catalogue *catalogue; /* operators of workers, with their documentation */
    struct mr_sessions *sessions;
    struct mr_watch *watch;
    struct mr_trace *trace;
    struct mr_logs *logs;
    struct mr_cluster_watch *cluster_watch;
    struct mr_usage *usage;
    struct mr_live *live;
    struct mr_predict *predict;
    struct mr_list answers; /* submit.c: calls that wait for the core's reply */
    mr_time answers_due;    /* not later than the earliest deadline in `answers` */
    struct mr_list reading; /* submit.c: calls whose bodies are still arriving */
    mr_time reading_due;    /* not later than the earliest deadline in `reading` */
};

/* Steps the core with the event, after filling in the wall clock. The effects are performed at the
 * end of this pass of the shell's loop. */
void mr_shell_step(struct mr_shell *sh, struct mr_sched_event *ev);
/* Pushes a message to the core thread. Any thread may call this function. */
int mr_shell_push(struct mr_shell *sh, struct mr_shell_message m);

/* True after a restart, until every worker that the journal names has registered again or is
 * lost. */
bool mr_shell_is_recovering(struct mr_shell *sh);

/* Unpacks a request into the scratch arena, which the next message of any call clears. On an error
 * the call is failed; returns NULL. */
void *mr_shell_request(struct mr_shell *sh, struct mr_rpc_call *call, struct mr_rpc_message *m,
    const ProtobufCMessageDescriptor *type);
/* Returns the shell, which is the context of a call until the handler sets another context. */
struct mr_shell *mr_shell_of(const struct mr_rpc_call *call);
/* Returns memory of the scratch arena, which is not zeroed. */
void *mr_shell_take(struct mr_shell *sh, size_t bytes);
/* Returns a copy of `s` in the scratch arena, with a NUL at its end. */
char *mr_shell_text(struct mr_shell *sh, struct mr_str s);
void mr_shell_fail(struct mr_rpc_call *call, int code, const char *fmt, ...) MR_PRINTF(3, 4);
