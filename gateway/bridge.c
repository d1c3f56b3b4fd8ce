/* Exchanges as gRPC calls. A call's context is its exchange, which lives until both the call is
 * over and the HTTP thread has left. */
#include "gateway/bridge.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "gateway/backends.h"
#include "gateway/scrape.h"
#include "host/clock.h"
#include "host/log.h"
#include "rpc/loop.h"
#include "rpc/status.h"
#include "rpc/wire.h"

#include <poll.h>

#define BATCH 64
#define HEARTBEAT (15 * MR_SECOND)
#define LOOK_EVERY (5 * MR_SECOND) /* for clients that have gone, and for impatience */
/* A silent stream is told to its client after a while; initial metadata alone would not do: it
 * comes before an error, too. */
#define OPENED_AFTER MR_SECOND
#define OPENED_LOOK (250 * MR_MS)
#define FAREWELL MR_SECOND
#define REOPEN_AFTER (500 * MR_MS)
#define REOPEN_PATIENCE (60 * MR_SECOND)

struct post {
    enum mr_bridge_post_kind kind;
    struct mr_exchange *x;
    struct mr_chunk *chunk;
};

struct mr_bridge {
    struct mr_rpc_loop *loop;
    struct mr_inbox *inbox;
    struct mr_backends *backends;
    struct mr_patience *patience;
    struct mr_stats *stats;
    struct mr_list live; /* exchanges that are not over or not left */
    mr_time next_look;
    bool stopping;
    bool draining;
};

struct mr_bridge *mr_bridge_new(const struct mr_bridge_options *o)
{
    struct mr_bridge *b = mr_alloc(sizeof *b);
    b->loop = mr_rpc_loop_new();
    b->inbox = mr_inbox_new(o->exchanges_max * 16 + 64, sizeof(struct post));
    mr_inbox_set_waiter(b->inbox, mr_rpc_loop_waiter(b->loop));
    b->backends =
        mr_backends_new(b->loop, o->scheduler, o->trainer, o->stores, o->stores_count, o->secret);
    b->patience = o->patience;
    b->stats = o->stats;
    mr_list_init(&b->live);
    return b;
}

void mr_bridge_post(struct mr_bridge *b, enum mr_bridge_post_kind kind, struct mr_exchange *x,
    struct mr_chunk *chunk)
{
    struct post p = {kind, x, chunk};
    mr_assert(!mr_inbox_push_wait(b->inbox, &p, MR_NEVER)); /* sized for all there can be */
}

/* ---- telling the HTTP thread -------------------------------------------------------------- */

static void reply(struct mr_exchange *x, enum mr_reply_kind kind, struct mr_rpc_message *m)
{
    struct mr_reply r = {kind, m};
    mr_assert(!mr_inbox_push(x->replies, &r)); /* window + chunks + a few fit */
    x->last_reply = mr_clock_now();
    if (mr_gate_open(&x->gate)) x->wake(x->wake_ctx);
}

static void free_if_done(struct mr_exchange *x)
{
    if (!x->is_over || !x->is_left) return;
    mr_list_remove(&x->live);
    mr_exchange_free(&x);
}

static void end(struct mr_exchange *x, const struct mr_rpc_status *status)
{
    mr_assert(!x->is_over);
    struct mr_error e;
    x->error = mr_rpc_status_error(status, &e);
    x->grpc_code = status->code;
    if (x->error) {
        mr_buf_add_str(&x->text, status->message);
        mr_buf_add_str(&x->details, status->details);
    }
    x->call.v = 0;
    x->reopen_at = 0;
    x->is_over = true;
    if (!x->is_left) reply(x, MR_REPLY_END, NULL);
    free_if_done(x);
}

static void end_away(struct mr_exchange *x, const char *why)
{
    struct mr_rpc_status status = {.code = mr_err_grpc(MR_EAWAY), .message = mr_str(why)};
    end(x, &status);
}

/* ---- the call -------------------------------------------------------------------------------- */

static void read_on(struct mr_exchange *x, struct mr_rpc_call *call)
{
    if (x->unused < MR_EXCHANGE_WINDOW) mr_rpc_call_read(call);
}

/* Remembers the id of the event, to go on after it. */
static void note_event(struct mr_exchange *x, struct mr_rpc_message *m)
{
    struct mr_wire_reader r = mr_wire_read(mr_rpc_message_str(m));
    struct mr_wire_field f;
    x->give_up_at = 0;
    while (!mr_wire_next(&r, &f)) {
        if (f.number != x->event_field || f.type != MR_WIRE_BYTES || !f.bytes.n) continue;
        mr_buf_clear(&x->last_id);
        mr_buf_add_str(&x->last_id, f.bytes);
    }
}

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_exchange *x = mr_rpc_call_context(call);
    if (x->is_left) return;
    if (x->resume_field) note_event(x, m);
    x->is_opened = true;
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

/* The service is away, perhaps to come back: the client's stream stays. */
static void reopen_later(struct mr_exchange *x)
{
    mr_time now = mr_clock_now();
    x->call.v = 0;
    x->reopen_at = now + REOPEN_AFTER;
    if (!x->give_up_at) x->give_up_at = now + REOPEN_PATIENCE;
    x->bridge->next_look = MR_MIN(x->bridge->next_look, x->reopen_at);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct mr_exchange *x = mr_rpc_call_context(call);
    (void)call;
    bool is_away = status->code == mr_err_grpc(MR_EAWAY);
    if (is_away) mr_backends_away(x->bridge->backends, x->backend);
    if (is_away && x->resume_field && x->is_opened && !x->is_left && !x->bridge->draining)
        reopen_later(x);
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

/* NULL, and the exchange has ended, when there is none. */
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
        {MR_RPC_USER, x->identity->name},
        {MR_RPC_ROLE, mr_str(mr_role_name(x->identity->role))},
    };
    struct mr_rpc_call_options options = {
        .timeout = x->timeout,
        .manual_read = x->is_stream,
        .one_reply = !x->is_stream,
        .metadata = who,
        .metadata_count = MR_ARRAY_LEN(who),
    };
    struct mr_rpc_call *call = mr_rpc_call_open(channel, x->method->path, &handler, x, &options);
    x->call = mr_rpc_call_id_of(call);
    (void)mr_rpc_call_send(call, mr_buf_str(&x->request));
    if (!x->resume_field) mr_buf_fini(&x->request);
    if (!x->more) (void)mr_rpc_call_half_close(call);
    if (x->is_stream) mr_rpc_call_read(call);
}

static void start(struct mr_bridge *b, struct mr_exchange *x)
{
    x->bridge = b;
    mr_list_add_tail(&b->live, &x->live);
    x->last_reply = mr_clock_now();
    if (x->is_stream) b->next_look = MR_MIN(b->next_look, x->last_reply + OPENED_LOOK);
    if (b->draining)
        end_away(x, "the gateway is stopping");
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
    (void)mr_rpc_call_send_parts(call, parts, MR_ARRAY_LEN(parts)); /* refused: on_done follows */
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
    if (x->reopen_at) x->is_over = true; /* between two calls */
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
            mr_chunk_free(p->chunk); /* its END is on the way */
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

/* ---- time -------------------------------------------------------------------------------------
 */

static bool client_has_gone(const struct mr_exchange *x)
{
    if (x->fd < 0 || !mr_gate_is_closed(&x->gate)) return false; /* it is the HTTP side's now */
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
    if (x->last_id.n) /* the last of several counts */
        mr_wire_add_bytes(&x->request, x->resume_field, mr_buf_str(&x->last_id));
    open_call(b, x);
    return MR_NEVER;
}

static mr_time look_at(struct mr_bridge *b, struct mr_exchange *x, mr_time now)
{
    if (x->is_left || x->is_over) return MR_NEVER;
    if (x->is_stream && !x->is_opened) {
        if (now < x->last_reply + OPENED_AFTER) return now + OPENED_LOOK;
        x->is_opened = true;
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
    mr_time impatient;
    (void)mr_patience_reap(b->patience, now, &impatient);
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

static bool all_over(const struct mr_bridge *b)
{
    MR_LIST_EACH(node, (struct mr_list *)(uintptr_t)&b->live)
    if (!MR_LIST_ITEM(node, struct mr_exchange, live)->is_over) return false;
    return true;
}

void mr_bridge_drain(struct mr_bridge *b, mr_time deadline)
{
    b->draining = true;
    MR_LIST_EACH(node, &b->live)
    {
        struct mr_exchange *x = MR_LIST_ITEM(node, struct mr_exchange, live);
        struct mr_rpc_call *call = mr_rpc_call_find(b->loop, x->call);
        if (x->is_stream && call) mr_rpc_call_cancel(call); /* a stream may last for ever */
        if (x->reopen_at) end_away(x, "the gateway is stopping");
    }
    while (!all_over(b) && mr_clock_now() < deadline)
        turn(b, deadline);
    MR_LIST_EACH(node, &b->live)
    {
        struct mr_exchange *x = MR_LIST_ITEM(node, struct mr_exchange, live);
        struct mr_rpc_call *call = mr_rpc_call_find(b->loop, x->call);
        if (call) mr_rpc_call_cancel(call);
    }
    while (!all_over(b))
        turn(b, mr_clock_now() + 10 * MR_MS);
    mr_time last = mr_clock_now() + FAREWELL; /* for the HTTP threads to say so */
    while (!mr_list_is_empty(&b->live) && mr_clock_now() < last)
        turn(b, last);
}

void mr_bridge_free(struct mr_bridge **bridge)
{
    struct mr_bridge *b = *bridge;
    if (!b) return;
    while (!mr_list_is_empty(&b->live)) /* every LEAVE is in the inbox by now */
        turn(b, mr_clock_now());
    mr_backends_free(&b->backends);
    mr_inbox_free(&b->inbox);
    mr_rpc_loop_free(&b->loop);
    mr_release(b);
    *bridge = NULL;
}
