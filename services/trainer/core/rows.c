/* Row plans: they tell which worker has which rows of the training data. The first plan that worker
 * 0 sends is final. */
#include "services/trainer/core/rows.h"

static uint32_t workers_of(const struct session *s)
{
    return s->document->roles[MR_TRAINING_WORKER];
}

void mr_trainer__rows_take(struct session *s, const struct mr_training_rows *rows)
{
    mr_assert(!s->has_rows);
    s->has_rows = true;
    if (!rows->workers) return;
    uint32_t count = rows->ends[rows->workers - 1];
    s->ranges = mr_copy(rows->ranges, 2 * (size_t)count * sizeof *s->ranges);
    s->ranges_ends = mr_copy(rows->ends, rows->workers * sizeof *s->ranges_ends);
}

/* Decides for the even split if all workers are on one node: then no rows have to be moved. */
void mr_trainer__rows_settle(struct session *s)
{
    const struct member *first = NULL;
    if (s->has_rows) return;
    for (uint32_t i = 0; i < s->members_count; i++) {
        const struct member *m = &s->members[i];
        if (m->role != MR_TRAINING_WORKER) continue;
        if (!first) first = m;
        if (!mr_str_eq(
                mr_str_of(m->node, m->node_bytes), mr_str_of(first->node, first->node_bytes)))
            return;
    }
    mr_trainer__rows_take(s, &(struct mr_training_rows){.decides = true});
}

void mr_trainer__rows_answer(struct mr_trainer *t, const struct session *s, struct member *m)
{
    struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_ROWS);
    x->ticket = m->rows.ticket;
    x->session = s->id;
    x->role = m->role;
    x->index = m->index;
    m->rows.ticket = 0;
}

void mr_trainer__rows_turn(struct mr_trainer *t, struct session *s, struct member *m)
{
    if (m->rows.ticket && (s->durable.has_rows || m->rows.until <= t->now))
        mr_trainer__rows_answer(t, s, m);
}

void mr_trainer__rows(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct session *s = NULL;
    const struct mr_training_rows *rows = &ev->rows;
    struct member *m = mr_trainer__member_of(t, ev, MR_TX_ROWS, &s);
    if (!m) return;
    if (!mr_trainer__is_in_force(m, ev->incarnation) || mr_trainer__is_over(s->state)) {
        mr_trainer__refuse(t, MR_TX_ROWS, ev->ticket, MR_ESTATE, "this incarnation is revoked");
        return;
    }
    if (rows->decides && rows->workers && rows->workers != workers_of(s)) {
        mr_trainer__refuse(t, MR_TX_ROWS, ev->ticket, MR_EINVAL,
            "shares: %u, but the session has %u workers", rows->workers, workers_of(s));
        return;
    }
    if (rows->decides && !m->index && !s->has_rows) {
        mr_trainer__rows_take(s, rows);
        s->is_dirty = true;
    }
    if (m->rows.ticket) mr_trainer__rows_answer(t, s, m);
    m->rows.ticket = ev->ticket;
    m->rows.until = mr_time_after(t->now, ev->wait);
}

bool mr_trainer_rows(const struct mr_trainer *t, mr_training_id id, uint32_t index,
    const uint64_t **ranges, uint32_t *count)
{
    const struct session *s = mr_trainer__find(t, id);
    *ranges = NULL;
    *count = 0;
    if (!s || !s->durable.has_rows) return false;
    if (!s->ranges_ends || index >= workers_of(s)) return true;
    uint32_t from = index ? s->ranges_ends[index - 1] : 0;
    *ranges = s->ranges + 2 * (size_t)from;
    *count = s->ranges_ends[index] - from;
    return true;
}
