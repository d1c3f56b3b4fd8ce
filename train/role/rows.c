/* Gets the rows that this worker trains on. Worker 0 asks the stores where the partitions are,
 * makes the row plan (feed/row_plan.c) and sends it to the trainer. The other workers ask the
 * trainer for their rows. */
#include "train/role/rows.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "train/feed/locate.h"

#include <inttypes.h>

/* Time that the trainer may hold a call until worker 0 has sent the plan. */
#define ASK_WAIT_S 2.0
#define CALL_TIMEOUT (10 * MR_SECOND)
#define PAUSE (100 * MR_MS) /* pause between two calls while the trainer is away */
#define ANSWER_BYTES_MAX ((size_t)16 << 20)

void mr_role_rows_fini(struct mr_role_rows *rows)
{
    mr_release(rows->ranges);
    *rows = (struct mr_role_rows){0};
}

/* ---- worker 0: rows of all workers ----------------------------------------------------------- */

struct facts {
    struct mr_row_part *parts;
    mr_object_id *ids;
    uint32_t parts_count;
    /* The different nodes of the training workers. The strings belong to the role's `members`. */
    const char **nodes;
    uint32_t nodes_count;
    uint32_t *node_of;
    uint32_t workers;
};

static void facts_fini(struct facts *f)
{
    mr_release(f->parts);
    mr_release(f->ids);
    mr_release(f->nodes);
    mr_release(f->node_of);
}

/* Fills in the nodes of the workers. False: there is nothing to plan. Then all workers are on
 * one node, they are on too many nodes, or the node of a worker is unknown. */
static bool nodes_fill(const struct mr_role *r, struct facts *f)
{
    f->workers = r->plan.workers;
    f->nodes = mr_alloc_array(f->workers, sizeof *f->nodes);
    f->node_of = mr_alloc_array(f->workers, sizeof *f->node_of);
    for (uint32_t w = 0; w < f->workers; w++) {
        const Millrace__V1__TrainingMember *m = mr_membership_find(r->members, MR_ROLE_WORKER, w);
        if (!m || !m->node[0]) return false;
        uint32_t k = 0;
        while (k < f->nodes_count && strcmp(f->nodes[k], m->node) != 0)
            k++;
        if (k == f->nodes_count) f->nodes[f->nodes_count++] = m->node;
        f->node_of[w] = k;
    }
    return f->nodes_count > 1 && f->nodes_count <= MR_ROW_PLAN_NODES_MAX;
}

static void take_place(void *ctx, const char *node, const char *address, uint32_t first,
    const unsigned char *has, uint32_t n)
{
    struct facts *f = ctx;
    (void)address;
    for (uint32_t k = 0; k < f->nodes_count; k++)
        for (uint32_t i = 0; i < n && !strcmp(f->nodes[k], node); i++)
            if (has[i] == 1) f->parts[first + i].nodes |= (uint64_t)1 << k;
}

static int parts_fill(
    struct mr_role *r, const struct mr_rows *rows, struct facts *f, struct mr_error *e)
{
    f->parts_count = mr_rows_parts(rows);
    f->parts = mr_alloc_array(f->parts_count + 1, sizeof *f->parts);
    f->ids = mr_alloc_array(f->parts_count + 1, sizeof *f->ids);
    for (uint32_t i = 0; i < f->parts_count; i++)
        f->ids[i] = mr_rows_part(rows, i, &f->parts[i]);
    int err = mr_role_where(&r->store, f->ids, f->parts_count, take_place, f, e);
    for (uint32_t i = 0; i < f->parts_count; i++)
        /* A partition without an id is part of the array's own value, so every node has it. */
        if (mr_object_id_is_none(f->ids[i])) f->parts[i].nodes = UINT64_MAX;
    return err;
}

static uint64_t bytes_of(const struct mr_rows *rows)
{
    return mr_rows_count(rows) * mr_rows_bytes(rows);
}

/* Makes the plan by the partitions of x, or of y if its rows are larger. After an error the
 * plan is the even split, and the role reports the error when it opens the data. */
static void plan_make(
    struct mr_role *r, const struct mr_arg *x, const struct mr_arg *y, struct mr_row_plan *out)
{
    struct mr_rows *a = NULL, *b = NULL;
    struct facts f = {0};
    struct mr_error e;
    e.text[0] = 0;
    *out = (struct mr_row_plan){.is_even = true};
    int err = nodes_fill(r, &f) ? MR_OK : MR_ENOENT;
    if (!err) err = mr_rows_open("data.train.x", x, &r->feed_store, &a, &e);
    if (!err) err = mr_rows_open("data.train.y", y, &r->feed_store, &b, &e);
    if (!err) err = parts_fill(r, bytes_of(a) >= bytes_of(b) ? a : b, &f, &e);
    if (!err) mr_row_plan_make(f.parts, f.parts_count, f.node_of, f.workers, out);
    mr_log(MR_INFO, "rows.planned",
        "session=%s nodes=%u even=%d moved_parts=%u moved_bytes=%" PRIu64 " err=%d what=\"%s\"",
        r->session, f.nodes_count, out->is_even, out->moved_parts, out->moved_bytes, err, e.text);
    mr_rows_close(&a);
    mr_rows_close(&b);
    facts_fini(&f);
}

/* ---- the trainer ----------------------------------------------------------------------------- */

static void take_ranges(const Millrace__V1__RowPlan *m, struct mr_role_rows *out)
{
    out->count = (uint32_t)(m->n_ranges / 2);
    out->ranges = mr_alloc_array(out->count + 1, sizeof *out->ranges);
    for (uint32_t i = 0; i < out->count; i++)
        out->ranges[i] = (struct mr_row_range){m->ranges[2 * i], m->ranges[2 * i + 1]};
}

static int call(struct mr_role *r, Millrace__V1__PlanRowsRequest *m, bool *is_decided,
    struct mr_role_rows *out, struct mr_error *e)
{
    struct mr_pb_arena arena;
    mr_pb_arena_init(&arena, ANSWER_BYTES_MAX);
    const Millrace__V1__PlanRowsResponse *got = NULL;
    m->session = r->session;
    m->index = r->index;
    m->incarnation = r->members->m->incarnation;
    m->wait_s = ASK_WAIT_S;
    int err = mr_role_call(r->link, "/millrace.v1.Trainings/PlanRows", &m->base, CALL_TIMEOUT,
        mr_role_stop_of(r), &millrace__v1__plan_rows_response__descriptor, &arena, &got, e);
    *is_decided = !err && got->rows && got->rows->decided;
    if (*is_decided) take_ranges(got->rows, out);
    mr_pb_arena_fini(&arena);
    return err;
}

static int ask(struct mr_role *r, Millrace__V1__PlanRowsRequest *m, struct mr_role_rows *out,
    struct mr_error *e)
{
    for (bool is_decided = false;;) {
        int err = mr_role_look(r, NULL);
        if (err) return mr_fail(e, err, "the role has to end");
        err = call(r, m, &is_decided, out, e);
        /* MR_EUNIMPL: a trainer of an older release has no row plans. The split is even. */
        if (is_decided || err == MR_EUNIMPL) return MR_OK;
        /* The trainer has revoked this worker's incarnation, or the session is over. The role's
         * agent learns this, too. */
        if (err == MR_ESTATE) return MR_EABORTED;
        if (err && !mr_role_may_retry(err)) return err;
        if (err) mr_role_wait(r, mr_time_after(mr_clock_now(), PAUSE));
    }
}

/* Sends the ranges of all workers to the trainer. */
static int report_rows(
    struct mr_role *r, const struct mr_row_plan *plan, struct mr_role_rows *out, struct mr_error *e)
{
    Millrace__V1__PlanRowsRequest m = MILLRACE__V1__PLAN_ROWS_REQUEST__INIT;
    uint32_t workers = plan->is_even ? 0 : plan->workers;
    uint32_t count = workers ? plan->ends[workers - 1] : 0;
    Millrace__V1__RowPlan *shares = mr_alloc_array(workers + 1, sizeof *shares);
    Millrace__V1__RowPlan **list = mr_alloc_array(workers + 1, sizeof(void *));
    uint64_t *numbers = mr_alloc_array(2 * (size_t)count + 1, sizeof *numbers);
    for (uint32_t i = 0; i < count; i++) {
        numbers[2 * (size_t)i] = plan->ranges[i].first;
        numbers[2 * (size_t)i + 1] = plan->ranges[i].count;
    }
    for (uint32_t w = 0, from = 0; w < workers; from = plan->ends[w++]) {
        millrace__v1__row_plan__init(&shares[w]);
        shares[w].ranges = numbers + 2 * (size_t)from;
        shares[w].n_ranges = 2 * (size_t)(plan->ends[w] - from);
        list[w] = &shares[w];
    }
    m.decides = true;
    m.shares = list;
    m.n_shares = workers;
    int err = ask(r, &m, out, e);
    mr_release(shares);
    mr_release(list);
    mr_release(numbers);
    return err;
}

int mr_role_rows_get(struct mr_role *r, const struct mr_arg *x, const struct mr_arg *y,
    struct mr_role_rows *out, struct mr_error *e)
{
    *out = (struct mr_role_rows){0};
    const Millrace__V1__RowPlan *known = r->members->m->rows;
    if (known && known->decided) {
        take_ranges(known, out);
        return MR_OK;
    }
    if (r->index) {
        Millrace__V1__PlanRowsRequest m = MILLRACE__V1__PLAN_ROWS_REQUEST__INIT;
        return ask(r, &m, out, e);
    }
    struct mr_row_plan plan;
    plan_make(r, x, y, &plan);
    int err = report_rows(r, &plan, out, e);
    mr_row_plan_fini(&plan);
    return err;
}
