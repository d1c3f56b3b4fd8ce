/* The method PlanRows: checks the ranges of a request, gives them to the core, and sends the
 * answer. */
#include "services/trainer/session/internal.h"

#include "base/alloc.h"

/* Appends one worker's ranges to `ranges`. False: the call was failed. */
static bool take_share(struct mr_rpc_call *call, const Millrace__V1__RowPlan *share, uint32_t index,
    uint64_t *ranges, uint32_t *count)
{
    uint64_t behind = 0;
    size_t n = share->n_ranges / 2;
    if (share->n_ranges % 2 || n > MR_TRAINING_RANGES_MAX - *count) {
        mr_trainer_fail(call, MR_EINVAL,
            "shares: ranges of worker %u: expected pairs of first and count, at most %u in all",
            index, MR_TRAINING_RANGES_MAX);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t first = share->ranges[2 * i], rows = share->ranges[2 * i + 1];
        if (first < behind || !rows || rows > UINT64_MAX - first) {
            mr_trainer_fail(call, MR_EINVAL,
                "shares: ranges of worker %u: range %zu is empty, or not behind the one before",
                index, i);
            return false;
        }
        behind = first + rows;
        ranges[2 * (size_t)*count] = first;
        ranges[2 * (size_t)*count + 1] = rows;
        (*count)++;
    }
    return true;
}

static void ask(struct mr_rpc_call *call, const Millrace__V1__PlanRowsRequest *m, uint64_t *ranges,
    uint32_t *ends)
{
    struct mr_training_call *c = mr_training_call_of(call);
    uint32_t count = 0;
    for (size_t w = 0; w < m->n_shares; w++) {
        if (!take_share(call, m->shares[w], (uint32_t)w, ranges, &count)) return;
        ends[w] = count;
    }
    struct mr_trainer_event ev = {.type = MR_TE_ROWS,
        .session = c->session,
        .role = MR_TRAINING_WORKER,
        .index = m->index,
        .incarnation = m->incarnation,
        .wait = c->wait};
    ev.rows = (struct mr_training_rows){
        .decides = m->decides, .ranges = ranges, .ends = ends, .workers = (uint32_t)m->n_shares};
    mr_training_call_ask(call, &ev);
}

void mr_training_plan_rows(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    const Millrace__V1__PlanRowsRequest *m =
        mr_trainer_request(c->tr->t, call, msg, &millrace__v1__plan_rows_request__descriptor);
    int role = MILLRACE__V1__TRAINING_ROLE__TRAINING_WORKER;
    if (!m || !mr_training_take_role(call, m->session, role, &c->session)) return;
    if (!mr_training_take_wait(call, m->wait_s, MR_TRAINING_ROLE_WAIT_S_MAX, &c->wait)) return;
    if (m->n_shares > MR_TRAINING_RANGES_MAX) {
        mr_trainer_fail(call, MR_EINVAL, "shares: more than there can be workers");
        return;
    }
    uint64_t *ranges =
        mr_alloc_array(m->n_shares ? 2 * (size_t)MR_TRAINING_RANGES_MAX : 1, sizeof *ranges);
    uint32_t *ends = mr_alloc_array(m->n_shares + 1, sizeof *ends);
    ask(call, m, ranges, ends);
    mr_release(ranges);
    mr_release(ends);
}

void mr_training_reply_rows(
    struct mr_trainings *tr, struct mr_rpc_call *call, const struct mr_trainer_effect *x)
{
    Millrace__V1__PlanRowsResponse r = MILLRACE__V1__PLAN_ROWS_RESPONSE__INIT;
    r.rows = mr_training_rows_message(tr, x);
    (void)mr_rpc_call_reply_pb(call, &r.base);
}
