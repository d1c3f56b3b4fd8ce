/* The trainer's shell (`struct mr_trainer` is the core's, core/core.h): one thread with the gRPC
 * loop, and what all services of the trainer share. It knows which callers are allowed, the
 * addresses of Redis, the scheduler and the store, and how other threads reach the loop. It does
 * not know what a channel, a queue or a session is. Those are *parts*:
 *
 *     const struct mr_trainer_part mr_trainings_part = {.service = &trainings_service,
 *         .open = …, .turn = …, .drain = …, .close = …};
 *
 * A part plugs in with one line in `parts` of main.c and its sources in CMakeLists.txt. The result
 * of its `open` is the first context of its calls (mr_rpc_call_context in on_open) and the
 * argument of its other functions. All code of a part runs on the loop's thread. Answers of Redis
 * come on another thread and are moved to the loop with mr_trainer_post. */
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
#include "store/meta/redis.h"

struct mr_channels;
struct mr_queues;
struct mr_trainer_part;

struct mr_trainer_options {
    const char *redis; /* "unix:PATH" or "HOST:PORT" */
    const char *redis_password;
    mr_duration redis_timeout;
    const char *scheduler; /* gRPC address; NULL: none, then nothing can be trained */
    const char *store;   /* the same, of an object store; NULL: none, then queues hold no objects */
    const char *address; /* where roles reach this process; NULL: where it listens */
    const char *token_file;
    const char *secret_file;
    struct mr_peer_rules peers;
    /* Borrowed until mr_trainer_close. Opened in this order: a part may use an earlier one. */
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
    struct mr_redis *redis; /* one connection for all parts; commands that block have their own */
    struct mr_inbox *inbox;
    struct mr_deferred later;         /* what the loop's thread found no room for in it */
    struct mr_pb_arena scratch;       /* of the message in hand */
    struct mr_rpc_channel *scheduler; /* shows the secret; NULL: none */
    struct mr_rpc_channel *store;     /* the same */
    char *address;                    /* where roles reach this process */
    uint32_t epoch;                   /* grows with each start; from Redis, at the start */
    bool is_stopping, is_draining;
    struct mr_channels *channels; /* channel/service.h: appends and followers */
    struct mr_queues *queues;     /* queue/service.h */
    void *parts[8];               /* what their `open` gave */
};

struct mr_trainer_part {
    const struct mr_rpc_service *service;
    /* Before the server starts; Redis has been reached. */
    int (*open)(struct mr_trainer_shell *t, void **out, struct mr_error *e);
    /* Once a turn of the loop: when it wants the next one (MR_NEVER: when something comes). NULL:
     * no turns. */
    mr_time (*turn)(void *part, mr_time now);
    /* SIGTERM: ends what waits (UNAVAILABLE), so that the server can drain. NULL: nothing waits. */
    void (*drain)(void *part);
    /* Answers what waits for this caller as if its time were over (rpc/waits.h). NULL: nothing. */
    void (*end_waits)(void *part, struct mr_str waiter);
    /* After the server and Redis: no call and no answer comes any more. */
    void (*close)(void **part);
};

int mr_trainer_open(const struct mr_trainer_options *options, const char *const *listen,
    size_t listen_count, struct mr_trainer_shell **out, struct mr_error *e);
int mr_trainer_run(struct mr_trainer_shell *t);   /* until stopped; the exit code */
void mr_trainer_stop(struct mr_trainer_shell *t); /* any thread */
void mr_trainer_close(struct mr_trainer_shell **t);

/* Any thread: run(p) comes on the loop's thread, in order, exactly once. */
void mr_trainer_post(struct mr_trainer_shell *t, void (*run)(void *p), void *p);
/* In a part's `close`, after it has ended its own threads: runs all that was posted. */
void mr_trainer_settle(struct mr_trainer_shell *t);

/* Unpacks a request into the scratch arena (good until the next one), or fails the call: NULL. */
void *mr_trainer_request(struct mr_trainer_shell *t, struct mr_rpc_call *call,
    struct mr_rpc_message *m, const ProtobufCMessageDescriptor *type);
void mr_trainer_fail(struct mr_rpc_call *call, int code, const char *fmt, ...) MR_PRINTF(3, 4);

/* A name of a channel, queue or item: 1 to `bytes_max` bytes of UTF-8 without control characters.
 * MR_EINVAL names the field. */
int mr_trainer_check_name(
    const char *field, const char *name, size_t bytes_max, struct mr_error *e);
