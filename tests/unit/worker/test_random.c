/* The worker's core against a random model of a scheduler. The model assigns, steals, cancels and
 * releases tasks, repeats messages, goes away and comes back. Executors and fetches end in any
 * order and in any way. The core checks its invariants after each step. In the end the faults stop,
 * and then every task must end. */
#include "tests/unit/worker/rig.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NODES 80u
#define STEPS 600

enum node_state { ABSENT, SENT, HELD, ELSEWHERE };

struct node {
    enum node_state state;
    uint32_t attempt;
    uint32_t inputs[3];
    uint32_t inputs_count;
    uint32_t starts; /* number of starts of this attempt */
    uint32_t op;
    bool want_object;
};

struct model {
    struct rig *r;
    struct mr_rng rng;
    struct node nodes[NODES];
    uint32_t seen; /* number of completions that the model has taken */
    /* Answered fetches, some of which are answered again. */
    struct rig_fetch old[8];
    uint32_t old_count;
    bool calm;
};

static uint32_t dice(struct model *m, uint32_t n)
{
    return (uint32_t)mr_rng_below(&m->rng, n);
}

/* Sends the worker the value of task `i`, which exists outside the worker: inline, or as an object
 * on another machine. */
static void bring(struct model *m, uint32_t i)
{
    bool remote = !m->calm && dice(m, 2);
    rig_value(m->r, RIG_JOB, i, remote ? 1 + dice(m, 2) : 0);
}

static void assign(struct model *m, uint32_t i)
{
    struct node *n = &m->nodes[i];
    int inputs[4] = {-1, -1, -1, -1};
    n->state = SENT;
    n->attempt++;
    n->starts = 0;
    for (uint32_t k = 0; k < n->inputs_count; k++) {
        inputs[k] = (int)n->inputs[k];
        if (m->nodes[n->inputs[k]].state == ELSEWHERE) bring(m, n->inputs[k]);
    }
    rig_task(m->r, RIG_JOB, i, n->attempt, n->op, inputs);
    m->r->m.priority[0] = (int32_t)dice(m, 3);
    if (n->want_object) rig_extra(m->r)->want_object = true;
    rig_deliver(m->r);
}

static bool is_needed_here(const struct model *m, uint32_t i)
{
    for (uint32_t j = i + 1; j < NODES; j++)
        for (uint32_t k = 0; k < m->nodes[j].inputs_count; k++)
            if (m->nodes[j].inputs[k] == i && m->nodes[j].state == SENT) return true;
    return false;
}

/* Takes the new completions, as the scheduler does. */
static void listen(struct model *m)
{
    struct rig *r = m->r;
    for (; m->seen < r->done_count; m->seen++) {
        const struct rig_done *d = &r->done[m->seen];
        struct node *n = &m->nodes[d->index];
        bool live = n->state == SENT && d->attempt == n->attempt;
        if (d->outcome == MR_OUTCOME_OK && n->state == SENT) {
            n->state = HELD; /* the value counts, whichever attempt made it */
            n->attempt = d->attempt;
        } else if (d->outcome == MR_OUTCOME_OK && !(n->state == HELD && d->attempt == n->attempt)) {
            rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, d->index, d->attempt);
        } else if (live) {
            n->state = ABSENT;
        }
    }
    for (uint32_t k = 0; k < r->missing_rows_count; k++) {
        struct node *n = &m->nodes[r->missing_rows[k].index];
        if (n->state == HELD) n->state = ABSENT;
    }
    for (uint32_t k = 0; k < r->given_rows_count; k++) {
        struct node *n = &m->nodes[r->given_rows[k].index];
        if (n->state == SENT && n->attempt == r->given_rows[k].attempt) n->state = ABSENT;
    }
    r->missing_rows_count = r->given_rows_count = 0;
    if (r->m.down.release.count) rig_deliver(r);
    if (r->done_count > 60000) {
        r->done_count = 0;
        m->seen = 0;
    }
}

static void run_some(struct model *m)
{
    struct rig *r = m->r;
    if (!r->strands_count) return;
    struct mr_strand *s = r->strands[dice(m, r->strands_count)];
    if (!rig_begun(r, s)) return; /* another strand of the slot runs first */
    uint32_t until = s->reported + 1 + dice(m, s->count - s->reported);
    for (uint32_t i = s->reported; i < until; i++) {
        struct mr_strand_item *item = &s->items[i];
        enum mr_strand_end end = MR_STRAND_DONE;
        uint32_t gone = 0;
        if (!m->calm && !dice(m, 12)) end = dice(m, 2) ? MR_STRAND_FAILED : MR_STRAND_STOPPED;
        for (uint32_t k = 0; k < item->inputs_count; k++) {
            const struct mr_strand_input *in = &item->inputs[k];
            bool is_object = in->kind == MR_STRAND_OBJECT;
            if (is_object && !m->calm && !dice(m, 10)) {
                end = MR_STRAND_INPUT_GONE;
                gone = k;
            }
            if (in->kind == MR_STRAND_ITEM && s->items[in->item].result.end != MR_STRAND_DONE) {
                end = MR_STRAND_SKIPPED;
                break;
            }
        }
        rig_result(r, item, end);
        item->result.gone = gone;
        if (end == MR_STRAND_DONE) m->nodes[item->index].starts++;
        assert_true(m->nodes[item->index].starts <= 2);
    }
    rig_report(r, s, until);
}

static void end_fetch(struct model *m)
{
    struct rig *r = m->r;
    if (m->old_count && !dice(m, 4)) { /* answers an old fetch again */
        const struct rig_fetch *old = &m->old[dice(m, m->old_count)];
        struct mr_worker_event late = {
            .kind = MR_WORKER_FETCHED, .fetched = {.value = old->value, .serial = old->serial}};
        rig_step(r, &late);
        mr_worker_check(r->w);
    }
    if (!r->fetched_count) return;
    struct rig_fetch *f = &r->fetched[dice(m, r->fetched_count)];
    m->old[m->old_count < 8 ? m->old_count++ : dice(m, 8)] = *f;
    struct mr_worker_event ev = {
        .kind = MR_WORKER_FETCHED, .fetched = {.value = f->value, .serial = f->serial}};
    if (!m->calm && !f->here && !dice(m, 4)) {
        ev.fetched.err = MR_ELOST;
        ev.fetched.why = MR_STR("lost");
    }
    f->here = true; /* f stays in the list, and may be answered twice */
    if (ev.fetched.err) rig_unpin(r, f->serial); /* a failed fetch has no pin */
    rig_step(r, &ev);
    mr_worker_check(r->w);
}

static void reconnect(struct model *m, bool revoke)
{
    struct rig *r = m->r;
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_turn(r);
    for (uint32_t i = dice(m, 6); i--;)
        run_some(m);
    if (revoke) rig_event(r, MR_WORKER_REVOKED);
    rig_connect(r);
    for (uint32_t i = 0; i < NODES; i++) {
        struct node *n = &m->nodes[i];
        bool keep = m->calm || dice(m, 4);
        if (n->state == ABSENT || n->state == ELSEWHERE) continue;
        if (keep) {
            rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, i, n->attempt);
            rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, i, n->attempt);
        }
        /* A task that the worker no longer has must be sent again. */
        bool has = false;
        for (uint32_t k = 0; k < r->queued_rows_count; k++)
            has = has || (r->queued_rows[k].index == i && r->queued_rows[k].attempt == n->attempt);
        bool held = false;
        for (uint32_t k = 0; k < r->held_rows_count; k++)
            held = held || (r->held_rows[k].index == i && r->held_rows[k].attempt == n->attempt);
        if (keep && held) {
            n->state = HELD;
        } else if (!keep || !(has && n->state == SENT)) {
            n->state = ABSENT;
        }
    }
    m->seen = r->done_count;
    rig_register(r, revoke ? r->registers + 100u : 9);
    r->m.registered.adopt = (struct mr_ws_refs){0};
    r->m.registered.keep = (struct mr_ws_refs){0};
}

static void disturb(struct model *m)
{
    struct rig *r = m->r;
    uint32_t i = dice(m, NODES);
    struct node *n = &m->nodes[i];
    switch (dice(m, 14)) {
    case 0:
        if (n->state != SENT) break;
        rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, i, n->attempt);
        if (!dice(m, 2)) break;
        rig_deliver(r); /* the next attempt is sent at once, before the worker's answer */
        assign(m, i);
        break;
    case 1:
        if (n->state == SENT) rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, i, n->attempt);
        break;
    case 2: rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, i, n->attempt + dice(m, 3)); break;
    case 3:
        if (n->state == SENT) { /* sends the same attempt twice */
            n->attempt--;
            assign(m, i);
        }
        break;
    case 4:
        if (n->state == HELD && !is_needed_here(m, i)) {
            rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, i, n->attempt);
            n->state = ABSENT;
        }
        break;
    case 5: rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, i, n->attempt + 7); break;
    case 6: rig_ref(&r->m.down.fetch, &r->m.fetch, RIG_JOB, i, n->attempt); break;
    case 7:
        if (!dice(m, 6)) reconnect(m, dice(m, 2));
        break;
    case 8:
        if (n->state == ABSENT) bring(m, i); /* the value may have no user here */
        if (n->state == ABSENT) n->state = ELSEWHERE;
        break;
    case 9: /* the job releases the value, and runs the task again later */
        if (n->state == HELD && !is_needed_here(m, i)) {
            rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, i, 0);
            n->state = ABSENT;
        }
        break;
    default: r->now += dice(m, 300) * MR_US; break;
    }
    rig_deliver(r);
}

static void step(struct model *m)
{
    for (uint32_t k = dice(m, 5); k--;) {
        uint32_t i = dice(m, NODES);
        if (m->nodes[i].state == ABSENT) assign(m, i);
    }
    if (!m->calm) disturb(m);
    rig_turn(m->r);
    if (dice(m, 2)) run_some(m);
    if (dice(m, 2)) end_fetch(m);
    rig_turn(m->r);
    listen(m);
}

/* The faults end: missing values are sent, and all tasks that were sent must end. */
static void settle(struct model *m)
{
    m->calm = true;
    /* The worker reconnects only in some runs, because a reconnect would hide tasks that the core
     * forgot. */
    if (dice(m, 2)) reconnect(m, false);
    for (uint32_t round = 0; round < 4000; round++) {
        uint32_t sent = 0;
        for (uint32_t i = 0; i < NODES; i++) {
            struct node *n = &m->nodes[i];
            if (n->state == SENT) sent++;
            /* A value that is ELSEWHERE was sent to the worker already: when it became ELSEWHERE,
             * and again with each later task that needs it. */
            if (n->state != ABSENT || !is_needed_here(m, i)) continue;
            n->state = ELSEWHERE;
            bring(m, i);
            rig_deliver(m->r);
        }
        if (!sent) return;
        rig_turn(m->r);
        run_some(m);
        end_fetch(m);
        m->r->now += 10 * MR_US;
        rig_turn(m->r);
        listen(m);
    }
    for (uint32_t i = 0; i < NODES; i++)
        if (m->nodes[i].state == SENT)
            print_message("node %u attempt %u\n", i, m->nodes[i].attempt);
    fail_msg("what was sent did not end");
}

static void forget(struct model *m)
{
    struct rig *r = m->r;
    r->m.forget[0] = RIG_JOB;
    r->m.down.forget_jobs = r->m.forget;
    r->m.down.forget_jobs_count = 1;
    rig_deliver(r);
    rig_turn(r);
    for (uint32_t i = 0; i < 1000 && r->strands_count; i++)
        run_some(m);
    rig_turn(r);
    assert_int_equal(r->strands_count, 0);
    assert_int_equal(r->fetched_count, 0);       /* every pin was released */
    assert_int_equal(r->drops, (int)r->objects); /* every object was dropped once */
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->held, 0);
    assert_int_equal(r->queued, 0);
}

static void run_seed(uint64_t seed)
{
    struct model m = {0};
    mr_rng_init(&m.rng, seed);
    m.r = rig_new(1 + dice(&m, 3));
    for (uint32_t i = 0; i < NODES; i++) {
        struct node *n = &m.nodes[i];
        n->inputs_count = i ? dice(&m, 4) : 0;
        for (uint32_t k = 0; k < n->inputs_count; k++)
            n->inputs[k] = i - 1 - dice(&m, MR_MIN(i, 12u));
        n->op = 1 + dice(&m, 4);
        n->want_object = !dice(&m, 3);
    }
    for (int i = 0; i < STEPS; i++)
        step(&m);
    settle(&m);
    forget(&m);
    rig_free(&m.r);
}

static void whatever_happens_every_task_ends_and_nothing_is_left(void **state)
{
    (void)state;
    const char *only = getenv("SEED");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    uint64_t count = only ? 1 : 60;
    const char *many = getenv("SEEDS");
    if (many) count = strtoull(many, NULL, 10);
    for (uint64_t seed = first; seed < first + count; seed++) {
        if (getenv("VERBOSE")) print_message("seed %llu\n", (unsigned long long)seed);
        run_seed(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_every_task_ends_and_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
