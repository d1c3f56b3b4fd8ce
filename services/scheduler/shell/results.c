/* Small values are in the core; the method Results sends many of them in one message. Large values
 * are in object stores: Results sends their addresses, and the method Result relays the bytes from
 * the store, no faster than the client reads them. */
#include "services/scheduler/shell/results.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "rpc/client.h"
#include "rpc/status.h"
#include "services/scheduler/base/job_lookup.h"
#include "store/object/format/format.h"
#include "store/object/format/json.h"

#include <millrace/v1/objects.pb-c.h>

#define ROWS_MAX 4096
#define ROWS_BYTES_MAX ((size_t)1 << 20)
/* limit of the texts in one message: keys, errors, JSON */
#define TEXTS_BYTES_MAX ((size_t)4 << 20)
/* extra time that a call waits for a value that exists on a worker */
#define GRACE (10 * MR_SECOND)

static bool bit_take(struct mr_watcher *w, uint32_t node)
{
    uint64_t mask = (uint64_t)1 << (node % 64);
    if (!(w->wanted[node / 64] & mask)) return false;
    w->wanted[node / 64] &= ~mask;
    w->wanted_left--;
    return true;
}

static void bit_put(struct mr_watcher *w, uint32_t node)
{
    uint64_t mask = (uint64_t)1 << (node % 64);
    if (w->wanted[node / 64] & mask) return;
    w->wanted[node / 64] |= mask;
    w->wanted_left++;
}

static void queue_put(struct mr_watcher *w, uint32_t node)
{
    mr_buf_add(&w->queue, &node, sizeof node);
}

static bool is_dead(const struct mr_watcher *w, uint32_t node, const struct mr_sched_job_info *info)
{
    struct mr_sched_task_info task = {0};
    bool known = mr_sched_task(w->sh->core, info->id, node, &task);
    return known && (task.state == MR_TASK_ERRED || task.state == MR_TASK_CANCELLED);
}

/* True: the job failed or was cancelled, so a node without a value will never have one. */
static bool has_ended_early(const struct mr_sched_job_info *info)
{
    return info->state == MR_JOB_FAILED || info->state == MR_JOB_CANCELLED;
}

/* True: the node's value exists, but only a worker has it, or the journal does not have it yet. The
 * value becomes readable even if the job has failed. */
static bool is_coming(
    const struct mr_watcher *w, uint32_t node, const struct mr_sched_job_info *info)
{
    struct mr_sched_value value = {0};
    (void)mr_sched_value(w->sh->core, info->id, node, NULL, &value);
    return value.kind == MR_SCHED_VALUE_AWAY || value.kind == MR_SCHED_VALUE_UNACKED;
}

/* Queues a node that has a value or never will have one. Asks the core for a value that only a
 * worker has, or that was lost after the job was done. */
static void consider(struct mr_watcher *w, uint32_t node, const struct mr_sched_job_info *info)
{
    struct mr_sched_value value = {0};
    (void)mr_sched_value(w->sh->core, info->id, node, NULL, &value);
    switch (value.kind) {
    case MR_SCHED_VALUE_INLINE:
    case MR_SCHED_VALUE_OBJECT:
        if (bit_take(w, node)) queue_put(w, node);
        return;
    case MR_SCHED_VALUE_AWAY:
    case MR_SCHED_VALUE_UNACKED: break;
    case MR_SCHED_VALUE_NONE:
        if (!is_dead(w, node, info)) break;
        if (bit_take(w, node)) queue_put(w, node);
        return;
    }
    if (value.kind == MR_SCHED_VALUE_AWAY ||
        (value.kind == MR_SCHED_VALUE_NONE && info->state == MR_JOB_DONE)) {
        struct mr_sched_event want = {.type = MR_SCHED_WANT, .job = info->id, .index = node};
        mr_shell_step(w->sh, &want);
        mr_time until = mr_clock_now() + GRACE;
        if (w->deadline != MR_NEVER && w->deadline < until) w->deadline = until;
    }
}

void mr_results_init(
    struct mr_watcher *w, const struct mr_watcher_spec *spec, const struct mr_sched_job_info *info)
{
    const struct mr_graph *g = info->graph;
    const uint32_t *nodes = spec->nodes ? spec->nodes : g->targets;
    uint32_t count = spec->nodes ? spec->nodes_count : g->targets_count;
    w->wanted = mr_alloc_array(g->nodes_count / 64 + 1, sizeof *w->wanted);
    w->accept = mr_alloc(spec->accept.n + 1);
    if (spec->accept.n) memcpy(w->accept, spec->accept.p, spec->accept.n);
    mr_buf_init(&w->queue, (size_t)g->nodes_count * sizeof(uint32_t) * 4 + 64);
    w->one = spec->kind == MR_WATCH_RESULT ? nodes[0] : MR_NODE_NONE;
    for (uint32_t i = 0; i < count; i++)
        bit_put(w, nodes[i]);
    for (uint32_t i = 0; i < count; i++)
        consider(w, nodes[i], info);
}

void mr_results_ready(struct mr_watcher *w, const uint32_t *nodes, uint32_t count)
{
    struct mr_sched_job_info info;
    if (!mr_sched_job(w->sh->core, w->spec.job, &info)) return;
    for (uint32_t i = 0; i < count; i++)
        if (w->wanted[nodes[i] / 64] >> (nodes[i] % 64) & 1) consider(w, nodes[i], &info);
}

/* ---- many ------------------------------------------------------------------------------------ */

static void add_error(
    struct mr_shell *sh, Millrace__V1__ResultItem *m, uint32_t row, int code, const char *text)
{
    Millrace__V1__ResultError *x = mr_shell_take(sh, sizeof *x);
    millrace__v1__result_error__init(x);
    x->row = row;
    x->code = code;
    x->message = mr_shell_text(sh, mr_str(text));
    m->errors[m->n_errors++] = x;
}

static void add_task_error(struct mr_shell *sh, Millrace__V1__ResultItem *m, uint32_t row,
    const struct mr_sched_job_info *info, uint32_t node)
{
    int code = 0;
    char *text = mr_task_complaint(sh, info, node, &code);
    add_error(sh, m, row, code, text);
}

static void add_place(struct mr_shell *sh, Millrace__V1__ResultItem *m, uint32_t row,
    const struct mr_sched_value *value)
{
    Millrace__V1__ValuePlace *p = mr_shell_take(sh, sizeof *p);
    uint64_t incarnation = 0;
    struct mr_str node;
    struct mr_str address;
    bool alive = false;
    char id[MR_OBJECT_ID_TEXT_MAX];
    millrace__v1__value_place__init(p);
    mr_object_id_format(value->object, id);
    p->row = row;
    p->object = mr_shell_text(sh, mr_str(id));
    p->nbytes = value->bytes;
    if (value->store &&
        mr_sched_store(sh->core, value->store, &incarnation, &node, &address, &alive))
        p->store = mr_shell_text(sh, address);
    m->places[m->n_places++] = p;
}

static char *json_of(struct mr_shell *sh, struct mr_str pack)
{
    struct mr_buf out;
    mr_buf_init(&out, MR_MESSAGE_BYTES_MAX / 2);
    if (mr_json_from_pack(pack, &out, NULL)) mr_buf_clear(&out);
    char *text = mr_shell_text(sh, mr_buf_str(&out));
    mr_buf_fini(&out);
    return text;
}

static Millrace__V1__ResultItem *item_new(struct mr_shell *sh, size_t rows, bool json)
{
    Millrace__V1__ResultItem *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__result_item__init(m);
    m->keys = mr_shell_take(sh, rows * sizeof *m->keys);
    m->pack_bytes = mr_shell_take(sh, rows * sizeof *m->pack_bytes);
    if (json) m->json = mr_shell_take(sh, rows * sizeof *m->json);
    m->places = mr_shell_take(sh, rows * sizeof *m->places);
    m->errors = mr_shell_take(sh, rows * sizeof *m->errors);
    return m;
}

/* Adds a row for the node to the message. Appends the bytes of a small value to `packs`. */
static void add_row(struct mr_watcher *w, Millrace__V1__ResultItem *m, struct mr_buf *packs,
    const struct mr_sched_job_info *info, uint32_t node)
{
    struct mr_sched_value value = {0};
    struct mr_shell *sh = w->sh;
    size_t before = packs->n;
    uint32_t row = (uint32_t)m->n_keys;
    bool found = mr_sched_value(sh->core, info->id, node, packs, &value);
    m->keys[m->n_keys++] = mr_shell_text(sh, mr_graph_key(info->graph, node));
    m->pack_bytes[m->n_pack_bytes++] = (uint32_t)(packs->n - before);
    if (w->spec.json) {
        struct mr_str pack = mr_str_of(packs->p + before, packs->n - before);
        m->json[m->n_json++] = pack.n ? json_of(sh, pack) : mr_shell_text(sh, MR_STR(""));
    }
    if (found && value.kind == MR_SCHED_VALUE_OBJECT)
        add_place(sh, m, row, &value);
    else if (!found || value.kind != MR_SCHED_VALUE_INLINE)
        add_task_error(sh, m, row, info, node);
}

static void pump(
    struct mr_watcher *w, struct mr_rpc_call *call, const struct mr_sched_job_info *info)
{
    while (w->queue_at < w->queue.n && mr_rpc_call_is_writable(call)) {
        size_t left = (w->queue.n - w->queue_at) / sizeof(uint32_t);
        size_t rows = MR_MIN(left, (size_t)ROWS_MAX);
        struct mr_buf packs;
        mr_pb_arena_clear(&w->sh->scratch);
        mr_buf_init(&packs, MR_MESSAGE_BYTES_MAX / 2);
        Millrace__V1__ResultItem *m = item_new(w->sh, rows, w->spec.json);
        for (size_t i = 0;
             i < rows && packs.n < ROWS_BYTES_MAX && w->sh->scratch.bytes < TEXTS_BYTES_MAX; i++) {
            uint32_t node = 0;
            memcpy(&node, w->queue.p + w->queue_at, sizeof node);
            w->queue_at += sizeof node;
            add_row(w, m, &packs, info, node);
        }
        m->packs.data = packs.p;
        m->packs.len = packs.n;
        (void)mr_rpc_call_send_pb(call, &m->base);
        mr_buf_fini(&packs);
    }
    if (w->queue_at == w->queue.n) {
        mr_buf_clear(&w->queue);
        w->queue_at = 0;
    }
}

/* Sends one message with rows for nodes that have no value. A row says why: the wait is over, or
 * the job has ended. Looks at nodes from `*at` on, and sets `*at` to the next node to look at. */
static void give_up_some(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, uint32_t *at)
{
    bool has_failed = has_ended_early(info);
    mr_pb_arena_clear(&w->sh->scratch);
    Millrace__V1__ResultItem *m =
        item_new(w->sh, MR_MIN(w->wanted_left, (uint32_t)ROWS_MAX), false);
    for (; *at < info->graph->nodes_count && w->wanted_left && m->n_keys < ROWS_MAX &&
           w->sh->scratch.bytes < TEXTS_BYTES_MAX;
         (*at)++) {
        uint32_t i = *at;
        if (!(w->wanted[i / 64] >> (i % 64) & 1)) continue;
        bool comes = !has_failed || is_coming(w, i, info);
        if (comes && !w->is_late) continue;
        (void)bit_take(w, i);
        uint32_t row = (uint32_t)m->n_keys;
        m->keys[m->n_keys++] = mr_shell_text(w->sh, mr_graph_key(info->graph, i));
        m->pack_bytes[m->n_pack_bytes++] = 0;
        if (comes)
            add_error(w->sh, m, row, mr_err_grpc(MR_ESTATE), "it has no value yet");
        else
            add_task_error(w->sh, m, row, info, i);
    }
    if (m->n_keys) (void)mr_rpc_call_send_pb(call, &m->base);
}

static void give_up(
    struct mr_watcher *w, struct mr_rpc_call *call, const struct mr_sched_job_info *info)
{
    uint32_t at = 0;
    while (w->wanted_left && at < info->graph->nodes_count && mr_rpc_call_is_writable(call))
        give_up_some(w, call, info, &at);
}

static bool look_many(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, bool timed_out)
{
    pump(w, call, info);
    w->is_late = w->is_late || timed_out;
    if (w->wanted_left && (w->is_late || has_ended_early(info)) && w->queue_at == w->queue.n)
        give_up(w, call, info);
    if (w->wanted_left || w->queue_at < w->queue.n) return false;
    (void)mr_rpc_call_finish_ok(call);
    return true;
}

/* ---- one ------------------------------------------------------------------------------------- */

struct mr_relay {
    struct mr_shell *sh;
    struct mr_watcher *w; /* the watcher of the call `to`; NULL: that call has ended */
    mr_rpc_call_id to;
    struct mr_rpc_call *from;
    struct mr_rpc_channel *channel;
};

static void relay_message(struct mr_rpc_call *from, struct mr_rpc_message *m)
{
    struct mr_relay *r = mr_rpc_call_context(from);
    struct mr_rpc_call *to = mr_rpc_call_find(r->sh->loop, r->to);
    /* the store's message is passed on as it is, since both calls use HttpBody */
    if (!to || mr_rpc_call_send(to, mr_rpc_message_str(m))) {
        mr_rpc_call_cancel(from);
        return;
    }
    if (mr_rpc_call_is_writable(to)) mr_rpc_call_read(from);
}

static void relay_done(struct mr_rpc_call *from, const struct mr_rpc_status *status)
{
    struct mr_relay *r = mr_rpc_call_context(from);
    struct mr_rpc_call *to = mr_rpc_call_find(r->sh->loop, r->to);
    if (to) (void)mr_rpc_call_finish(to, status);
    if (r->w) r->w->relay = NULL;
    mr_rpc_channel_close(&r->channel);
    mr_release(r);
}

static void relay_open(struct mr_rpc_call *from)
{
    mr_rpc_call_read(from);
}

static const struct mr_rpc_handler relay_handler = {
    .on_open = relay_open, .on_message = relay_message, .on_done = relay_done};

static bool send_object(
    struct mr_watcher *w, struct mr_rpc_call *call, const struct mr_sched_value *value)
{
    struct mr_shell *sh = w->sh;
    uint64_t incarnation = 0;
    struct mr_str node;
    struct mr_str address;
    bool alive = false;
    uint32_t number = value->store;
    bool known = number && mr_sched_store(sh->core, number, &incarnation, &node, &address, &alive);
    known = known && address.n; /* a worker may name a store before the store registers */
    for (uint32_t i = 1; !known && i <= mr_sched_stores_count(sh->core); i++)
        /* any live store will do: it looks up the object's place in the directory in Redis */
        known = mr_sched_store(sh->core, i, &incarnation, &node, &address, &alive) && alive;
    if (!known) {
        mr_shell_fail(call, MR_EAWAY, "the object store that has the value is away");
        return true;
    }
    char id[MR_OBJECT_ID_TEXT_MAX];
    struct mr_relay *r = mr_alloc(sizeof *r);
    struct mr_buf bytes;
    Millrace__V1__GetObjectRequest m = MILLRACE__V1__GET_OBJECT_REQUEST__INIT;
    const struct mr_rpc_channel_options channel = {
        .credential = mr_rpc_auth_credential(sh->auth, MR_SERVICE_OBJECTSTORE)};
    const struct mr_rpc_call_options options = {.manual_read = true, .timeout = 600 * MR_SECOND};
    mr_pb_arena_clear(&sh->scratch);
    mr_object_id_format(value->object, id);
    m.id = id;
    m.accept = w->accept;
    m.wait_s = 10;
    *r = (struct mr_relay){.sh = sh,
        .w = w,
        .to = w->call,
        .channel = mr_rpc_channel_open(sh->loop, mr_shell_text(sh, address), &channel)};
    r->from = mr_rpc_call_open(r->channel, "/millrace.v1.Objects/Get", &relay_handler, r, &options);
    mr_buf_init(&bytes, MR_MESSAGE_BYTES_MAX);
    mr_pb_pack(&m.base, &bytes);
    (void)mr_rpc_call_send(r->from, mr_buf_str(&bytes));
    (void)mr_rpc_call_half_close(r->from);
    mr_buf_fini(&bytes);
    w->relay = r;
    w->deadline = MR_NEVER;
    return false; /* the relay answers the call */
}

static int body_of(struct mr_str pack, const char *accept, struct mr_buf *out, const char **mime,
    struct mr_error *e)
{
    void *memory = NULL;
    const struct mr_value_alloc alloc = {mr_value_heap_alloc, &memory};
    struct mr_value value;
    enum mr_format format = MR_FORMAT_JSON;
    int err = mr_value_from_pack(pack, &alloc, &value, e);
    if (!err) err = mr_format_accept(mr_str(accept), &value, &format, e);
    if (!err) err = mr_format_export(&value, format, NULL, mr_sink_to_buf(out), e);
    mr_release(memory);
    *mime = mr_format_mime(format);
    return err;
}

static void send_inline(struct mr_watcher *w, struct mr_rpc_call *call, struct mr_str pack)
{
    struct mr_error e = {0};
    struct mr_buf out;
    const char *mime = NULL;
    mr_buf_init(&out, MR_MESSAGE_BYTES_MAX / 2);
    if (body_of(pack, w->accept, &out, &mime, &e)) {
        (void)mr_rpc_call_fail(call, &e);
    } else {
        Google__Api__HttpBody m = GOOGLE__API__HTTP_BODY__INIT;
        m.content_type = mr_unconst(mime);
        m.data.data = out.p;
        m.data.len = out.n;
        (void)mr_rpc_call_reply_pb(call, &m.base);
    }
    mr_buf_fini(&out);
}

bool mr_results_bytes(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, uint32_t node, struct mr_str pack)
{
    if (!bit_take(w, node)) return false;
    if (w->spec.kind == MR_WATCH_RESULT) {
        send_inline(w, call, pack);
        return true;
    }
    mr_pb_arena_clear(&w->sh->scratch);
    Millrace__V1__ResultItem *m = item_new(w->sh, 1, w->spec.json);
    m->keys[m->n_keys++] = mr_shell_text(w->sh, mr_graph_key(info->graph, node));
    m->pack_bytes[m->n_pack_bytes++] = (uint32_t)pack.n;
    if (w->spec.json) m->json[m->n_json++] = json_of(w->sh, pack);
    m->packs.data = mr_unconst(pack.p);
    m->packs.len = pack.n;
    (void)mr_rpc_call_send_pb(call, &m->base);
    return mr_results_look(w, call, info, false);
}

bool mr_results_failed(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, uint32_t node, int code, struct mr_str why)
{
    if (!bit_take(w, node)) return false;
    if (w->spec.kind == MR_WATCH_RESULT) {
        mr_shell_fail(call, code, "%.*s", MR_STR_ARG(why));
        return true;
    }
    mr_pb_arena_clear(&w->sh->scratch);
    Millrace__V1__ResultItem *m = item_new(w->sh, 1, w->spec.json);
    m->keys[m->n_keys++] = mr_shell_text(w->sh, mr_graph_key(info->graph, node));
    m->pack_bytes[m->n_pack_bytes++] = 0;
    if (w->spec.json) m->json[m->n_json++] = mr_shell_text(w->sh, MR_STR(""));
    add_error(w->sh, m, 0, mr_err_grpc(code), mr_shell_text(w->sh, why));
    (void)mr_rpc_call_send_pb(call, &m->base);
    return mr_results_look(w, call, info, false);
}

/* Sends the value of the wanted node. False: the node has no value that can be sent now.
 * `*is_answered`: true: the call has its last answer; false: a relay will answer the call. */
static bool send_one(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, bool *is_answered)
{
    struct mr_sched_value value = {0};
    struct mr_buf bytes;
    /* The buffer's limit is larger than the largest literal of a graph (MR_LITERAL_BYTES_MAX). */
    mr_buf_init(&bytes, MR_MESSAGE_BYTES_MAX / 2);
    (void)mr_sched_value(w->sh->core, info->id, w->one, &bytes, &value);
    bool is_there = value.kind == MR_SCHED_VALUE_INLINE || value.kind == MR_SCHED_VALUE_OBJECT;
    *is_answered = true;
    if (value.kind == MR_SCHED_VALUE_INLINE) send_inline(w, call, mr_buf_str(&bytes));
    if (value.kind == MR_SCHED_VALUE_OBJECT) *is_answered = send_object(w, call, &value);
    mr_buf_fini(&bytes);
    return is_there;
}

static bool look_one(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, bool timed_out)
{
    bool is_answered = false;
    if (w->relay) return false;
    if (w->queue.n && send_one(w, call, info, &is_answered)) return is_answered;
    bool never = (w->queue.n || has_ended_early(info)) && !is_coming(w, w->one, info);
    if (!timed_out && !never) return false;
    int code = 0;
    mr_pb_arena_clear(&w->sh->scratch);
    mr_shell_fail(call, MR_ESTATE, "there is no value%s%s", never ? ": " : " yet",
        never ? mr_task_complaint(w->sh, info, w->one, &code) : "");
    return true;
}

bool mr_results_look(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, bool timed_out)
{
    if (w->spec.kind == MR_WATCH_RESULT) {
        if (w->relay && mr_rpc_call_is_writable(call)) mr_rpc_call_read(w->relay->from);
        return look_one(w, call, info, timed_out);
    }
    return look_many(w, call, info, timed_out);
}

void mr_results_fini(struct mr_watcher *w)
{
    if (w->relay) {
        w->relay->w = NULL;
        if (w->relay->from) mr_rpc_call_cancel(w->relay->from);
    }
    mr_buf_fini(&w->queue);
    mr_release(w->wanted);
    mr_release(w->accept);
}
