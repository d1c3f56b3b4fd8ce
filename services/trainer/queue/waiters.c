/* The lines of requests that wait for an item or for room. Within this process, lines are first in,
 * first out. Between processes, Redis serves the process that asks first. */
#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "services/trainer/queue/internal.h"

/* A line is tried again after at most this time, because a report that its queue has changed may
 * have been lost. */
#define RETRY_MAX (5 * MR_SECOND)

static int side(const struct mr_queue_op *op)
{
    mr_assert(op->kind == MR_QUEUE_PUT || op->kind == MR_QUEUE_TAKE);
    return op->kind == MR_QUEUE_TAKE;
}

static void look_by(struct mr_queues *q, mr_time at)
{
    q->due = MR_MIN(q->due, at);
}

void mr_queue_line_find(struct mr_queue_op *op)
{
    struct mr_queues *q = op->queues;
    op->turn = ++q->turns;
    op->until = op->until ? op->until : mr_clock_now();
    MR_LIST_EACH(node, &q->lines)
    {
        struct mr_queue_line *line = MR_LIST_ITEM(node, struct mr_queue_line, node);
        if (strcmp(line->queue, op->queue) != 0) continue;
        op->line = line;
        line->ops_count++;
        return;
    }
    struct mr_queue_line *line = mr_alloc(sizeof *line);
    line->queues = q;
    line->queue = mr_copy_text(op->queue);
    line->retry_at = MR_NEVER;
    mr_list_init(&line->ops[0]);
    mr_list_init(&line->ops[1]);
    mr_list_add_tail(&q->lines, &line->node);
    op->line = line;
    line->ops_count = 1;
}

void mr_queue_line_put(struct mr_queue_op *op)
{
    struct mr_queue_line *line = MR_STEAL(op->line);
    if (!line) return;
    mr_assert(line->ops_count > 0);
    for (int which = 0; which < 2; which++)
        if (line->probe[which] == op) line->probe[which] = NULL;
    if (--line->ops_count == 0) look_by(op->queues, 0);
}

static void line_free(struct mr_queue_line *line)
{
    mr_list_remove(&line->node);
    mr_release(line->queue);
    mr_release(line);
}

bool mr_queue_line_is_waiting(const struct mr_queue_op *op)
{
    return !mr_list_is_empty(&op->line->ops[side(op)]);
}

/* Sends the first request of a line to Redis, unless a request of this line still waits for the
 * answer of Redis. Requests whose caller has gone are freed. */
static void probe(struct mr_queue_line *line, int which)
{
    while (!line->probe[which] && !mr_list_is_empty(&line->ops[which])) {
        struct mr_queue_op *op =
            MR_LIST_ITEM(mr_list_pop_head(&line->ops[which]), struct mr_queue_op, place);
        if (!mr_queue_op_call(op)) { /* the caller has gone */
            mr_queue_op_end(&op);
            continue;
        }
        line->probe[which] = op;
        mr_queue_op_begin(op);
    }
}

void mr_queue_line_left(struct mr_queue_op *op, bool is_served)
{
    int which = side(op);
    bool was_probe = op->line->probe[which] == op;
    if (was_probe) op->line->probe[which] = NULL;
    if (is_served || op->news != op->line->news) probe(op->line, which);
}

void mr_queue_line_enter(struct mr_queue_op *op, uint64_t next_ms)
{
    struct mr_queue_line *line = op->line;
    int which = side(op);
    struct mr_list *before = &line->ops[which]; /* the first request that arrived after `op` */
    MR_LIST_EACH(node, &line->ops[which])
    {
        if (MR_LIST_ITEM(node, struct mr_queue_op, place)->turn < op->turn) continue;
        before = node;
        break;
    }
    mr_list_add_tail(before, &op->place);
    mr_duration wait = next_ms ? MR_MIN((next_ms + 1) * MR_MS, RETRY_MAX) : RETRY_MAX;
    line->retry_at = MR_MIN(line->retry_at, mr_time_after(mr_clock_now(), wait));
    look_by(op->queues, MR_MIN(line->retry_at, op->until));
    mr_queue_line_left(op, false);
}

void mr_queues_news(struct mr_queues *q, struct mr_str queue, bool all)
{
    MR_LIST_EACH(node, &q->lines)
    {
        struct mr_queue_line *line = MR_LIST_ITEM(node, struct mr_queue_line, node);
        if (!all && !mr_str_eq(mr_str(line->queue), queue)) continue;
        line->news++;
        probe(line, 0);
        probe(line, 1);
    }
}

static void end_late(struct mr_queue_line *line, int which, mr_time now)
{
    MR_LIST_EACH(node, &line->ops[which])
    {
        struct mr_queue_op *op = MR_LIST_ITEM(node, struct mr_queue_op, place);
        if (op->until > now && !line->queues->is_draining) {
            look_by(line->queues, op->until);
            continue;
        }
        mr_list_remove(node);
        if (line->queues->is_draining)
            mr_queue_fail(op, MR_ECANCELED);
        else
            mr_queue_reply(op);
        mr_queue_op_end(&op);
    }
}

void mr_queue_lines_end_waits(struct mr_queues *q, struct mr_str waiter)
{
    MR_LIST_EACH(node, &q->lines)
    {
        struct mr_queue_line *line = MR_LIST_ITEM(node, struct mr_queue_line, node);
        for (int which = 0; which < 2; which++)
            MR_LIST_EACH(inner, &line->ops[which])
            {
                struct mr_queue_op *op = MR_LIST_ITEM(inner, struct mr_queue_op, place);
                const struct mr_rpc_call *call = mr_queue_op_call(op);
                if (call && mr_rpc_waits_of(call, waiter)) op->until = 0;
            }
    }
    q->due = 0;
}

mr_time mr_queue_lines_turn(struct mr_queues *q, mr_time now)
{
    if (q->due > now && !q->is_draining) return q->due;
    q->due = MR_NEVER;
    MR_LIST_EACH(node, &q->lines)
    {
        struct mr_queue_line *line = MR_LIST_ITEM(node, struct mr_queue_line, node);
        end_late(line, 0, now);
        end_late(line, 1, now);
        bool has_ops = !mr_list_is_empty(&line->ops[0]) || !mr_list_is_empty(&line->ops[1]);
        if (!has_ops) line->retry_at = MR_NEVER;
        if (line->retry_at <= now) {
            line->retry_at = mr_time_after(now, RETRY_MAX);
            probe(line, 0);
            probe(line, 1);
        }
        look_by(q, line->retry_at);
        if (line->ops_count == 0) line_free(line);
    }
    return q->due;
}

void mr_queue_lines_free(struct mr_queues *q)
{
    MR_LIST_EACH(node, &q->lines)
    {
        struct mr_queue_line *line = MR_LIST_ITEM(node, struct mr_queue_line, node);
        for (int which = 0; which < 2; which++)
            MR_LIST_EACH(inner, &line->ops[which])
            {
                struct mr_queue_op *op = MR_LIST_ITEM(inner, struct mr_queue_op, place);
                mr_list_remove(inner);
                mr_queue_op_end(&op);
            }
        line_free(line);
    }
}
