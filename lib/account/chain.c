#include "account/chain.h"

#include "base/alloc.h"
#include "base/defs.h"

void mr_account_chain_begin(struct mr_account_chain *c, mr_time lower, mr_time upper)
{
    c->count = 0;
    c->lower = lower;
    c->at = upper;
}

void mr_account_chain_fini(struct mr_account_chain *c)
{
    mr_release(c->segments);
    *c = (struct mr_account_chain){.at = MR_NEVER};
}

static void segment_add(struct mr_account_chain *c, mr_time from, enum mr_account_class class,
    const struct mr_account_recent *of)
{
    if (c->count == c->room) {
        uint32_t more = MR_MAX(64u, c->room * 2);
        c->segments =
            mr_grow(c->segments, c->room * sizeof *c->segments, more * sizeof *c->segments);
        c->room = more;
    }
    struct mr_account_segment *s = &c->segments[c->count++];
    *s = (struct mr_account_segment){.from = from,
        .to = c->at,
        .job = of ? of->job : MR_ACCOUNT_NONE,
        .index = of ? of->index : MR_ACCOUNT_NONE,
        .op = of ? of->op : MR_ACCOUNT_NONE,
        .class = (uint8_t) class};
    if (of && class == MR_ACCOUNT_DEPENDENCY) s->late_permille = of->late_permille;
    c->at = from;
}

void mr_account_chain_down(struct mr_account_chain *c, mr_time from, enum mr_account_class class,
    const struct mr_account_recent *of)
{
    from = MR_MAX(from, c->lower);
    while (from < c->at) {
        mr_time begin = from;
        enum mr_account_class is = class;
        if (c->pauses && c->pauses->count)
            is = mr_account_pauses_class(
                c->pauses, of ? of->lane : MR_ACCOUNT_NONE, class, &begin, c->at);
        segment_add(c, begin, is, of);
    }
}

/* Returns that input of task `x` whose value came last. NULL: the task waited for no input, or the
 * cache does not have that input any more. */
static const struct mr_account_recent *last_input(
    const struct mr_account_recents *recents, const struct mr_account_recent *x)
{
    if (x->last_input == x->index) return NULL;
    const struct mr_account_recent *d = mr_account_recents_find(recents, x->job, x->last_input);
    /* if the input started after `x`, the cache has a later attempt than the one that `x` used */
    return d && d->started <= x->started ? d : NULL;
}

/* Adds the time from `from` to c->at, in which the worker had to act. At most `*delayed` of it, the
 * kernel's delay of the worker, is added as PREEMPTED. `*delayed` is reduced by that part. */
static void worker_down(struct mr_account_chain *c, mr_time from, enum mr_account_class class,
    const struct mr_account_recent *x, mr_duration *delayed)
{
    mr_time at = c->at;
    mr_account_chain_down(c, MR_MAX(from, at - MR_MIN(*delayed, at)), MR_ACCOUNT_PREEMPTED, x);
    *delayed -= MR_MIN(at - c->at, *delayed);
    mr_account_chain_down(c, from, class, x);
}

/* Adds the time from `need` to the start of task `x`. At `need` the worker had the message with the
 * task, and the task's last input existed, here or on another node. */
static void wait_at_worker(struct mr_account_chain *c, const struct mr_account_recent *x,
    const struct mr_account_recent *input, mr_time need, mr_duration *delayed)
{
    mr_time here = MR_MAX(x->inputs, need);
    /* until `lane_free` the task's executor ran other tasks */
    worker_down(c, MR_MAX(here, x->lane_free), MR_ACCOUNT_HANDOFF, x, delayed);
    if (c->at <= c->lower) return;
    mr_account_chain_down(c, here, MR_ACCOUNT_IMBALANCE, x);
    if (here == need) return;
    /* the scheduler had to learn of the input before it could tell the worker where the input is */
    if (input && input->finished > x->received)
        mr_account_chain_down(
            c, MR_MAX(need, MR_MIN(input->accounted, here)), MR_ACCOUNT_TRANSFER, x);
    if (input && input->finished > x->received)
        mr_account_chain_down(c, need, MR_ACCOUNT_REPORT, input);
    mr_account_chain_down(c, need, MR_ACCOUNT_TRANSFER, x);
}

/* Adds the time from `floor` to the start of task `x`. `floor`: when the last input was done; if
 * `input` is NULL, when the job was accepted or submitted. */
static void wait_of(struct mr_account_chain *c, const struct mr_account_recent *x,
    const struct mr_account_recent *input, mr_time floor, mr_time slot_known)
{
    mr_duration delayed = x->delayed_ns;
    if (x->received)
        wait_at_worker(c, x, input, MR_MAX(x->received, floor), &delayed);
    else if (x->sent)
        mr_account_chain_down(c, MR_MAX(x->sent, floor), MR_ACCOUNT_UNKNOWN, x);
    if (c->at <= c->lower) return; /* a slot with a queue rarely waits for more than its worker */
    if (x->sent) worker_down(c, MR_MAX(x->sent, floor), MR_ACCOUNT_SEND, x, &delayed);
    if (x->ready && x->sent > floor) {
        mr_time ready = MR_MAX(x->ready, floor);
        mr_account_chain_down(c, MR_MAX(ready, slot_known),
            x->hold ? (enum mr_account_class)x->hold : MR_ACCOUNT_DECIDE, x);
        worker_down(c, ready, MR_ACCOUNT_REPORT, x, &delayed);
        mr_account_chain_down(
            c, floor, input ? MR_ACCOUNT_REPORT : MR_ACCOUNT_DECIDE, input ? input : x);
    }
    mr_account_chain_down(c, floor, MR_ACCOUNT_UNKNOWN, x);
}

/* Returns the task that ran before `x` on the same slot, if `x` waited for the slot: `x` was ready
 * and had its inputs when the slot became free. NULL: `x` did not wait, or the cache does not have
 * that task any more. */
static const struct mr_account_recent *slot_before(
    const struct mr_account_recents *recents, const struct mr_account_recent *x)
{
    mr_time could = MR_MAX(MR_MIN(x->ready, x->started), x->inputs);
    if (!x->lane_free || x->lane_free < could) return NULL;
    const struct mr_account_recent *d =
        mr_account_recents_find(recents, x->before_job, x->before_index);
    return d && d->finished == x->lane_free ? d : NULL;
}

/* Adds segments for the time between the start of task `before` and the start of task `x`, which
 * followed `before`. */
static void step_down(struct mr_account_chain *c, const struct mr_account_recent *x,
    const struct mr_account_recent *before, mr_time slot_known)
{
    wait_of(c, x, before, MR_MIN(before->finished, x->started), slot_known);
    mr_account_chain_down(c, before->started, MR_ACCOUNT_DEPENDENCY, before);
}

/* Adds segments for the time between the submission of the job and the start of task `x`, which has
 * no input. */
static void root_down(struct mr_account_chain *c, const struct mr_account_recent *x,
    const struct mr_account_job_times *job, mr_time slot_known)
{
    /* tasks may be sent while Redis writes the job's record: then the record delays nothing */
    bool is_delayed = job->accepted && x->sent >= job->accepted;
    mr_time floor = is_delayed ? job->accepted : job->submitted;
    wait_of(c, x, NULL, floor, slot_known);
    mr_account_chain_down(c, job->submitted, MR_ACCOUNT_JOURNAL, x);
}

void mr_account_chain_follow(struct mr_account_chain *c, const struct mr_account_recents *recents,
    const struct mr_account_recent *task, const struct mr_account_job_times *job,
    mr_time slot_known)
{
    const struct mr_account_recent *x = task, *input;
    for (; c->at > c->lower && (input = last_input(recents, x)); x = input, slot_known = 0)
        step_down(c, x, input, slot_known);
    if (c->at > c->lower) root_down(c, x, job, slot_known);
}

void mr_account_chain_critical(struct mr_account_chain *c, const struct mr_account_recents *recents,
    const struct mr_account_recent *task, const struct mr_account_job_times *job)
{
    const struct mr_account_recent *x = task;
    while (c->at > c->lower) {
        const struct mr_account_recent *slot = slot_before(recents, x);
        const struct mr_account_recent *before = slot ? slot : last_input(recents, x);
        if (!before) break;
        step_down(c, x, before, slot ? slot->accounted : 0);
        x = before;
    }
    if (c->at > c->lower) root_down(c, x, job, 0);
}
