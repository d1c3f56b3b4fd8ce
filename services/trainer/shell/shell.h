/* The trainer's shell: one thread with the gRPC loop, and what all services of the trainer share.
 * (`struct mr_trainer` is the core of sessions, core/core.h.) Knows which callers are allowed, the
 * addresses of Redis, the scheduler and the store, and how other threads reach the loop. Does not
 * know what a channel, a queue or a session is. Those are *parts*:
 *
 *     const struct mr_trainer_part mr_trainings_part = {.service = &trainings_service,
 *         .open = …, .turn = …, .drain = …, .close = …};
 *
 * A part is added with one line in `parts` of main.c. The result of its `open` is the first context
 * of its calls (mr_rpc_call_context in on_open) and the argument of its other functions. All code
 * of a part runs on the loop's thread. Answers of Redis come on another thread, which passes them
 * to the loop with mr_trainer_post. */
#pragma once

#include "base/list.h"
#include "host/inbox.h"
#include "host/deferred.h"
#include "host/os/stats.h"
#include "rpc/client.h"
#include "rpc/util/auth.h"
#include "rpc/loop.h"
#include "rpc/util/pb.h"
#include "rpc/server.h"
#include "rpc/server/waits.h"
#include "rpc/util/usage_report.h"
#include "store/meta/redis.h"

struct mr_channels;
struct mr_queues;
struct mr_trainer_part;

struct mr_trainer_options {
    const char *redis; /* "unix:PATH" or "HOST:PORT" */
    const char *redis_password;
    mr_duration redis_timeout;
    const char *scheduler; /* gRPC address; NULL: none, so nothing can be trained */
    const char *store;     /* address of an object store; NULL: none, so queues hold no objects */
    /* address at which the processes of trainings (servers, workers, scorers) reach this process;
     * NULL: the address at which this process listens */
    const char *address;
    const char *token_file;
    const char *secret_file;
    struct mr_peer_rules peers;
    /* The parts, lent until mr_trainer_close. They are opened in this order: a part may use an
     * earlier one. */
    const struct mr_trainer_part *const *parts;
    size_t parts_count;
};

struct mr_trainer_shell {
    struct mr_trainer_options options;
    struct mr_rpc_loop *loop;
    struct mr_rpc_server *server;
    struct mr_rpc_auth *auth;
    struct mr_rpc_waits waits;
    struct mr_stats *stats;
    /* one connection for all parts; blocking commands have connections of their own */
    struct mr_redis *redis;
    struct mr_inbox *inbox;
    struct mr_deferred later;   /* posts of the loop's own thread for which the inbox had no room */
    struct mr_pb_arena scratch; /* memory of the current request */
    /* Channels to the scheduler and to an object store, whose calls carry the cluster's secret.
     * NULL: the trainer has no address of a scheduler, or of a store. */
    struct mr_rpc_channel *scheduler;
    struct mr_rpc_channel *store;
    struct mr_usage_report usage_report;
    /* address at which the processes of trainings (servers, workers, scorers) reach this process */
    char *address;
    uint32_t epoch; /* number of this start, from Redis; it grows from start to start */
    bool is_stopping, is_draining;
    struct mr_channels *channels; /* state of the service Channels: channel/service.h */
    struct mr_queues *queues;     /* state of the service Queues: queue/service.h */
    void *parts[8];               /* results of the parts' `open` */
};

struct mr_trainer_part {
    const struct mr_rpc_service *service;
    /* Opens the part. Called before the server starts, when Redis has answered. */
    int (*open)(struct mr_trainer_shell *t, void **out, struct mr_error *e);
    /* Called once in each turn of the loop. Returns the time of the next turn; MR_NEVER: after the
     * next event. NULL: the part needs no turns. */
    mr_time (*turn)(void *part, mr_time now);
    /* Called after SIGTERM: ends waiting calls with UNAVAILABLE, so that the server can drain.
     * NULL: no call of the part ever waits. */
    void (*drain)(void *part);
    /* Answers the waiting calls of this caller as if their time were over (rpc/server/waits.h).
     * NULL: no call of the part ever waits. */
    void (*end_waits)(void *part, struct mr_str waiter);
    /* Closes the part. Called after the server and Redis are closed: no call and no answer will
     * come. */
    void (*close)(void **part);
};

int mr_trainer_open(const struct mr_trainer_options *options, const char *const *listen,
    size_t listen_count, struct mr_trainer_shell **out, struct mr_error *e);
/* Runs until mr_trainer_stop. Returns the exit code. */
int mr_trainer_run(struct mr_trainer_shell *t);
/* Ends mr_trainer_run. Any thread may call this function. */
void mr_trainer_stop(struct mr_trainer_shell *t);
void mr_trainer_close(struct mr_trainer_shell **t);

/* Makes the loop's thread call run(p). Functions run in order, each exactly once. Any thread may
 * call this function. */
void mr_trainer_post(struct mr_trainer_shell *t, void (*run)(void *p), void *p);
/* Runs all posted functions. A part calls this in its `close`, after the part's own threads have
 * ended. */
void mr_trainer_settle(struct mr_trainer_shell *t);

/* Unpacks a request into the scratch arena, where it stays until the next request. NULL: the call
 * was failed. */
void *mr_trainer_request(struct mr_trainer_shell *t, struct mr_rpc_call *call,
    struct mr_rpc_message *m, const ProtobufCMessageDescriptor *type);
void mr_trainer_fail(struct mr_rpc_call *call, int code, const char *fmt, ...) MR_PRINTF(3, 4);

/* Checks the name of a channel, queue or item: 1 to `bytes_max` bytes of UTF-8 without control
 * characters. MR_EINVAL: the name is wrong, and `e` names the field. */
int mr_trainer_check_name(
    const char *field, const char *name, size_t bytes_max, struct mr_error *e);
