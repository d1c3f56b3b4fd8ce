/* Three queues, each with its own thread: for small jobs, for templates and for large jobs. A
 * thread parses the requests of its queue in order (parse.c). It has its own connection to Redis
 * and its own table of known operators (ops.h). The core thread has such a table, too, since it
 * parses tiny requests. A small job never waits for a large one. A small body that asks for a large
 * graph moves to the queue for large jobs.
 * A large body is parsed while it arrives: its pieces go to the thread for large jobs, before the
 * request itself does. The state of the parsing (stream.h) then belongs to that thread, so a call
 * that ends early sends one more piece without bytes, which tells the thread to free the state
 * (is_drop). */
#include "services/scheduler/submit/parser.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "host/inbox.h"
#include "host/thread.h"
#include "services/scheduler/submit/parse.h"
#include "services/scheduler/submit/stream.h"
#include "services/scheduler/submit/templates.h"
#include "store/meta/directory.h"
#include "store/meta/redis.h"

/* limit of requests in a queue; the queue's inbox is larger, since names of operators and pieces of
 * bodies also go through it */
#define WAITING_MAX 1024
#define STREAMS_MAX 8 /* limit of bodies that are parsed while they arrive */

struct piece { /* a piece of a stream */
    struct mr_parser_stream *stream;
    struct mr_buf bytes; /* messages, each after its length (u64), or a part of a JSON text */
    bool is_drop; /* the piece has no bytes: the call has ended, and the stream is to be freed */
};

struct message { /* exactly one of the members is set */
    struct mr_parser_request *request;
    struct piece *piece;
    char *op;
};

/* the threads are stopped in this order */
enum { QUEUE_SMALL, QUEUE_TEMPLATES, QUEUE_LARGE, QUEUES };

struct queue { /* owned by the queue's thread, except where a member names another owner */
    struct mr_parser *parser;
    struct mr_thread *thread;
    struct mr_inbox *inbox; /* items are struct message */
    struct mr_redis *redis;
    struct mr_parse_thread tools;
    uint32_t waiting; /* owned by the core thread: requests that were pushed and are not answered */
};

struct mr_parser {
    struct mr_parser_options options;
    struct mr_allowance *quota;
    struct queue queues[QUEUES];
    /* owned by the core thread: */
    struct mr_parser_ops core_ops;
    uint32_t streams_open;
    struct piece *drops[STREAMS_MAX]; /* pieces with is_drop for which the inbox had no room */
    uint32_t drops_count;
};

static void piece_free(struct piece **p)
{
    if (!*p) return;
    mr_buf_fini(&(*p)->bytes);
    mr_release(*p);
    *p = NULL;
}

/* ---- the threads ----------------------------------------------------------------------------- */

static void answer(const struct queue *q, struct mr_parser_result *d)
{
    q->parser->options.on_result(q->parser->options.ctx, &d);
}

static void take_piece(struct queue *q, struct piece *x)
{
    if (x->is_drop) {
        struct mr_parser_result *d = mr_alloc(sizeof *d);
        d->has_stream = d->is_dropped = true;
        mr_parser_stream_free(&x->stream);
        answer(q, d);
    } else {
        mr_parse_feed(&q->tools, x->stream, &x->bytes);
    }
    piece_free(&x);
}

/* Moves the request to the queue for large jobs. The core thread is told first, so that it counts
 * the request in that queue before the result comes. */
static void move_to_large(struct queue *q, struct mr_parser_request *r)
{
    struct mr_parser_result *moved = mr_alloc(sizeof *moved);
    moved->queue = QUEUE_SMALL;
    moved->is_moved = true;
    answer(q, moved);
    r->queue = QUEUE_LARGE;
    const struct message m = {.request = r};
    if (!mr_inbox_push(q->parser->queues[QUEUE_LARGE].inbox, &m)) return;
    struct mr_parser_result *d = mr_parser_result_new(r);
    mr_parser_result_fail(
        d, mr_fail(&d->error, MR_EAWAY, "too many large submissions are waiting: try again"));
    mr_parser_request_free(&r);
    answer(q, d);
}

static void take_request(struct queue *q, struct mr_parser_request *r)
{
    bool is_small = q == &q->parser->queues[QUEUE_SMALL];
    struct mr_parser_result *d = is_small ? mr_parse_small(&q->tools, r) : mr_parse(&q->tools, r);
    if (!d) {
        move_to_large(q, r);
        return;
    }
    mr_parser_request_free(&r);
    answer(q, d);
}

static void run(void *ctx)
{
    struct queue *q = ctx;
    for (;;) {
        struct message m;
        if (!mr_inbox_wait(q->inbox, MR_NEVER, &m, 1)) {
            if (mr_inbox_is_closed(q->inbox)) return;
            continue;
        }
        if (m.op) mr_parser_ops_add(&q->tools.ops, m.op);
        if (m.piece) take_piece(q, m.piece);
        if (m.request) take_request(q, m.request);
    }
}

static int queue_open(struct mr_parser *p, uint32_t number, const char *name, struct mr_error *e)
{
    struct queue *q = &p->queues[number];
    const struct mr_redis_config link = {
        .address = p->options.redis, .password = p->options.redis_password};
    q->parser = p;
    q->inbox = mr_inbox_new(2 * WAITING_MAX + MR_FOREIGN_OPS_MAX, sizeof(struct message));
    mr_parser_ops_init(&q->tools.ops);
    int err = mr_redis_open(&link, &q->redis, e);
    if (err) return err;
    q->tools.directory = mr_directory_new(q->redis, NULL);
    if (number == QUEUE_TEMPLATES) q->tools.templates = mr_templates_new(q->redis);
    q->thread = mr_thread_start(name, run, q);
    return MR_OK;
}

static void queue_close(struct queue *q)
{
    if (!q->parser) return;
    mr_inbox_close(q->inbox);
    mr_thread_join(&q->thread);
    struct message m;
    while (mr_inbox_take(q->inbox, &m, 1)) {
        mr_parser_request_free(&m.request);
        if (m.piece && m.piece->is_drop) mr_parser_stream_free(&m.piece->stream);
        piece_free(&m.piece);
        mr_release(m.op);
    }
    mr_inbox_free(&q->inbox);
    mr_templates_free(&q->tools.templates);
    mr_redis_close(&q->redis);
    mr_directory_free(&q->tools.directory);
    mr_parser_ops_fini(&q->tools.ops);
}

int mr_parser_open(
    const struct mr_parser_options *options, struct mr_parser **out, struct mr_error *e)
{
    static const char *const names[QUEUES] = {"parse-small", "parse-template", "parse-large"};
    MR_AUTO(mr_parser_close) struct mr_parser *p = mr_alloc(sizeof *p);
    p->options = *options;
    p->quota = mr_allowance_new(options->reading_bytes, MR_PARSE_SMALL_BYTES_MAX);
    mr_parser_ops_init(&p->core_ops);
    /* the queue for large jobs first, since the thread for small jobs pushes to it */
    for (uint32_t i = QUEUES; i-- > 0;) {
        int err = queue_open(p, i, names[i], e);
        if (err) return err;
    }
    *out = MR_STEAL(p);
    return MR_OK;
}

void mr_parser_close(struct mr_parser **pp)
{
    struct mr_parser *p = *pp;
    *pp = NULL;
    if (!p) return;
    for (uint32_t i = 0; i < QUEUES; i++)
        queue_close(&p->queues[i]);
    for (uint32_t i = 0; i < p->drops_count; i++) {
        mr_parser_stream_free(&p->drops[i]->stream);
        piece_free(&p->drops[i]);
    }
    mr_parser_ops_fini(&p->core_ops);
    mr_allowance_free(&p->quota);
    mr_release(p);
}

/* ---- the core thread ------------------------------------------------------------------------- */

struct mr_parser_request *mr_parser_request_new(struct mr_parser *p, uint64_t ticket)
{
    struct mr_parser_request *r = mr_alloc(sizeof *r);
    r->ticket = ticket;
    r->quota = p->quota;
    mr_buf_init(&r->body, MR_JOB_BODY_BYTES_MAX);
    return r;
}

int mr_parser_add_body(struct mr_parser *p, struct mr_parser_request *r, struct mr_rpc_call *call,
    struct mr_str bytes, struct mr_error *e)
{
    struct mr_str user = {0}; /* looked up only for large bodies */
    if (!r->hold.counted && r->hold.bytes + bytes.n > MR_PARSE_SMALL_BYTES_MAX)
        user = mr_rpc_auth_caller(p->options.auth, call);
    int err = mr_allowance_add(r->quota, &r->hold, user, bytes.n, e);
    if (err) return err;
    mr_buf_add_str(&r->body, bytes);
    if (!mr_buf_status(&r->body)) return MR_OK;
    return mr_fail(e, MR_ETOOBIG, "the graph is larger than %zu bytes", MR_JOB_BODY_BYTES_MAX);
}

struct mr_parser_result *mr_parser_parse_now(struct mr_parser *p, struct mr_parser_request *r)
{
    return p->queues[QUEUE_SMALL].waiting ? NULL : mr_parse_tiny(&p->core_ops, r);
}

static uint32_t queue_for(const struct mr_parser_request *r)
{
    if (r->form >= MR_PARSER_INSTANTIATE) return QUEUE_TEMPLATES;
    return r->stream || r->body.n > MR_PARSE_SMALL_BYTES_MAX ? QUEUE_LARGE : QUEUE_SMALL;
}

int mr_parser_push(struct mr_parser *p, struct mr_parser_request **request)
{
    const struct message m = {.request = *request};
    uint32_t number = (*request)->queue = queue_for(*request);
    struct queue *q = &p->queues[number];
    int err = q->waiting < WAITING_MAX ? mr_inbox_push(q->inbox, &m) : MR_ELIMIT;
    if (err) return err;
    q->waiting++;
    *request = NULL;
    return MR_OK;
}

void mr_parser_received(struct mr_parser *p, const struct mr_parser_result *d)
{
    struct queue *q = &p->queues[d->queue];
    if (d->has_stream) p->streams_open--;
    if (!d->is_dropped && q->waiting) q->waiting--;
    if (d->is_moved) p->queues[QUEUE_LARGE].waiting++;
}

uint32_t mr_parser_small_waiting(const struct mr_parser *p)
{
    return p->queues[QUEUE_SMALL].waiting;
}

static int push_piece(struct mr_parser *p, struct piece *x)
{
    const struct message m = {.piece = x};
    return mr_inbox_push(p->queues[QUEUE_LARGE].inbox, &m);
}

void mr_parser_parse_ahead(struct mr_parser *p, struct mr_parser_request *r)
{
    if (r->body.n < MR_PARSER_PIECE_BYTES || mr_buf_status(&r->body)) return;
    while (p->drops_count && !push_piece(p, p->drops[p->drops_count - 1]))
        p->drops_count--;
    if (!r->stream) {
        if (p->streams_open == STREAMS_MAX) return;
        p->streams_open++;
        r->stream = mr_parser_stream_new(r->form == MR_PARSER_JSON);
    }
    struct piece *x = mr_alloc(sizeof *x);
    x->stream = r->stream;
    x->bytes = r->body;
    /* if the inbox is full, the bytes stay in the body: the next mr_parser_parse_ahead or
     * mr_parser_push sends them */
    if (push_piece(p, x)) {
        mr_release(x);
        return;
    }
    size_t n = r->body.n;
    mr_buf_init(&r->body, r->body.bytes_max - n);
    mr_buf_reserve(&r->body, n); /* the next piece is usually as long as this one */
}

void mr_parser_drop(struct mr_parser *p, struct mr_parser_request **request)
{
    struct mr_parser_request *r = *request;
    if (r && r->stream) {
        struct piece *x = mr_alloc(sizeof *x);
        x->is_drop = true;
        x->stream = MR_STEAL(r->stream);
        /* `drops` has room: each of the open streams adds at most one piece with is_drop */
        if (push_piece(p, x)) p->drops[p->drops_count++] = x;
    }
    mr_parser_request_free(request);
}

void mr_parser_add_op(struct mr_parser *p, struct mr_str name)
{
    char *copy = mr_alloc(name.n + 1);
    memcpy(copy, name.p, name.n);
    for (uint32_t i = 0; i < QUEUES; i++) {
        const struct message m = {.op = mr_copy_text(copy)};
        /* the push cannot fail, since the inbox has room for all operators */
        if (mr_inbox_push(p->queues[i].inbox, &m)) mr_release(m.op);
    }
    mr_parser_ops_add(&p->core_ops, copy);
}
