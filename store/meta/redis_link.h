/* Private to redis.c: links to Redis, and commands as bytes. */
#pragma once

#include "base/buf.h"
#include "base/time.h"

#include <hiredis/hiredis.h>

#include <stdbool.h>
#include <sys/time.h>

#define MR_REDIS_QUEUE_BYTES_MAX ((size_t)256 << 20)

struct timeval mr_redis_timeval(mr_duration ns);

/* "unix:PATH" or "HOST:PORT". NULL, or `err` set: it failed. */
redisContext *mr_redis_dial(const char *address, mr_duration timeout_ns);

/* The command in Redis's protocol; its bytes if the buffer has room for them. */
bool mr_redis_add_command(struct mr_buf *b, size_t argc, const struct mr_str *argv);

/* One command and its answer, on a link that nobody else has yet; NULL: the link is lost. What
 * redisCommand does, but without the SIGPIPE that it raises when Redis has just gone: the programs
 * that link this do not all ignore it. */
redisReply *mr_redis_ask(redisContext *link, size_t argc, const struct mr_str *argv);
