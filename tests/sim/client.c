/* Clients of the simulation. They submit jobs, submit again when they got no answer, cancel, retry,
 * and read every value that is announced to them. Checks that answers and values that clients have
 * seen stay true. */
#include "tests/sim/sim.h"

#include "graph/bytes/bytes.h"

#include <stdio.h>

#define WAITS_MAX 100 /* limit of the attempts to submit a job from a running task */
#define REFUSALS_MAX 10
#define CODE_DEADLINE 4
#define CODE_INTERNAL 13
#define CODE_DATA_LOSS 15

static struct mr_graph *copy_of(const struct mr_graph *g)
{
    struct mr_buf b;
    struct mr_graph *out = NULL;
    mr_buf_init(&b, (size_t)1 << 26);
    int err = mr_graph_to_bytes(g, &b, NULL);
    if (!err) err = mr_graph_from_bytes(mr_buf_str(&b), &out, NULL);
    mr_assert(!err);
    mr_buf_fini(&b);
    return out;
}

/* Returns a running task, drawn by dice, as the parent of the next job. The result has job 0 if no
 * task runs. */
static struct mr_sched_parent some_parent(struct sim *s)
{
    const struct sim_run *found = NULL;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < s->procs_count; i++)
        for (const struct sim_run *r = s->procs[i].runs; r; r = r->next_run)
            if (r->running && !sim_below(s, ++seen)) found = r;
    if (!found) return (struct mr_sched_parent){0};
    const struct mr_strand_item *item = &found->strand->items[found->next];
    return (struct mr_sched_parent){item->job, item->index, item->attempt};
}

void sim_client_submit(struct sim *s, uint32_t spec)
{
    struct sim_spec *x = &s->specs[spec];
    if (x->is_accepted || x->is_given_up) return;
    struct mr_sched_parent parent = {0};
    if (spec % 4 == 3 && s->sched && x->asked_life != s->life) parent = some_parent(s);
    if (spec % 4 == 3 && !parent.job.v && x->waits < WAITS_MAX) {
        x->waits++;
        sim_push(s, 1 + sim_below(s, 10 * MR_MS),
            (struct mr_virtual_event){.kind = EV_SUBMIT, .a = spec});
        return;
    }
    /* The client submits again after a while, in case it gets no answer. */
    sim_push(s, 300 * MR_MS, (struct mr_virtual_event){.kind = EV_SUBMIT, .a = spec});
    if (!s->sched || x->asked_life == s->life) return;
    x->asked_life = s->life;
    struct mr_sched_event ev = {.type = MR_SCHED_SUBMIT};
    ev.submit.ticket = spec + 1;
    ev.submit.graph = copy_of(x->graph);
    ev.submit.body_hash = (mr_graph_hash){spec, 1};
    ev.submit.parent = parent;
    /* Each job claims to be an instance of one of three templates, although the graphs differ. */
    if (s->has_loops) ev.submit.template = 1 + spec % 3;
    if (x->template) ev.submit.template = x->template;
    s->count.children += parent.job.v != 0;
    struct mr_sched_resolved found[SHARED_MAX];
    ev.submit.resolved_count = sim_names_resolve(s, x->graph, found);
    ev.submit.resolved = found;
    mr_object_id wrong = {found[0].object.maker, 1};
    if (ev.submit.resolved_count && s->plant == PLANT_NAME) found[0].object = wrong;
    sim_say(s, "client submits job %" PRIu32 " of %" PRIu32 " nodes", spec, x->graph->nodes_count);
    s->revived += sim_shared_revives(s, x->graph);
    /* Whether a refusal would be right is decided before the submission, because other jobs may
     * come and go before the answer. */
    x->may_clash = sim_shared_is_refused(s, x->graph, MR_EEXIST);
    x->may_miss = sim_shared_is_refused(s, x->graph, MR_ENOENT);
    sim_sched_step(s, &ev);
}

/* The ticket of a request is this number plus the request's type. Tickets of submissions are
 * smaller. */
#define TICKET_REQUEST 1000000

static void request(struct sim *s, enum mr_sched_event_type type, uint64_t id)
{
    if (!s->sched) return;
    struct mr_sched_event ev = {
        .type = type, .job = {id}, .ticket = TICKET_REQUEST + (uint64_t)type};
    sim_sched_step(s, &ev);
}

/* Checks a cancel that was answered: the job must have ended, also if the scheduler crashed
 * since. */
static void answered(struct sim *s, const struct mr_sched_note *n)
{
    struct mr_sched_job_info info;
    struct sim_job *j = sim_job_of(s, n->job.v);
    bool is_cancel = n->ticket == TICKET_REQUEST + (uint64_t)MR_SCHED_CANCEL;
    if (n->code || !is_cancel || !j || j->was_retried) return;
    /* The job has ended and has been forgotten since. */
    if (mr_sched_forgotten(s->sched, n->job)) return;
    if (!mr_sched_job(s->sched, n->job, &info) || info.state < MR_JOB_DONE)
        sim_fail(s, "I8: the cancel of job %" PRIx64 " is answered before it is kept", n->job.v);
}

static void replied(struct sim *s, const struct mr_sched_note *n)
{
    if (n->ticket >= TICKET_REQUEST) answered(s, n);
    if (n->ticket == 0 || n->ticket > s->specs_count) return;
    uint32_t spec = (uint32_t)n->ticket - 1;
    struct sim_spec *x = &s->specs[spec];
    bool has_no_parent = n->code == MR_ESTATE; /* the parent ended before the submission arrived */
    if (n->code == MR_EAWAY || n->code == MR_ELIMIT || has_no_parent) {
        x->asked_life = 0; /* the client submits again */
        return;
    }
    bool may_be_refused = n->code == MR_EEXIST ? x->may_clash : n->code == MR_ENOENT && x->may_miss;
    if (n->code && may_be_refused) {
        sim_say(s, "job %" PRIu32 " is refused: %.*s", spec, (int)MR_MIN(n->text_bytes, 120u),
            s->fx.text.p + n->text_at);
        x->asked_life = 0;
        x->is_given_up = ++x->refusals > REFUSALS_MAX;
        s->count.refused_jobs++;
        return;
    }
    if (n->code)
        sim_fail(s, "the submission of %" PRIu32 " is refused: %.*s", spec, (int)n->text_bytes,
            s->fx.text.p + n->text_at);
    if (x->is_accepted && x->id != n->job.v) sim_fail(s, "one request became two jobs");
    if (!x->is_accepted) sim_say(s, "job %" PRIu32 " is accepted as %" PRIx64, spec, n->job.v);
    sim_journal_check_job(s, n->job.v, spec);
    x->is_accepted = true;
    x->id = n->job.v;
    if (!sim_job_of(s, x->id)) sim_fail(s, "I7: a job is accepted and cannot be found");
    if (x->cancel_after)
        sim_push(s, x->cancel_after, (struct mr_virtual_event){.kind = EV_CLIENT, .a = spec});
    if (x->forget_after)
        sim_push(s, x->forget_after,
            (struct mr_virtual_event){.kind = EV_CLIENT, .a = spec, .b = WISH_FORGET});
}

/* Checks a value that a reader got for a target. */
static void see(struct sim *s, struct sim_job *j, uint32_t index, uint64_t value)
{
    struct sim_task *t = &j->task[index];
    /* After a loss a task with random values is run again and may give another value. */
    bool may_differ = t->is_tainted && t->seen_losses != sim_losses(s);
    if (t->has_seen && t->seen != value && !may_differ)
        sim_fail(s, "I6: key %" PRIu32 " of job %" PRIx64 " has two values", index, j->id);
    if (!t->is_tainted && value != t->expect)
        sim_fail(s, "key %" PRIu32 " of job %" PRIx64 " has a wrong value", index, j->id);
    if (t->fate == FATE_MUST)
        sim_fail(s, "key %" PRIu32 " of job %" PRIx64 " has a value, and cannot", index, j->id);
    if (!t->has_seen || t->seen != value) t->seen_losses = sim_losses(s);
    t->has_seen = true;
    t->seen = value;
}

/* Reads a target that was announced as readable. The target may have been lost since. */
static void read_value(struct sim *s, struct sim_job *j, uint32_t index)
{
    struct mr_buf bytes;
    struct mr_sched_value v;
    mr_buf_init(&bytes, (size_t)1 << 20);
    bool is_there = mr_sched_value(s->sched, (mr_job_id){j->id}, index, &bytes, &v);
    if (s->specs[j->spec].graph->kind[index] == MR_NODE_LITERAL) is_there = false;
    if (is_there && v.kind == MR_SCHED_VALUE_INLINE)
        see(s, j, index, sim_value_of_pack(mr_buf_str(&bytes)));
    if (is_there && v.kind == MR_SCHED_VALUE_OBJECT) {
        uint64_t store = 0;
        struct mr_str node;
        struct mr_str address;
        bool is_alive;
        (void)mr_sched_store(s->sched, v.store, &store, &node, &address, &is_alive);
        bool has = store ? sim_object_has(s, v.object.number, store)
                         : sim_object_is_somewhere(s, v.object.number);
        if (has) see(s, j, index, s->objects[v.object.number].value);
        if (!has && s->losses == 0)
            sim_fail(s, "I16: the store has not the object of key %" PRIu32, index);
        s->losses += !has;
        if (!has) sim_object_missed(s, v.object, store);
    }
    if (is_there && v.kind == MR_SCHED_VALUE_AWAY) { /* only its worker has the value */
        struct mr_sched_event ev = {.type = MR_SCHED_WANT, .job = {j->id}, .index = index};
        sim_sched_step(s, &ev);
    }
    mr_buf_fini(&bytes);
}

/* True: the scheduler gave up a dead worker before the worker's next process could report which
 * tasks ran. So the scheduler has to guess. */
static bool is_guessing(struct sim *s)
{
    for (uint32_t i = 0; i < s->names; i++)
        if (s->proc_of[i] == NONE ? s->suspects[i].count : s->procs[s->proc_of[i]].has_suspects)
            if (!sim_sched_knows(s, i)) return true;
    return s->guesses;
}

/* True: it is no fault if the scheduler convicted this task of killing workers. Three workers must
 * have died while they ran this task. But the scheduler has to guess which tasks ran if a stream
 * broke, a worker slept or was retired, or the scheduler or a store died. The same holds if a
 * worker's next process reported too late what had run. After such an event it suffices that
 * s->losses is at least 3. */
static bool may_be_convicted(struct sim *s, const struct sim_task *t)
{
    bool is_exact = !s->count.sleeps && !s->count.disconnects && !s->count.crashes &&
                    !s->count.stores && !s->count.retired && !is_guessing(s);
    return is_exact ? t->deaths >= 3 : s->losses >= 3;
}

static bool has_alias(const struct mr_graph *g)
{
    for (uint32_t i = 0; i < g->nodes_count; i++)
        if (g->kind[i] == MR_NODE_ALIAS) return true;
    return false;
}

/* Returns whether the loss of a value may be final. A lost value is made again, unless the job has
 * a deadline or refers to keys of other jobs, or one of the value's inputs may fail or be convicted
 * of killing workers. */
static bool may_be_lost(struct sim *s, struct sim_job *j, uint32_t index)
{
    uint32_t n;
    const struct mr_graph *g = s->specs[j->spec].graph;
    const uint32_t *in = mr_graph_inputs(g, index, &n);
    bool may = g->job.deadline || has_alias(g);
    for (uint32_t i = 0; i < n; i++)
        may |= j->task[in[i]].fate != FATE_OK || may_be_convicted(s, &j->task[in[i]]);
    return may && s->losses > 0;
}

/* Returns whether the reason that a job gives for its failure can be true. */
static bool has_excuse(struct sim *s, struct sim_job *j, const struct mr_sched_error *e)
{
    const struct mr_graph *g = s->specs[j->spec].graph;
    if (e->index == MR_NODE_NONE)
        return e->code == CODE_DEADLINE ? g->job.deadline != 0 : has_alias(g);
    const struct sim_task *t = &j->task[e->index];
    if (e->code == CODE_INTERNAL) return may_be_convicted(s, t);
    if (e->code == CODE_DATA_LOSS) return may_be_lost(s, j, e->index);
    return t->own != FATE_OK;
}

/* Returns whether a target that cannot fail by itself may nevertheless have no value, because of
 * another task, a deadline or a key of another job. */
static bool may_fall(struct sim *s, struct sim_job *j)
{
    const struct mr_graph *g = s->specs[j->spec].graph;
    for (uint32_t i = 0; i < g->nodes_count; i++)
        if (may_be_convicted(s, &j->task[i])) return true;
    return g->job.deadline || has_alias(g);
}

static bool is_orphan(struct sim *s, const struct mr_sched_job_info *info)
{
    struct mr_sched_job_info parent;
    if (!info->parent.v) return false;
    return !mr_sched_job(s->sched, info->parent, &parent) || parent.state != MR_JOB_DONE;
}

static void ended(struct sim *s, struct sim_job *j, const struct mr_sched_job_info *info)
{
    const struct mr_graph *g = s->specs[j->spec].graph;
    const char *names[] = {"?", "pending", "running", "done", "failed", "cancelled"};
    if (j->final == info->state) return;
    if (j->final && !j->was_retried)
        sim_fail(s, "I9: job %" PRIx64 " was %s and is %s now", j->id, names[j->final],
            names[info->state]);
    j->final = info->state;
    sim_say(s, "job %" PRIx64 " is %s: %.*s", j->id, names[info->state],
        (int)(info->has_error ? MR_MIN(info->error.message.n, 100u) : 0), info->error.message.p);
    if (info->state == MR_JOB_DONE) {
        s->count.jobs_done++;
        for (uint32_t i = 0; i < g->targets_count; i++)
            if (j->task[g->targets[i]].fate == FATE_MUST)
                sim_fail(s, "job %" PRIx64 " is done, and must fail", j->id);
    } else if (info->state == MR_JOB_FAILED) {
        s->count.jobs_failed++;
        if (!info->has_error || !has_excuse(s, j, &info->error)) {
            sim_client_complain(s);
            sim_fail(s, "job %" PRIx64 " failed without a reason: task %" PRIu32 ", %d, %.*s",
                j->id, info->error.index, info->error.code, MR_STR_ARG(info->error.message));
        }
        bool again = s->specs[j->spec].wants_retry && !j->was_retried && !s->is_forgetting;
        if (again)
            sim_push(s, sim_below(s, MR_SECOND),
                (struct mr_virtual_event){.kind = EV_CLIENT, .a = j->spec, .b = 1, .c = s->life});
    } else {
        s->count.jobs_cancelled++;
        if (!j->was_cancelled && !is_orphan(s, info))
            sim_fail(s, "job %" PRIx64 " was cancelled by nobody", j->id);
    }
}

static void state_changed(struct sim *s, uint64_t id)
{
    struct mr_sched_job_info info;
    struct sim_job *j = sim_job_of(s, id);
    if (!j || !mr_sched_job(s->sched, (mr_job_id){id}, &info)) return;
    if (info.state >= MR_JOB_DONE)
        ended(s, j, &info);
    else if (j->final && !j->was_retried)
        sim_fail(s, "I9: job %" PRIx64 " had ended and runs again", id);
    else
        j->final = MR_JOB_NONE;
}

void sim_client_note(struct sim *s, const struct mr_sched_note *n)
{
    struct sim_job *j = sim_job_of(s, n->job.v);
    const uint32_t *ready = (const void *)s->fx.ready.p;
    if (n->type == MR_NOTE_REPLY) replied(s, n);
    if (n->type == MR_NOTE_JOB_STATE) state_changed(s, n->job.v);
    if (!j) return;
    if (n->type == MR_NOTE_TARGETS_READY)
        for (uint32_t i = 0; i < n->count; i++)
            read_value(s, j, ready[n->at + i]);
    if (n->type == MR_NOTE_TARGET_BYTES)
        see(s, j, n->index, sim_value_of_pack(mr_str_of(s->fx.text.p + n->text_at, n->text_bytes)));
    if (n->type == MR_NOTE_TARGET_FAILED && !n->code && j->task[n->index].fate == FATE_OK &&
        !may_fall(s, j))
        sim_fail(s, "key %" PRIu32 " of job %" PRIx64 " failed without a reason", n->index, j->id);
}

/* Sends the request `wish` for the job that was submitted for `spec`, unless the job's state does
 * not allow it. */
void sim_client_act_on(struct sim *s, uint32_t spec, enum sim_wish wish)
{
    static const char *const words[] = {"cancels", "retries", "forgets"};
    static const enum mr_sched_event_type types[] = {
        MR_SCHED_CANCEL, MR_SCHED_RETRY, MR_SCHED_FORGET};
    struct sim_spec *x = &s->specs[spec];
    struct sim_job *j = x->is_accepted ? sim_job_of(s, x->id) : NULL;
    if (!j || !s->sched || s->is_forgetting) return;
    if (wish == WISH_RETRY && j->final != MR_JOB_FAILED) return;
    if (wish == WISH_FORGET && !j->final) return;
    j->was_retried |= wish == WISH_RETRY;
    if (wish == WISH_RETRY) sim_guard_retried(s, j);
    /* The retried job may refer to keys of other jobs. While the job counted as failed, the
     * scheduler may rightly have released the values of these keys. */
    s->revived += wish == WISH_RETRY;
    j->was_cancelled |= wish == WISH_CANCEL;
    /* The scheduler keeps a forgotten job if another job holds its keys. */
    j->may_be_gone |= wish == WISH_FORGET;
    sim_say(s, "client %s job %" PRIx64, words[wish], j->id);
    request(s, types[wish], j->id);
}

static bool is_gone(const struct sim *s, uint64_t id)
{
    for (uint32_t i = 0; i < s->jobs_count; i++)
        if (s->jobs[i].id == id) return s->jobs[i].may_be_gone;
    return false;
}

bool sim_client_is_content(struct sim *s)
{
    struct mr_sched_job_info info;
    if (!s->sched) return false;
    for (uint32_t i = 0; i < s->specs_count; i++) {
        const struct sim_spec *x = &s->specs[i];
        if (x->is_given_up) continue;
        if (!x->is_accepted) return false;
        if (!mr_sched_job(s->sched, (mr_job_id){x->id}, &info)) {
            if (s->is_forgetting || is_gone(s, x->id)) continue;
            sim_fail(s, "I7: the accepted job %" PRIx64 " is not there any more", x->id);
        }
        if (s->is_forgetting || info.state < MR_JOB_DONE) return false;
    }
    /* Jobs whose submission was never answered must have ended, too. */
    for (uint32_t i = 0; i < s->jobs_count; i++)
        if (mr_sched_job(s->sched, (mr_job_id){s->jobs[i].id}, &info) &&
            (s->is_forgetting || info.state < MR_JOB_DONE))
            return false;
    return true;
}

static void complain_of(struct sim *s, const struct sim_job *j)
{
    const struct mr_graph *g = s->specs[j->spec].graph;
    struct mr_sched_task_info t;
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 20);
    uint32_t lines_count = 0;
    for (uint32_t i = 0; i < g->nodes_count && lines_count < 12; i++) {
        if (!mr_sched_task(s->sched, (mr_job_id){j->id}, i, &t)) continue;
        if (t.state < MR_TASK_WAITING || t.state > MR_TASK_RUNNING) continue;
        mr_buf_clear(&lines);
        (void)mr_sched_explain(s->sched, (mr_job_id){j->id}, i, &lines);
        sim_say(s,
            "job %" PRIx64 " task %" PRIu32 " state %d, attempt %" PRIu32 ", %s %" PRIu32
            ", %" PRIu32 " inputs missing, op %.*s: %.*s",
            j->id, i, t.state, t.attempt, t.is_sent ? "sent to" : "not sent", t.worker,
            t.waiting_inputs, MR_STR_ARG(mr_graph_op(g, i)), (int)MR_MIN(lines.n, 90u), lines.p);
        lines_count++;
    }
    mr_buf_fini(&lines);
}

void sim_client_complain(struct sim *s)
{
    struct mr_sched_job_info info;
    for (uint32_t i = 0; i < s->jobs_count && s->sched; i++)
        if (mr_sched_job(s->sched, (mr_job_id){s->jobs[i].id}, &info) && info.state < MR_JOB_DONE)
            complain_of(s, &s->jobs[i]);
    for (uint32_t i = 0; i < s->jobs_count && s->sched && s->is_forgetting; i++)
        if (mr_sched_job(s->sched, (mr_job_id){s->jobs[i].id}, &info))
            sim_say(s, "job %" PRIx64 " is still there, in state %d", s->jobs[i].id, info.state);
    for (uint32_t i = 0; i < s->specs_count; i++)
        if (!s->specs[i].is_accepted) sim_say(s, "job %" PRIu32 " was never accepted", i);
}

static void unreadable(struct sim *s, struct sim_job *j, uint32_t index)
{
    struct mr_sched_value v = {0};
    struct mr_sched_task_info t = {0};
    struct mr_buf bytes;
    mr_buf_init(&bytes, (size_t)1 << 20);
    (void)mr_sched_task(s->sched, (mr_job_id){j->id}, index, &t);
    (void)mr_sched_value(s->sched, (mr_job_id){j->id}, index, &bytes, &v);
    mr_buf_fini(&bytes);
    if (t.state == MR_TASK_ERRED && (j->task[index].fate || may_fall(s, j)))
        /* The value was lost, and its task failed when it ran again. */
        return;
    sim_fail(s,
        "target %" PRIu32 " of the done job %" PRIx64 " cannot be read: state %d, attempt %" PRIu32
        ", kind of value %d, object %" PRIu64 " in store %" PRIu32 ", its worker is %" PRIu32,
        index, j->id, t.state, t.attempt, v.kind, v.object.number, v.store, v.worker);
}

/* If `want`, asks for each target of the jobs that are done, else checks that each target has been
 * seen. If `anew`, the values seen before do not count, so that each value is read once more. */
void sim_client_values(struct sim *s, bool want, bool anew)
{
    for (uint32_t i = 0; i < s->jobs_count; i++) {
        struct sim_job *j = &s->jobs[i];
        const struct mr_graph *g = s->specs[j->spec].graph;
        struct mr_sched_job_info info;
        if (j->final != MR_JOB_DONE || !mr_sched_job(s->sched, (mr_job_id){j->id}, &info)) continue;
        for (uint32_t k = 0; k < g->targets_count; k++) {
            uint32_t index = g->targets[k];
            if (g->kind[index] == MR_NODE_LITERAL || g->kind[index] == MR_NODE_ALIAS) continue;
            struct sim_task *t = &j->task[index];
            struct mr_sched_event ev = {.type = MR_SCHED_WANT, .job = {j->id}, .index = index};
            if (anew && !t->is_tainted) t->has_seen = false;
            if (want) {
                sim_say(s, "client asks for %" PRIu32 " of job %" PRIx64, index, j->id);
                sim_sched_step(s, &ev);
            } else if (!t->has_seen) {
                unreadable(s, j, index);
            }
        }
    }
}

void sim_client_forget(struct sim *s)
{
    s->is_forgetting = true;
    if (!sim_client_is_content(s))
        sim_push(s, 100 * MR_MS, (struct mr_virtual_event){.kind = EV_FORGET});
    for (uint32_t i = 0; i < s->jobs_count; i++)
        request(s, MR_SCHED_FORGET, s->jobs[i].id);
}
