/* One connection to Redis with a thread of its own: commands from any thread are sent in pipelined
 * batches, and while one batch is under way the next grows. It reconnects by itself. It knows
 * nothing of what the commands mean. It raises no SIGPIPE. Callbacks run on its thread, never under
 * a lock, and never two at once; the exception is mr_redis_look. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

struct mr_redis;
struct mr_reply;

enum mr_reply_type { MR_REPLY_NIL, MR_REPLY_INT, MR_REPLY_TEXT, MR_REPLY_LIST, MR_REPLY_ERROR };

enum mr_reply_type mr_reply_type(const struct mr_reply *r);
int64_t mr_reply_int(const struct mr_reply *r);        /* 0 unless INT */
struct mr_str mr_reply_text(const struct mr_reply *r); /* of TEXT and ERROR; on loan with r */
size_t mr_reply_count(const struct mr_reply *r);       /* of LIST */
const struct mr_reply *mr_reply_at(const struct mr_reply *r, size_t i);
/* In its callback: the reply, as a whole, is the caller's from now on; any thread may free it. */
struct mr_reply *mr_reply_take(const struct mr_reply *r);
bool mr_reply_is_away(const struct mr_reply *r); /* an error that means: not now */
void mr_reply_free(struct mr_reply **r);         /* what mr_redis_call or mr_reply_take gave */

/* err: MR_OK, then `reply` is on loan for the call; MR_EAWAY: the connection was away, or was lost
 * before the answer (the command may have run); MR_ECANCELED: closed. Replies LOADING, OOM,
 * READONLY and their like (redis.c) count as away. */
typedef void (*mr_redis_reply_fn)(void *ctx, int err, const struct mr_reply *reply);
typedef void (*mr_redis_state_fn)(void *ctx, bool here, const char *why);

struct mr_redis_config {
    const char *address;            /* "unix:PATH" or "HOST:PORT" */
    const char *password;           /* NULL: none */
    mr_duration connect_timeout_ns; /* 0: 2 s */
    mr_duration reply_timeout_ns;   /* 0: 10 s */
    mr_redis_state_fn on_state;     /* may be NULL */
    void *ctx;
};

/* Starts the thread; does not wait for the connection. MR_EINVAL for a bad address. */
int mr_redis_open(const struct mr_redis_config *config, struct mr_redis **out, struct mr_error *e);
void mr_redis_close(struct mr_redis **r); /* pending commands get MR_ECANCELED */
bool mr_redis_is_here(const struct mr_redis *r);
const char *mr_redis_address(const struct mr_redis *r);

/* From a callback only: Redis answers, but not what it should. The link is dropped and made again
 * after a pause that grows, to 2 s, each time this is said; on_state tells `why`. */
void mr_redis_pause(struct mr_redis *r, const char *why);

/* Copies the arguments. When this returns MR_OK, `fn` is called exactly once; otherwise never:
 * MR_ELIMIT (too much is queued), MR_EAWAY (not connected). */
int mr_redis_send(
    struct mr_redis *r, size_t argc, const struct mr_str *argv, mr_redis_reply_fn fn, void *ctx);

/* For a thread that is awake anyway: while it attends, answers wake nobody; it reads what is there
 * now and then by itself, and callbacks run on it. Before it sleeps it ends that. One thread may.
 */
void mr_redis_attend(struct mr_redis *r, bool on);
void mr_redis_look(struct mr_redis *r);

/* Sends and waits. Not from a callback. */
int mr_redis_call(struct mr_redis *r, size_t argc, const struct mr_str *argv, struct mr_reply **out,
    struct mr_error *e);
/* Waits until it is connected. */
int mr_redis_wait(struct mr_redis *r, mr_duration timeout_ns);
