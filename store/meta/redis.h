/* One connection to Redis with a thread of its own. Any thread may send commands. Commands are
 * pipelined: a command is sent without waiting for the answers to the commands before it. A broken
 * connection is opened again. The connection raises no SIGPIPE. Callbacks run one at a time on the
 * connection's thread, or in mr_redis_look on its caller's thread. A callback may send commands. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"
#include "store/meta/redis_reply.h"

struct mr_redis;

/* Receives the answer to a command. MR_OK: `reply` is borrowed for the call. MR_EAWAY: there was no
 * connection, or the connection broke before the answer. If it broke, Redis may have run the
 * command. MR_ECANCELED: mr_redis_close was called. Errors of Redis such as LOADING, OOM and
 * READONLY, which mean that Redis cannot serve now, become MR_EAWAY. */
typedef void (*mr_redis_reply_fn)(void *ctx, int err, const struct mr_reply *reply);
typedef void (*mr_redis_state_fn)(void *ctx, bool here, const char *why);

struct mr_redis_config {
    const char *address;            /* "unix:PATH" or "HOST:PORT" */
    const char *password;           /* NULL: no password */
    mr_duration connect_timeout_ns; /* 0: 2 s */
    mr_duration reply_timeout_ns;   /* 0: 10 s */
    mr_redis_state_fn on_state;     /* called when the connection opens or breaks; may be NULL */
    void *ctx;
};

/* Starts the thread and does not wait for the connection. MR_EINVAL: the address is malformed. */
int mr_redis_open(const struct mr_redis_config *config, struct mr_redis **out, struct mr_error *e);
void mr_redis_close(struct mr_redis **r); /* pending commands get MR_ECANCELED */
bool mr_redis_is_here(const struct mr_redis *r);
const char *mr_redis_address(const struct mr_redis *r);

/* For a callback that has received an unexpected answer: closes the connection and opens it again
 * after a pause, which doubles with each call up to 2 s. on_state gets `why`. */
void mr_redis_pause(struct mr_redis *r, const char *why);

/* Sends a command; copies the arguments. MR_OK: `fn` will be called exactly once. MR_ELIMIT: too
 * much is queued. MR_EAWAY: there is no connection. After an error `fn` is not called. */
int mr_redis_send(
    struct mr_redis *r, size_t argc, const struct mr_str *argv, mr_redis_reply_fn fn, void *ctx);

/* For a thread that polls before it sleeps. After mr_redis_attend(r, true), the answers of Redis do
 * not wake the connection's thread. The polling thread reads the answers with mr_redis_look, and
 * callbacks run on the polling thread. This thread must call mr_redis_attend(r, false) before it
 * sleeps. At most one thread at a time may attend. */
void mr_redis_attend(struct mr_redis *r, bool on);
void mr_redis_look(struct mr_redis *r);

/* Sends a command and waits for the answer, which the caller frees with mr_reply_free.
 * MR_EINTERNAL: Redis has answered with an error. MR_EAWAY, MR_ELIMIT and MR_ECANCELED are those of
 * mr_redis_send and its callback. Must not be called in a callback. */
int mr_redis_call(struct mr_redis *r, size_t argc, const struct mr_str *argv, struct mr_reply **out,
    struct mr_error *e);
/* Waits until the connection is open, at most `timeout_ns`. MR_EAWAY: the connection is not open
 * yet. */
int mr_redis_wait(struct mr_redis *r, mr_duration timeout_ns);
