/* Parser threads: they turn submitted bodies into graphs, so that the core thread, which answers
 * heartbeats, never parses a long body. Small jobs, templates and large jobs each have their own
 * thread and queue. Results of one queue come in the order of its requests.
 * A tiny request is parsed on the core thread, if two hand-offs between threads would cost more
 * than the parsing. All functions are for the core thread. */
#pragma once

#include "rpc/server.h"
#include "rpc/util/auth.h"
#include "services/scheduler/submit/request.h"

struct mr_parser;

struct mr_parser_options {
    const char *redis, *redis_password; /* lent until close */
    /* lent until close; finds the user who sends a body and whose share of the quota it uses */
    struct mr_rpc_auth *auth;
    uint64_t reading_bytes; /* limit of bytes of all bodies together */
    /* Takes the result of a request. Called on a parser thread. */
    void (*on_result)(void *ctx, struct mr_parser_result **result);
    void *ctx;
};

int mr_parser_open(
    const struct mr_parser_options *options, struct mr_parser **out, struct mr_error *e);
void mr_parser_close(struct mr_parser **p);

/* Makes an empty request for a call whose body is to come. The request ends with mr_parser_push or
 * mr_parser_drop; a request without a stream may also be freed by mr_parser_request_free. */
struct mr_parser_request *mr_parser_request_new(struct mr_parser *p, uint64_t ticket);
/* Adds bytes to the body. MR_ETOOBIG: the body is too large. MR_ELIMIT: too many bytes of bodies
 * are being received. After an error the request has to be dropped. */
int mr_parser_add_body(struct mr_parser *p, struct mr_parser_request *r, struct mr_rpc_call *call,
    struct mr_str bytes, struct mr_error *e);

/* Parses a tiny request at once and returns the result. The request still belongs to the caller.
 * NULL: the caller has to push the request, because the request is not tiny, refers to objects or
 * names, or comes behind requests of small jobs. */
struct mr_parser_result *mr_parser_parse_now(
    struct mr_parser *p, struct mr_parser_request *request);
/* Takes the request; the result comes by on_result. MR_ELIMIT: too many requests wait. */
int mr_parser_push(struct mr_parser *p, struct mr_parser_request **request);
/* Called when the core thread has received this result: one request less waits in its queue. */
void mr_parser_received(struct mr_parser *p, const struct mr_parser_result *result);
/* Returns the number of requests in the queue of small jobs. While there is any,
 * mr_parser_parse_now refuses. */
uint32_t mr_parser_small_waiting(const struct mr_parser *p);

/* A large body is handed over in pieces of at least this size. malloc gives a block of this size
 * back to the kernel as soon as it is freed (shell/main.c). */
#define MR_PARSER_PIECE_BYTES ((size_t)256 << 10)
/* Hands the bytes that have arrived to the thread for large jobs, if they are enough for a piece.
 * So parsing overlaps with receiving. The bytes stay in the body while the thread's inbox is full,
 * or while too many other bodies are parsed as they arrive. */
void mr_parser_parse_ahead(struct mr_parser *p, struct mr_parser_request *request);
/* Frees a request that will not be pushed. */
void mr_parser_drop(struct mr_parser *p, struct mr_parser_request **request);
/* Makes an operator of a worker known to all parser threads. May be called again for the same
 * name. */
void mr_parser_add_op(struct mr_parser *p, struct mr_str name);
