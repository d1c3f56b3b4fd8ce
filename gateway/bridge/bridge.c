/* Makes the gRPC calls for exchanges. An exchange is one HTTP request that waits for a service
 * (exchange.h). The exchange is the context of its gRPC call. The exchange is freed when the call
 * is over and the HTTP thread has posted LEAVE. */
#include "gateway/bridge/bridge.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/protowire.h"
#include "base/unconst.h"
#include "gateway/bridge/backends.h"
#include "gateway/bridge/scrape.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "rpc/loop.h"
#include "rpc/status.h"
#include "rpc/server/waits.h"

#include <poll.h>
#include <stdio.h>
#include <sys/random.h>

#define BATCH 64
#define HEARTBEAT (15 * MR_SECOND)
/* Time between two looks for closed connections and for sockets past their deadline. */
#define LOOK_EVERY MR_SECOND
/* A stream without messages is answered with 200 after this time. The service's initial metadata is
 * no sign of success, because it precedes an error, too. */
#define OPENED_AFTER MR_SECOND
#define OPENED_LOOK (250 * MR_MS)
/* At the end, HTTP threads have this time to write the last answers. */
#define SHUTDOWN_TIME MR_SECOND
#define WAIT_S_MAX 3600.0
#define REOPEN_AFTER (500 * MR_MS)
#define REOPEN_TIMEOUT (60 * MR_SECOND)
/* The drain waits at most this long for the first requests of new connections. */
#define FIRST_REQUEST MR_SECOND
/* Time between two calls of Waits.End while draining. Waits.End is called again and again, because
 * another call may have begun to wait since. */
#define CUT_EVERY (250 * MR_MS)

#define STOPPING "the gateway is stopping; try again"

struct post {
    enum mr_bridge_post_kind kind;
    struct mr_exchange *x;
    struct mr_chunk *chunk;
};

struct mr_bridge {
    struct mr_rpc_loop *loop;
    struct mr_inbox *inbox;
    struct mr_backends *backends;
    struct mr_fd_deadlines *fd_deadlines;
    struct mr_stats *stats;
    /* Exchanges that are not over, or whose HTTP thread still uses them. */
    struct mr_list live;
    mr_time next_look;
    bool stopping;
    bool draining; /* true: services are told to end their waits */
    bool closing;  /* true: calls that still run are cancelled */
    mr_time next_cut;
    uint32_t cuts_out; /* calls of Waits.End that still run */
    char waiter[33];   /* marks our calls, so that Waits.End finds them (rpc/server/waits.h) */
};

struct mr_bridge *mr_bridge_new(const struct mr_bridge_options *o)
{
    struct mr_bridge *b = mr_alloc(sizeof *b);
    b->loop = mr_rpc_loop_new();
    b->inbox = mr_inbox_new(o->exchanges_max * 16 + 64, sizeof(struct post));
    mr_inbox_set_waiter(b->inbox, mr_rpc_loop_waiter(b->loop));
    b->backends =
        mr_backends_new(b->loop, o->scheduler, o->trainer, o->stores, o->stores_count, o->secrets);
    unsigned char random[16];
    ssize_t drawn = getrandom(random, sizeof random, 0);
    mr_assert(drawn == (ssize_t)sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(b->waiter + 2 * i, 3, "%02x", random[i]);
    b->fd_deadlines = o->fd_deadlines;
    b->stats = o->stats;
    mr_list_init(&b->live);
    return b;
}

void mr_bridge_post(struct mr_bridge *b, enum mr_bridge_post_kind kind, struct mr_exchange *x,
    struct mr_chunk *chunk)
{
    struct post p = {kind, x, chunk};
    int err = mr_inbox_push_wait(b->inbox, &p, MR_NEVER);
    mr_assert(!err); /* cannot fail: the inbox has room for all posts of all exchanges */
}

/* ---- replies to the HTTP thread -------------------------------------------------------------- */

static void reply(struct mr_exchange *x, enum mr_reply_kind kind, struct mr_rpc_message *m)
{
    struct mr_reply r = {kind, m};
    int err = mr_inbox_push(x->replies, &r);
    mr_assert(!err); /* cannot fail: there is room for the window, all chunks, OPENED and END */
    x->last_reply = mr_clock_now();
    if (mr_parker_unpark(&x->parker)) x->wake(x->wake_ctx);
}

static void free_if_done(struct mr_exchange *x)
{
    if (x->state != MR_EXCHANGE_OVER || !x->is_left) return;
    mr_list_remove(&x->live);
    mr_exchange_free(&x);
}

static void end(struct mr_exchange *x, const struct mr_rpc_status *status)
{
    struct mr_error e;
    x->error = mr_rpc_status_error(status, &e);
    x->grpc_code = status->code;
    if (x->error) {
        mr_buf_add_str(&x->text, status->message);
        mr_buf_add_str(&x->details, status->details);
    }
    x->call.v = 0;
    x->reopen_at = 0;
    mr_exchange_move(x, MR_EXCHANGE_OVER);
    if (!x->is_left) reply(x, MR_REPLY_END, NULL);
    free_if_done(x);
}

static void end_away(struct mr_exchange *x, const char *why)
{
    struct mr_rpc_status status = {.code = mr_err_grpc(MR_EAWAY), .message = mr_str(why)};
    end(x, &status);
}

/* Returns the time for which the request allows the service to wait. */
static mr_duration wait_of(const struct mr_exchange *x)
{
    struct mr_protowire_reader r = mr_protowire_read(mr_buf_str(&x->request));
    struct mr_protowire_field f;
    double wait_s = 0;
    while (!mr_protowire_next(&r, &f))
        if (f.number == x->wait_field && f.type == MR_PROTOWIRE_FIXED64)
            memcpy(&wait_s, &f.value, sizeof wait_s);
    return wait_s > 0 && wait_s <= WAIT_S_MAX ? (mr_duration)(wait_s * (double)MR_SECOND) : 0;
}

/* Sets how long the service may wait. Appends the field to the request again, because a parser of
 * protobuf takes the last of several values. */
static void set_wait(struct mr_exchange *x, mr_duration wait)
{
    double wait_s = (double)wait / (double)MR_SECOND;
    uint64_t bits;
    memcpy(&bits, &wait_s, sizeof bits);
    mr_protowire_tag(&x->request, x->wait_field, MR_PROTOWIRE_FIXED64);
    mr_protowire_fixed64(&x->request, bits);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void read_on(struct mr_exchange *x, struct mr_rpc_call *call)
{
    if (x->unused < MR_EXCHANGE_WINDOW) mr_rpc_call_read(call);
}

/* Keeps the event's id, after which a resumed stream continues. */
static void note_event(struct mr_exchange *x, struct mr_rpc_message *m)
{
    struct mr_protowire_reader r = mr_protowire_read(mr_rpc_message_str(m));
    struct mr_protowire_field f;
    x->give_up_at = 0;
    while (!mr_protowire_next(&r, &f)) {
        if (f.number != x->event_field || f.type != MR_PROTOWIRE_BYTES || !f.bytes.n) continue;
        mr_buf_clear(&x->last_id);
        mr_buf_add_str(&x->last_id, f.bytes);
    }
}

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_exchange *x = mr_rpc_call_context(call);
    if (x->is_left) return;
    if (x->resume_field) note_event(x, m);
    mr_exchange_move(x, MR_EXCHANGE_ANSWERED);
    x->is_cut = x->bridge->draining && mr_clock_now() < x->wait_until;
    x->unused++;
    reply(x, MR_REPLY_MESSAGE, mr_rpc_message_take(m));
    read_on(x, call);
}

static void on_writable(struct mr_rpc_call *call)
{
    struct mr_exchange *x = mr_rpc_call_context(call);
    for (; x->chunks_waiting && !x->is_left; x->chunks_waiting--)
        reply(x, MR_REPLY_TAKEN, NULL);
}

/* True: the exchange may open its call again. A stream of events may do so once its first reply has
 * come; the stream then continues after its last event. A call that may wait for its answer may do
 * so while it has no answer and its wait is not over. */
static bool may_reopen(const struct mr_exchange *x)
{
    if (x->resume_field) return x->state != MR_EXCHANGE_SILENT;
    return x->may_repeat && x->state != MR_EXCHANGE_ANSWERED && mr_clock_now() < x->wait_until;
}

/* Plans another attempt, because the service is away and may come back. The client's connection
 * stays open. */
static void reopen_later(struct mr_exchange *x)
{
    mr_time now = mr_clock_now();
    x->call.v = 0;
    x->reopen_at = now + REOPEN_AFTER;
    mr_time limit = x->resume_field ? now + REOPEN_TIMEOUT : x->wait_until;
    if (!x->give_up_at) x->give_up_at = limit;
    x->bridge->next_look = MR_MIN(x->bridge->next_look, x->reopen_at);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct mr_exchange *x = mr_rpc_call_context(call);
    (void)call;
    bool is_away = status->code == mr_err_grpc(MR_EAWAY);
    if (is_away) mr_backends_away(x->bridge->backends, x->backend);
    if (is_away && !x->is_left && !x->bridge->draining && may_reopen(x))
        reopen_later(x);
    else if (status->code && x->is_shutdown)
        end_away(x, STOPPING);
    else
        end(x, status);
}

static const struct mr_rpc_handler handler = {
    .on_message = on_message,
    .on_writable = on_writable,
    .on_done = on_done,
};

static void scraped(struct mr_exchange *x)
{
    static const struct mr_rpc_status ok = {.code = 0};
    end(x, &ok);
}

/* Chooses the channel of an exchange. NULL: there is no channel, and the exchange has ended. */
static struct mr_rpc_channel *pick(struct mr_bridge *b, struct mr_exchange *x)
{
    struct mr_rpc_channel *channel = x->of_one_store ? mr_backends_store(b->backends, x->store)
                                                     : mr_backends_pick(b->backends, x->backend);
    x->stores_count = (uint32_t)mr_backends_stores_count(b->backends);
    static const struct mr_rpc_status beyond = {
        .code = 3, .message = MR_STR_INIT("page_token names a store that does not exist")};
    if (!channel && x->of_one_store && x->stores_count)
        end(x, &beyond);
    else if (!channel)
        end_away(x, x->backend == MR_BACKEND_TRAINER
                        ? "this gateway knows no trainer: it is started with --trainer"
                        : "no object store is known yet; try again");
    return channel;
}

static void open_call(struct mr_bridge *b, struct mr_exchange *x)
{
    struct mr_rpc_channel *channel = pick(b, x);
    if (!channel) return;
    struct mr_rpc_metadata who[] = {
        {MR_RPC_USER, mr_str(x->user.name)},
        {MR_RPC_ROLE, mr_str(mr_role_name(x->user.role))},
        /* Must be the last entry: only calls that wait have it. */
        {MR_RPC_WAITER, mr_str(b->waiter)},
    };
    struct mr_rpc_call_options options = {
        .timeout = x->timeout,
        .manual_read = x->is_stream,
        .one_reply = !x->is_stream,
        .metadata = who,
        .metadata_count = MR_ARRAY_LEN(who) - (x->wait_until ? 0 : 1),
    };
    struct mr_rpc_call *call = mr_rpc_call_open(channel, x->method->path, &handler, x, &options);
    x->call = mr_rpc_call_id_of(call);
    (void)mr_rpc_call_send(call, mr_buf_str(&x->request));
    if (!x->resume_field && !x->may_repeat) mr_buf_fini(&x->request);
    if (!x->more) (void)mr_rpc_call_half_close(call);
    if (x->is_stream) mr_rpc_call_read(call);
}

/* True: the exchange is a stream of events, which may last forever. Its client reconnects to the
 * next gateway and resumes. */
static bool is_endless(const struct mr_exchange *x)
{
    return x->is_stream && x->is_events;
}

/* Ends an exchange because the gateway stops. */
static void break_off(struct mr_bridge *b, struct mr_exchange *x)
{
    struct mr_rpc_call *call = x->call.v ? mr_rpc_call_find(b->loop, x->call) : NULL;
    x->is_shutdown = true;
    if (call)
        mr_rpc_call_cancel(call); /* on_done is called afterwards */
    else if (!x->is_metrics)      /* a collection of metrics ends by itself within 4 s */
        end_away(x, STOPPING);
}

static void start(struct mr_bridge *b, struct mr_exchange *x)
{
    x->bridge = b;
    mr_list_add_tail(&b->live, &x->live);
    x->last_reply = mr_clock_now();
    mr_duration wait = x->wait_field ? wait_of(x) : 0;
    x->wait_until = wait ? x->last_reply + wait : 0;
    if (x->is_stream) b->next_look = MR_MIN(b->next_look, x->last_reply + OPENED_LOOK);
    x->is_shutdown = b->closing || (b->draining && is_endless(x));
    if (x->is_shutdown)
        end_away(x, STOPPING);
    else if (x->is_metrics)
        mr_scrape_start(b->backends, b->stats, x, scraped);
    else
        open_call(b, x);
}

static void send_chunk(struct mr_rpc_call *call, struct mr_exchange *x, struct mr_chunk *c)
{
    struct mr_rpc_part parts[] = {
        {.bytes = mr_str_of(c->prefix, c->prefix_n)},
        {.bytes = mr_str_of(c->bytes, c->n), .release = mr_chunk_free, .ctx = c},
    };
    (void)mr_rpc_call_send_parts(
        call, parts, MR_ARRAY_LEN(parts)); /* if sending fails, on_done is called afterwards */
    if (mr_rpc_call_is_writable(call))
        reply(x, MR_REPLY_TAKEN, NULL);
    else
        x->chunks_waiting++;
}

static void leave(struct mr_bridge *b, struct mr_exchange *x)
{
    x->is_left = true;
    struct mr_rpc_call *call = mr_rpc_call_find(b->loop, x->call);
    if (call) mr_rpc_call_cancel(call);
    if (x->reopen_at) mr_exchange_move(x, MR_EXCHANGE_OVER); /* in this case no call runs */
    free_if_done(x);
}

static void handle(struct mr_bridge *b, const struct post *p)
{
    struct mr_exchange *x = p->x;
    struct mr_rpc_call *call = x && x->call.v ? mr_rpc_call_find(b->loop, x->call) : NULL;
    switch (p->kind) {
    case MR_BRIDGE_STOP: b->stopping = true; return;
    case MR_BRIDGE_START: start(b, x); return;
    case MR_BRIDGE_LEAVE: leave(b, x); return;
    case MR_BRIDGE_CHUNK:
        if (call)
            send_chunk(call, x, p->chunk);
        else
            mr_chunk_free(p->chunk); /* the call has ended, so no call takes the chunk */
        return;
    case MR_BRIDGE_HALF_CLOSE:
        if (call) (void)mr_rpc_call_half_close(call);
        return;
    case MR_BRIDGE_CREDIT:
        mr_assert(x->unused > 0);
        x->unused--;
        if (call && x->is_stream) read_on(x, call);
        return;
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

static bool client_has_gone(const struct mr_exchange *x)
{
    if (x->fd < 0 || !mr_parker_is_parked(&x->parker))
        return false; /* the connection is unknown, or an HTTP thread uses it at present */
    struct pollfd p = {.fd = x->fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static mr_time reopen(struct mr_bridge *b, struct mr_exchange *x, mr_time now)
{
    if (now < x->reopen_at) return x->reopen_at;
    x->reopen_at = 0;
    if (now >= x->give_up_at) {
        end_away(x, "the service went away and has not come back");
        return MR_NEVER;
    }
    if (x->last_id.n) /* a parser of protobuf takes the last of several values */
        mr_protowire_add_bytes(&x->request, x->resume_field, mr_buf_str(&x->last_id));
    if (!x->resume_field) set_wait(x, x->wait_until - now);
    open_call(b, x);
    return MR_NEVER;
}

static mr_time look_at(struct mr_bridge *b, struct mr_exchange *x, mr_time now)
{
    if (x->is_left || x->state == MR_EXCHANGE_OVER) return MR_NEVER;
    if (x->is_stream && x->state == MR_EXCHANGE_SILENT) {
        if (now < x->last_reply + OPENED_AFTER) return now + OPENED_LOOK;
        mr_exchange_move(x, MR_EXCHANGE_OPENED);
        reply(x, MR_REPLY_OPENED, NULL);
    }
    if (x->reopen_at) return reopen(b, x, now);
    if (client_has_gone(x)) {
        struct mr_rpc_call *call = x->call.v ? mr_rpc_call_find(b->loop, x->call) : NULL;
        if (call) mr_rpc_call_cancel(call);
        return MR_NEVER;
    }
    if (x->wants_heartbeats && x->unused == 0 && now >= x->last_reply + HEARTBEAT) {
        x->unused++;
        reply(x, MR_REPLY_HEARTBEAT, NULL);
    }
    return MR_NEVER;
}

static void look(struct mr_bridge *b, mr_time now)
{
    mr_time next = now + LOOK_EVERY;
    MR_LIST_EACH(node, &b->live)
    {
        mr_time wants = look_at(b, MR_LIST_ITEM(node, struct mr_exchange, live), now);
        next = MR_MIN(next, wants);
    }
    mr_time next_deadline;
    (void)mr_fd_deadlines_reap(b->fd_deadlines, now, &next_deadline);
    b->next_look = next;
}

static void turn(struct mr_bridge *b, mr_time deadline)
{
    struct post batch[BATCH];
    size_t n = mr_inbox_wait(b->inbox, MR_MIN(deadline, b->next_look), batch, BATCH);
    for (size_t i = 0; i < n; i++)
        handle(b, &batch[i]);
    mr_time now = mr_clock_now();
    if (now >= b->next_look) look(b, now);
}

void mr_bridge_stop(struct mr_bridge *b)
{
    mr_bridge_post(b, MR_BRIDGE_STOP, NULL, NULL);
}

void mr_bridge_run(struct mr_bridge *b)
{
    while (!b->stopping)
        turn(b, MR_NEVER);
}

static void on_cut(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    (void)status, (void)reply; /* the error is ignored: an older service may lack the method */
    ((struct mr_bridge *)ctx)->cuts_out--;
}

/* Tells the services to answer waiting calls at once, with what they know. */
static void cut_waits(struct mr_bridge *b)
{
    mr_time now = mr_clock_now();
    if (now < b->next_cut || b->cuts_out) return;
    b->next_cut = now + CUT_EVERY;
    struct mr_buf request;
    mr_buf_init(&request, 64);
    mr_protowire_add_bytes(&request, 1, mr_str(b->waiter));
    const struct mr_rpc_call_options options = {.timeout = MR_SECOND, .one_reply = true};
    static const enum mr_proto_backend backends[] = {MR_BACKEND_SCHEDULER, MR_BACKEND_TRAINER};
    for (size_t i = 0; i < MR_ARRAY_LEN(backends); i++) {
        struct mr_rpc_channel *channel = mr_backends_pick(b->backends, backends[i]);
        if (!channel) continue;
        b->cuts_out++;
        (void)mr_rpc_unary(channel, mr_proto_method(MR_METHOD_WAITS_END)->path,
            mr_buf_str(&request), &options, on_cut, b);
    }
    mr_buf_fini(&request);
}

static bool all_over(const struct mr_bridge *b)
{
    MR_LIST_EACH(node, (struct mr_list *)mr_unconst(&b->live))
    if (MR_LIST_ITEM(node, struct mr_exchange, live)->state != MR_EXCHANGE_OVER) return false;
    return true;
}

void mr_bridge_drain(struct mr_bridge *b, mr_time deadline, const struct mr_gauge *unanswered)
{
    b->draining = true;
    MR_LIST_EACH(node, &b->live)
    {
        struct mr_exchange *x = MR_LIST_ITEM(node, struct mr_exchange, live);
        bool is_resumable = is_endless(x) || x->reopen_at;
        if (x->state != MR_EXCHANGE_OVER && is_resumable) break_off(b, x);
    }
    mr_time first = MR_MIN(deadline, mr_clock_now() + FIRST_REQUEST);
    while (mr_clock_now() < deadline) {
        bool waits = mr_gauge_get(unanswered) > 0 && mr_clock_now() < first;
        if (all_over(b) && !waits) break;
        cut_waits(b);
        turn(b, MR_MIN(deadline, mr_clock_now() + (waits ? 10 * MR_MS : CUT_EVERY)));
    }
    b->closing = true;
    MR_LIST_EACH(node, &b->live)
    {
        struct mr_exchange *x = MR_LIST_ITEM(node, struct mr_exchange, live);
        if (x->state != MR_EXCHANGE_OVER) break_off(b, x);
    }
    while (!all_over(b))
        turn(b, mr_clock_now() + 10 * MR_MS);
    mr_time last = mr_clock_now() + SHUTDOWN_TIME;
    while (!mr_list_is_empty(&b->live) && mr_clock_now() < last)
        turn(b, last);
}

void mr_bridge_free(struct mr_bridge **bridge)
{
    struct mr_bridge *b = *bridge;
    if (!b) return;
    while (!mr_list_is_empty(&b->live)) /* by now every LEAVE is in the inbox */
        turn(b, mr_clock_now());
    mr_backends_free(&b->backends);
    while (b->cuts_out)
        (void)mr_rpc_loop_run(b->loop, MR_NEVER);
    mr_inbox_free(&b->inbox);
    mr_rpc_loop_free(&b->loop);
    mr_release(b);
    *bridge = NULL;
}
