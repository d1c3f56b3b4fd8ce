/* Private to redis.c: opens connections to Redis and encodes commands. */
#pragma once

#include "base/buf.h"
#include "base/time.h"

#include <hiredis/hiredis.h>

#include <stdbool.h>
#include <sys/time.h>

#define MR_REDIS_QUEUE_BYTES_MAX ((size_t)256 << 20)

struct timeval mr_redis_timeval(mr_duration ns);

/* Opens a connection to "unix:PATH" or "HOST:PORT". If the result is NULL or its `err` is set, the
 * connection failed. */
redisContext *mr_redis_dial(const char *address, mr_duration timeout_ns);

/* Appends the command in the protocol of Redis. False: the buffer has no room. */
bool mr_redis_add_command(struct mr_buf *b, size_t argc, const struct mr_str *argv);

/* Sends one command and waits for the answer, on a connection that no other thread uses. NULL: the
 * connection broke. Unlike redisCommand, this function raises no SIGPIPE when Redis has closed the
 * connection. Not all programs that link this file ignore SIGPIPE. */
redisReply *mr_redis_ask(redisContext *link, size_t argc, const struct mr_str *argv);
