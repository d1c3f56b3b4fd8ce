/* The service Queues: checks requests and owns each request until its end.
 * store/meta/stream/queue.h has the commands of Redis. */
#include "services/trainer/queue/service.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/page.h"
#include "base/id.h"
#include "host/clock.h"
#include "services/trainer/queue/internal.h"
#include "services/trainer/shell/json.h"

#include <inttypes.h>
#include <millrace/v1/queues.pb-c.h>
#include <stdio.h>
#include <sys/random.h>

#define ITEMS_MAX 1000000u
#define TAKE_MAX 1000u
#define DELIVERIES_MAX 1000u
#define RECEIPTS_MAX 1000u
#define ITEM_ID_BYTES_MAX 128
#define REASON_BYTES_MAX 1024
#define WAIT_MAX_S 3600.0
#define LEASE_INIT_S 30.0
#define LEASE_MIN_S 0.1
#define WAITING_BYTES_MAX ((size_t)64 << 20)

/* ---- the life of a request --------------------------------------------------------------------*/

struct mr_rpc_call *mr_queue_op_call(const struct mr_queue_op *op)
{
    return mr_rpc_call_find(op->queues->trainer->loop, op->call);
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; texts && i < count; i++)
        mr_release(texts[i]);
    mr_release(texts);
}

void mr_queue_op_end(struct mr_queue_op **opp)
{
    struct mr_queue_op *op = MR_STEAL(*opp);
    mr_queue_object_drop(op);
    mr_queue_line_put(op);
    free_texts(op->lost, op->answer ? op->answer->count : 0);
    free_texts(op->receipts, op->receipts_count);
    mr_queue_answer_free(&op->answer);
    mr_release(op->queue);
    mr_release(op->item_id);
    mr_release(op->value);
    mr_release(op->reason);
    mr_release(op);
}

/* True: the request is a put or a take. Such a request may wait in a line (internal.h) until its
 * queue has room or an item. */
static bool is_waiting_kind(const struct mr_queue_op *op)
{
    return op->kind == MR_QUEUE_PUT || op->kind == MR_QUEUE_TAKE;
}

/* Returns the taken items to the queue, because the caller has gone. */
static void give_back(const struct mr_queue_op *op)
{
    const struct mr_queue_answer *a = op->answer;
    for (size_t i = 0; i < a->count; i++) {
        char receipt[256];
        int n = snprintf(receipt, sizeof receipt, "%.*s-%.*s", MR_STR_ARG(a->items[i].lease),
            MR_STR_ARG(a->items[i].id));
        struct mr_str text = mr_str_of(receipt, (size_t)MR_MIN(n, (int)sizeof receipt - 1));
        (void)mr_queue_nack(op->queues->trainer->redis, mr_str(op->queue), &text, 1, false,
            MR_STR(""), mr_queue_ignore, NULL);
    }
}

static void finish(struct mr_queue_op *op)
{
    struct mr_queues *q = op->queues;
    int err = op->answer->err;
    bool is_served = !err || err == MR_EEXIST;
    if (is_waiting_kind(op)) mr_queue_line_left(op, is_served);
    if (op->kind == MR_QUEUE_PUT && mr_queue_object_put(op, err))
        /* The request ends when the object has its name. Until then the client holds the object. */
        return;
    if (op->kind == MR_QUEUE_TAKE && !mr_queue_op_call(op))
        give_back(op);
    else if (op->kind == MR_QUEUE_TAKE && !err && mr_queue_object_check(op))
        return; /* the request ends when the store has answered */
    else
        mr_queue_reply(op);
    if (op->kind >= MR_QUEUE_ACK || op->kind == MR_QUEUE_TAKE) mr_queue_object_release(q);
    mr_queue_op_end(&op);
}

static void run_answer(void *p)
{
    struct mr_queue_op *op = p;
    int err = op->answer->err;
    if (!mr_waiting_is_answered(&op->waiting, err)) {
        mr_queue_answer_free(&op->answer);
        return;
    }
    bool is_given_up = op->waiting.is_given_up;
    if (err != MR_EAWAY) op->is_in_doubt = false;
    mr_waiting_leave(&op->waiting);
    bool is_full = op->kind == MR_QUEUE_PUT && err == MR_ELIMIT;
    bool is_empty = op->kind == MR_QUEUE_TAKE && !err && !op->answer->count && !op->answer->is_over;
    if (is_given_up) {
        if (op->kind == MR_QUEUE_TAKE && !err) give_back(op);
        if (op->kind == MR_QUEUE_PUT && err != MR_EAWAY && mr_queue_object_put(op, err)) return;
        mr_queue_op_end(&op);
    } else if ((is_full || is_empty) && op->until > mr_clock_now() && mr_queue_op_call(op)) {
        uint64_t next_ms = op->answer->next_ms;
        mr_queue_answer_free(&op->answer);
        mr_queue_line_enter(op, next_ms);
    } else {
        finish(op);
    }
}

static void on_answer(void *ctx, struct mr_queue_answer **answer)
{
    struct mr_queue_op *op = ctx;
    op->answer = MR_STEAL(*answer);
    mr_trainer_post(op->queues->trainer, run_answer, op);
}

static int send_settle(struct mr_queue_op *op)
{
    struct mr_redis *redis = op->queues->trainer->redis;
    struct mr_str receipts[RECEIPTS_MAX];
    for (size_t i = 0; i < op->receipts_count; i++)
        receipts[i] = mr_str(op->receipts[i]);
    if (op->kind == MR_QUEUE_ACK)
        return mr_queue_ack(redis, mr_str(op->queue), receipts, op->receipts_count, on_answer, op);
    return mr_queue_nack(redis, mr_str(op->queue), receipts, op->receipts_count, op->is_dead,
        mr_str(op->reason), on_answer, op);
}

static int send_put(struct mr_queue_op *op)
{
    int err = mr_queue_put(op->queues->trainer->redis, mr_str(op->queue), mr_str(op->item_id),
        mr_str(op->value), op->is_object, on_answer, op);
    if (!err) op->is_in_doubt = true;
    return err;
}

static int send_op(struct mr_waiting *w)
{
    struct mr_queue_op *op = (struct mr_queue_op *)w;
    struct mr_redis *redis = op->queues->trainer->redis;
    struct mr_str queue = mr_str(op->queue);
    if (op->line) op->news = op->line->news;
    switch (op->kind) {
    case MR_QUEUE_PUT: return send_put(op);
    case MR_QUEUE_TAKE:
        return mr_queue_take(redis, queue, op->items_max, op->lease_ms, on_answer, op);
    case MR_QUEUE_CREATE:
        return mr_queue_create(redis, queue, op->items_max, op->deliveries_max, on_answer, op);
    case MR_QUEUE_ACK:
    case MR_QUEUE_NACK: return send_settle(op);
    case MR_QUEUE_GET: return mr_queue_get(redis, queue, on_answer, op);
    case MR_QUEUE_LIST: return mr_queue_list(redis, queue, op->items_max, on_answer, op);
    case MR_QUEUE_CLOSE: return mr_queue_close(redis, queue, on_answer, op);
    case MR_QUEUE_DELETE: return mr_queue_delete(redis, queue, on_answer, op);
    }
    return MR_EINTERNAL;
}

static void give_up_op(struct mr_waiting *w)
{
    mr_queue_fail((struct mr_queue_op *)w, MR_EAWAY);
}

static void free_op(struct mr_waiting *w)
{
    struct mr_queue_op *op = (struct mr_queue_op *)w;
    mr_queue_op_end(&op);
}

static const struct mr_waiting_ops op_ops = {send_op, give_up_op, free_op};

void mr_queue_op_begin(struct mr_queue_op *op)
{
    struct mr_rpc_call *call = mr_queue_op_call(op);
    bool is_probe = op->line && op == op->line->probe[op->kind == MR_QUEUE_TAKE];
    if (op->line && !is_probe && mr_queue_line_is_waiting(op)) {
        op->news = op->line->news;
        mr_queue_line_enter(op, 0);
        return;
    }
    op->waiting.deadline = call ? mr_waiting_deadline(call) : mr_clock_now() + MR_SECOND;
    if (mr_waiting_begin(&op->queues->waiting, &op->waiting) == MR_OK) return;
    mr_queue_fail(op, MR_EAGAIN);
    mr_queue_op_end(&op);
}

static struct mr_queue_op *op_new(
    struct mr_rpc_call *call, enum mr_queue_op_kind kind, const char *queue)
{
    struct mr_queue_op *op = mr_alloc(sizeof *op);
    op->queues = mr_rpc_call_context(call);
    op->kind = kind;
    op->call = mr_rpc_call_id_of(call);
    op->queue = mr_copy_text(queue);
    op->waiting.ops = &op_ops;
    op->waiting.bytes = sizeof *op;
    mr_list_init(&op->place);
    return op;
}

/* ---- requests ---------------------------------------------------------------------------------*/

static int check_seconds(const char *field, double v, double min, double max, struct mr_error *e)
{
    if (v >= min && v <= max) return MR_OK;
    return mr_fail(e, MR_EINVAL, "%s: %g; %g to %g are possible", field, v, min, max);
}

static int check_count(const char *field, uint64_t v, uint64_t max, struct mr_error *e)
{
    if (v <= max) return MR_OK;
    return mr_fail(e, MR_EINVAL, "%s: %" PRIu64 "; 0 to %" PRIu64 " are possible", field, v, max);
}

static int check_queue(const char *queue, struct mr_error *e)
{
    return mr_trainer_check_name("queue", queue, MR_QUEUE_NAME_BYTES_MAX, e);
}

static mr_time until_of(double wait_s)
{
    return mr_time_after(mr_clock_now(), (mr_duration)(wait_s * (double)MR_SECOND));
}

static int check_put(const Millrace__V1__PutItemRequest *r, struct mr_error *e)
{
    mr_object_id id;
    int err = check_queue(r->queue, e);
    if (!err && r->item_id[0])
        err = mr_trainer_check_name("item_id", r->item_id, ITEM_ID_BYTES_MAX, e);
    if (!err) err = check_seconds("wait_s", r->wait_s, 0, WAIT_MAX_S, e);
    if (!err && !r->object[0] == !r->value_json[0])
        err = mr_fail(e, MR_EINVAL, "either value_json or object is wanted, and not both");
    if (!err && r->object[0] && mr_object_id_parse(mr_str(r->object), &id))
        err = mr_fail(
            e, MR_EINVAL, "object: \"%s\" is no object id: 32 hexadecimal digits", r->object);
    if (!err && r->value_json[0]) err = mr_trainer_check_json("value_json", r->value_json, e);
    return err;
}

static struct mr_queues *queues_of(const struct mr_rpc_call *call)
{
    return mr_rpc_call_context(call);
}

#define REQUEST(call, m, type) mr_trainer_request(queues_of(call)->trainer, call, m, &(type))

static void on_put(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_error e;
    const Millrace__V1__PutItemRequest *r =
        REQUEST(call, m, millrace__v1__put_item_request__descriptor);
    if (!r) return;
    if (check_put(r, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    struct mr_queue_op *op = op_new(call, MR_QUEUE_PUT, r->queue);
    struct mr_queues *q = op->queues;
    op->is_object = r->object[0] != 0;
    op->value = mr_copy_text(op->is_object ? r->object : r->value_json);
    op->waiting.bytes += strlen(op->value);
    op->is_id_ours = !r->item_id[0];
    op->item_id = op->is_id_ours ? mr_format("%016" PRIx64 ".%" PRIu64, q->process, ++q->items)
                                 : mr_copy_text(r->item_id);
    op->until = until_of(r->wait_s);
    mr_queue_line_find(op);
    if (op->is_object)
        mr_queue_object_hold(op);
    else
        mr_queue_op_begin(op);
}

static void on_take(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_error e;
    const Millrace__V1__TakeItemsRequest *r =
        REQUEST(call, m, millrace__v1__take_items_request__descriptor);
    if (!r) return;
    int err = check_queue(r->queue, &e);
    if (!err) err = check_count("items_max", r->items_max, TAKE_MAX, &e);
    if (!err) err = check_seconds("wait_s", r->wait_s, 0, WAIT_MAX_S, &e);
    double lease_s = r->lease_s == 0 ? LEASE_INIT_S : r->lease_s;
    if (!err) err = check_seconds("lease_s", lease_s, LEASE_MIN_S, WAIT_MAX_S, &e);
    if (err) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    struct mr_queue_op *op = op_new(call, MR_QUEUE_TAKE, r->queue);
    op->items_max = r->items_max ? r->items_max : 1;
    op->lease_ms = (uint64_t)(lease_s * 1000);
    op->until = until_of(r->wait_s);
    mr_queue_line_find(op);
    mr_queue_op_begin(op);
}

static void on_create(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_error e;
    const Millrace__V1__CreateQueueRequest *r =
        REQUEST(call, m, millrace__v1__create_queue_request__descriptor);
    if (!r) return;
    int err = check_queue(r->queue, &e);
    if (!err) err = check_count("items_max", r->items_max, ITEMS_MAX, &e);
    if (!err) err = check_count("deliveries_max", r->deliveries_max, DELIVERIES_MAX, &e);
    if (err) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    struct mr_queue_op *op = op_new(call, MR_QUEUE_CREATE, r->queue);
    op->items_max = r->items_max;
    op->deliveries_max = r->deliveries_max;
    mr_queue_op_begin(op);
}

static void settle(struct mr_rpc_call *call, enum mr_queue_op_kind kind, const char *queue,
    char **receipts, size_t count, bool is_dead, const char *reason)
{
    struct mr_error e;
    int err = check_queue(queue, &e);
    if (!err && count > RECEIPTS_MAX)
        err = mr_fail(&e, MR_EINVAL, "receipts: %zu; %u are possible at most", count, RECEIPTS_MAX);
    if (!err && strlen(reason) > REASON_BYTES_MAX)
        err = mr_fail(&e, MR_EINVAL, "reason: %zu bytes; %d are possible at most", strlen(reason),
            REASON_BYTES_MAX);
    if (err) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    struct mr_queue_op *op = op_new(call, kind, queue);
    op->receipts = mr_alloc_array(count + 1, sizeof *op->receipts);
    op->receipts_count = count;
    for (size_t i = 0; i < count; i++)
        op->receipts[i] = mr_copy_text(receipts[i]);
    op->is_dead = is_dead;
    op->reason = mr_copy_text(reason[0] ? reason : "set aside by who took it");
    mr_queue_op_begin(op);
}

static void on_ack(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    const Millrace__V1__AckItemsRequest *r =
        REQUEST(call, m, millrace__v1__ack_items_request__descriptor);
    if (r) settle(call, MR_QUEUE_ACK, r->queue, r->receipts, r->n_receipts, false, "");
}

static void on_nack(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    const Millrace__V1__NackItemsRequest *r =
        REQUEST(call, m, millrace__v1__nack_items_request__descriptor);
    if (r) settle(call, MR_QUEUE_NACK, r->queue, r->receipts, r->n_receipts, r->dead, r->reason);
}

static void of_queue(struct mr_rpc_call *call, enum mr_queue_op_kind kind, const char *queue)
{
    struct mr_error e;
    if (check_queue(queue, &e))
        (void)mr_rpc_call_fail(call, &e);
    else
        mr_queue_op_begin(op_new(call, kind, queue));
}

static void on_get(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    const Millrace__V1__GetQueueRequest *r =
        REQUEST(call, m, millrace__v1__get_queue_request__descriptor);
    if (r) of_queue(call, MR_QUEUE_GET, r->queue);
}

static void on_close(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    const Millrace__V1__CloseQueueRequest *r =
        REQUEST(call, m, millrace__v1__close_queue_request__descriptor);
    if (r) of_queue(call, MR_QUEUE_CLOSE, r->queue);
}

static void on_delete(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    const Millrace__V1__DeleteQueueRequest *r =
        REQUEST(call, m, millrace__v1__delete_queue_request__descriptor);
    if (r) of_queue(call, MR_QUEUE_DELETE, r->queue);
}

static void on_list(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    const Millrace__V1__ListQueuesRequest *r =
        REQUEST(call, m, millrace__v1__list_queues_request__descriptor);
    struct mr_page page;
    struct mr_error e;
    if (!r) return;
    if (mr_page_read(r->page_size, r->page_token, MR_PAGE_ROWS_MAX, &page, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    struct mr_queue_op *op =
        /* `page.after`: the list starts after the queue of this name */
        op_new(call, MR_QUEUE_LIST, page.after.p);
    op->items_max = page.rows_max;
    mr_queue_op_begin(op);
}

/* ---- the part ---------------------------------------------------------------------------------*/

void mr_queue_ignore(void *ctx, struct mr_queue_answer **answer)
{
    (void)ctx;
    mr_queue_answer_free(answer);
}

static int queues_open(struct mr_trainer_shell *t, void **out, struct mr_error *e)
{
    (void)e;
    struct mr_queues *q = mr_alloc(sizeof *q);
    q->trainer = t;
    q->due = MR_NEVER;
    /* Due at once: the first turn removes names of objects that no item needs any more. The
     * previous trainer may have left such names. */
    q->release_at = mr_clock_now();
    if (getrandom(&q->process, sizeof q->process, 0) != (ssize_t)sizeof q->process)
        q->process = mr_clock_wall();
    mr_waiting_list_init(&q->waiting, WAITING_BYTES_MAX);
    mr_list_init(&q->lines);
    q->puts = mr_stats_counter(
        t->stats, "millrace_queue_items_put_total", "Items put into queues.", NULL);
    q->takes = mr_stats_counter(t->stats, "millrace_queue_items_taken_total",
        "Items given to takers, again ones too.", NULL);
    q->acks = mr_stats_counter(
        t->stats, "millrace_queue_items_acknowledged_total", "Items acknowledged.", NULL);
    q->lost = mr_stats_counter(t->stats, "millrace_queue_items_lost_total",
        "Items set aside because their object is lost.", NULL);
    t->queues = q;
    *out = q;
    return MR_OK;
}

static mr_time queues_turn(void *part, mr_time now)
{
    struct mr_queues *q = part;
    mr_time next = mr_waiting_turn(&q->waiting, now);
    next = MR_MIN(next, mr_queue_lines_turn(q, now));
    return MR_MIN(next, mr_queue_object_turn(q, now));
}

static void queues_drain(void *part)
{
    struct mr_queues *q = part;
    q->is_draining = true;
    mr_waiting_give_up(&q->waiting);
    (void)mr_queue_lines_turn(q, mr_clock_now());
}

static void queues_end_waits(void *part, struct mr_str waiter)
{
    mr_queue_lines_end_waits(part, waiter);
}

static void queues_close(void **part)
{
    struct mr_queues *q = *part;
    *part = NULL;
    q->is_draining = true;
    mr_waiting_list_fini(&q->waiting);
    mr_queue_lines_free(q);
    q->trainer->queues = NULL;
    mr_release(q);
}

#define METHOD(method, function)                                                                   \
    {                                                                                              \
        .name = method, .handler = &(const struct mr_rpc_handler)                                  \
        {                                                                                          \
            .on_message = (function)                                                               \
        }                                                                                          \
    }
static const struct mr_rpc_method methods[] = {
    METHOD("Create", on_create),
    METHOD("Put", on_put),
    METHOD("Take", on_take),
    METHOD("Ack", on_ack),
    METHOD("Nack", on_nack),
    METHOD("Get", on_get),
    METHOD("List", on_list),
    METHOD("Close", on_close),
    METHOD("Delete", on_delete),
};

static const struct mr_rpc_service service = {
    .name = "millrace.v1.Queues", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};

const struct mr_trainer_part mr_queues_part = {.service = &service,
    .open = queues_open,
    .turn = queues_turn,
    .drain = queues_drain,
    .end_waits = queues_end_waits,
    .close = queues_close};
