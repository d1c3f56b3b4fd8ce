/* The members of a training session: their joins, leases and reports, and their calls that wait
 * for other members. */
#include "services/trainer/core/rows.h"

#include "base/unconst.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const role_names[] = {"", "ps", "worker", "scorer"};

bool mr_trainer__is_owner(const struct session *s, const struct member *m)
{
    const struct mr_training_document *d = s->document;
    if (d->is_exec) return false;
    return m->role == (d->rule == MR_TRAINING_ALLREDUCE ? MR_TRAINING_WORKER : MR_TRAINING_PS);
}

/* True: parameters are lost with this member. While a session under all-reduce stops, all ranks
 * have the same parameters, so only the loss of rank 0 matters. */
static bool is_essential(const struct session *s, const struct member *m)
{
    if (!mr_trainer__is_owner(s, m)) return false;
    return m->role == MR_TRAINING_PS || s->state != MR_TRAINING_STOPPING || m->index == 0;
}

struct member *mr_trainer__saver(struct session *s)
{
    bool has_scorer = s->document->roles[MR_TRAINING_SCORER] > 0;
    for (uint32_t i = 0; i < s->members_count; i++)
        if (s->members[i].role == (has_scorer ? MR_TRAINING_SCORER : MR_TRAINING_WORKER))
            return &s->members[i];
    return NULL;
}

static struct member *find(struct session *s, enum mr_training_role role, uint32_t index)
{
    for (uint32_t i = 0; i < s->members_count; i++)
        if (s->members[i].role == role && s->members[i].index == index) return &s->members[i];
    return NULL;
}

struct mr_trainer_instruction mr_trainer__instruction(
    const struct session *s, const struct member *m)
{
    struct mr_trainer_instruction instruction = {
        s->durable.generation, s->durable.restore_epoch, s->durable.phase};
    struct member *saver = s->document ? mr_trainer__saver((struct session *)mr_unconst(s)) : NULL;
    if (mr_trainer__is_over(s->durable.state)) instruction.phase = MR_TRAINING_EXIT;
    if (instruction.phase == MR_TRAINING_KEEP && m != saver) instruction.phase = MR_TRAINING_HALT;
    if (!instruction.phase) instruction.phase = MR_TRAINING_RUN;
    return instruction;
}

/* ---- answers to waiting calls ---------------------------------------------------------------- */

static void answer_join(struct mr_trainer *t, struct session *s, struct member *m, bool formed)
{
    struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_JOINED);
    x->ticket = m->join.ticket;
    x->session = s->id;
    x->role = m->role;
    x->index = m->index;
    x->instruction = mr_trainer__instruction(s, m);
    bool is_durable = m->join.is_member && m->state == MR_MEMBER_HERE &&
                      m->incarnation <= s->durable.incarnations;
    x->joined.incarnation = is_durable ? m->incarnation : 0;
    x->joined.formed = formed;
    x->joined.resume_steps = m->before.steps + m->now.steps;
    x->joined.has_checkpoint = formed && s->has_restore;
    if (formed && is_durable) m->instructed = x->instruction.phase;
    m->join.ticket = 0;
}

static void answer_barrier(
    struct mr_trainer *t, struct session *s, struct member *m, int err, const char *why)
{
    uint64_t ticket = m->barrier.ticket;
    m->barrier.ticket = 0;
    if (err) {
        mr_trainer__refuse(t, MR_TX_BARRIER, ticket, err, "%s", why);
        return;
    }
    struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_BARRIER);
    x->ticket = ticket;
    x->session = s->id;
    x->instruction = mr_trainer__instruction(s, m);
}

static void grow(struct mr_trainer *t, struct session *s)
{
    s->generation++;
    s->is_dirty = true;
    for (uint32_t i = 0; i < s->members_count; i++)
        if (s->members[i].barrier.ticket)
            answer_barrier(t, s, &s->members[i], MR_EABORTED, "a member came or went meanwhile");
}

/* True: the member and all members that it needs for its work are here, and Redis has the present
 * generation. */
static bool may_enter(const struct session *s, const struct member *m)
{
    const struct mr_training_document *d = s->document;
    if (s->durable.state < MR_TRAINING_RUNNING || s->durable.generation != s->generation)
        return false;
    bool stopping = s->state == MR_TRAINING_STOPPING;
    for (uint32_t i = 0; i < s->members_count; i++) {
        const struct member *o = &s->members[i];
        if (o->state == MR_MEMBER_HERE || o == m || o->state == MR_MEMBER_FINISHED) continue;
        if (d->is_exec && !stopping) return false;
        if (o->role == MR_TRAINING_PS) return false;
        bool ring = d->rule == MR_TRAINING_ALLREDUCE && o->role == MR_TRAINING_WORKER;
        if (ring && !stopping && (m->role == MR_TRAINING_WORKER || o->index == 0)) return false;
    }
    return m->state == MR_MEMBER_HERE;
}

static void joins_turn(struct mr_trainer *t, struct session *s, struct member *m)
{
    if (!m->join.ticket) return;
    if (s->durable.phase == MR_TRAINING_EXIT || (m->join.is_member && may_enter(s, m)))
        answer_join(t, s, m, true);
    else if (m->join.until <= t->now)
        answer_join(t, s, m, false);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static void close_account(struct member *m)
{
    struct mr_training_counters *b = &m->before, *n = &m->now;
    b->steps += n->steps;
    b->examples += n->examples;
    b->epoch = MR_MAX(b->epoch, n->epoch);
    b->pull_s += n->pull_s;
    b->push_s += n->push_s;
    b->wait_s += n->wait_s;
    b->compute_s += n->compute_s;
    b->feed_s += n->feed_s;
    b->gradients_stale += n->gradients_stale;
    b->gradients_lost += n->gradients_lost;
    b->gradients_applied += n->gradients_applied;
    b->steps_lost += n->steps_lost;
    b->moved_parts += n->moved_parts;
    b->moved_bytes += n->moved_bytes;
    b->loss = n->steps ? n->loss : b->loss;
    b->accuracy = n->steps ? n->accuracy : b->accuracy;
    *n = (struct mr_training_counters){0};
}

static void count_loss(struct mr_trainer *t, struct session *s, struct member *m, const char *why)
{
    bool progress =
        s->has_version ? s->version_best > m->best_at_loss : t->now - m->joined > 60 * MR_SECOND;
    m->losses = progress ? 1 : m->losses + 1;
    m->best_at_loss = s->version_best;
    if (m->losses < MR_TRAINING_LOSSES_MAX) return;
    mr_trainer__fail(t, s,
        "%s %u was lost %u times without a new version of the parameters, the last time "
        "because it %s",
        role_names[m->role], m->index, m->losses, why);
}

/* Returns the session to a checkpoint after the loss of `m`. While the session stops, no training
 * follows that could make up for lost steps. So without a checkpoint the session fails. */
static void restore(struct mr_trainer *t, struct session *s, struct member *m, const char *why)
{
    uint64_t lost = s->steps_lost;
    mr_trainer__restore(t, s);
    if (s->state == MR_TRAINING_STOPPING && !s->has_restore && s->steps_lost > lost)
        mr_trainer__fail(t, s,
            "%s %u %s while the session stopped, and its parameters are lost: there is no "
            "checkpoint",
            role_names[m->role], m->index, why);
}

static void lose(struct mr_trainer *t, struct session *s, struct member *m, const char *why)
{
    mr_assert(m->state == MR_MEMBER_HERE);
    bool matters = is_essential(s, m);
    close_account(m);
    m->restored = m->exhausted = m->halted = false;
    if (s->phase == MR_TRAINING_EXIT) {
        m->state = MR_MEMBER_FINISHED; /* in the phase EXIT no other member needs this member */
        return;
    }
    m->state = MR_MEMBER_LOST;
    grow(t, s);
    if (s->state == MR_TRAINING_FORMING) return;
    if (matters) restore(t, s, m, why);
    if (s->state == MR_TRAINING_RUNNING) mr_trainer__enter(t, s, MR_TRAINING_RECOVERING);
    count_loss(t, s, m, why);
}

void mr_trainer__members_release(struct mr_trainer *t, struct session *s)
{
    for (uint32_t i = 0; i < s->members_count; i++) {
        struct member *m = &s->members[i];
        if (m->barrier.ticket)
            answer_barrier(t, s, m, MR_EABORTED, "the session has ended meanwhile");
        if (m->join.ticket) answer_join(t, s, m, false);
        if (m->rows.ticket) mr_trainer__rows_answer(t, s, m);
    }
}

void mr_trainer__members_turn(struct mr_trainer *t, struct session *s)
{
    for (uint32_t i = 0; i < s->members_count && !mr_trainer__is_over(s->state); i++) {
        struct member *m = &s->members[i];
        if (m->state == MR_MEMBER_HERE && mr_time_after(m->heard, s->document->lease) <= t->now)
            lose(t, s, m, "was silent");
        if (m->barrier.ticket && m->barrier.until <= t->now)
            answer_barrier(t, s, m, MR_ETIMEOUT, "not all parties came in time");
    }
    for (uint32_t i = 0; i < s->members_count; i++) {
        joins_turn(t, s, &s->members[i]);
        mr_trainer__rows_turn(t, s, &s->members[i]);
    }
}

mr_time mr_trainer__members_next(const struct session *s)
{
    mr_time next = MR_NEVER;
    if (mr_trainer__is_over(s->state)) return next;
    for (uint32_t i = 0; i < s->members_count; i++) {
        const struct member *m = &s->members[i];
        if (m->state == MR_MEMBER_HERE)
            next = MR_MIN(next, mr_time_after(m->heard, s->document->lease));
        if (m->barrier.ticket) next = MR_MIN(next, m->barrier.until);
        if (m->join.ticket) next = MR_MIN(next, m->join.until);
        if (m->rows.ticket) next = MR_MIN(next, m->rows.until);
    }
    return next;
}

void mr_trainer__members_ask_again(struct mr_trainer *t, struct session *s)
{
    for (uint32_t i = 0; i < s->members_count; i++)
        if (s->members[i].join.ticket) answer_join(t, s, &s->members[i], false);
}

void mr_trainer__members_gone(struct session *s, uint64_t ticket)
{
    for (uint32_t i = 0; i < s->members_count; i++) {
        if (s->members[i].join.ticket == ticket) s->members[i].join.ticket = 0;
        if (s->members[i].barrier.ticket == ticket) s->members[i].barrier.ticket = 0;
        if (s->members[i].rows.ticket == ticket) s->members[i].rows.ticket = 0;
    }
}

/* ---- join ------------------------------------------------------------------------------------ */

/* Returns the attempt, which is behind the last slash of a task. `*stem` becomes the text up to
 * that slash. */
static uint64_t attempt_of(struct mr_str task, struct mr_str *stem)
{
    size_t at = task.n;
    while (at && task.p[at - 1] != '/')
        at--;
    *stem = mr_str_of(task.p, at);
    uint64_t n = 0;
    for (size_t i = at; i < task.n && task.p[i] >= '0' && task.p[i] <= '9' && n < UINT32_MAX; i++)
        n = n * 10 + (uint64_t)(task.p[i] - '0');
    return n;
}

/* True: the task belongs to the job that runs the session's roles. If Redis loses its data, a new
 * session may get the id of an old session whose roles still run. */
static bool is_of_job(const struct session *s, struct mr_str task)
{
    mr_job_id job = {0};
    size_t n = 0;
    while (n < task.n && task.p[n] != '/')
        n++;
    return n < task.n && !mr_job_id_parse(mr_str_of(task.p, n), &job) &&
           job.v == s->job[JOB_ROLES].id.v;
}

static bool is_superseded(const struct member *m, struct mr_str task)
{
    struct mr_str stem, mine;
    uint64_t attempt = attempt_of(task, &stem);
    uint64_t current = attempt_of(mr_str_of(m->task, m->task_bytes), &mine);
    return mr_str_eq(stem, mine) && attempt < current;
}

static void take_place(
    struct mr_trainer *t, struct session *s, struct member *m, const struct mr_training_join *j)
{
    m->state = MR_MEMBER_HERE;
    m->incarnation = ++s->incarnations;
    m->joined = t->now;
    m->version = 0;
    m->restored = m->exhausted = m->halted = false;
    m->instructed = 0;
    m->checkpoint = (mr_object_id){0};
    m->task_bytes = mr_trainer__copy(m->task, sizeof m->task, j->task);
    grow(t, s);
}

/* Returns the member that a call is about; NULL: the call was refused. */
struct member *mr_trainer__member_of(struct mr_trainer *t, const struct mr_trainer_event *ev,
    enum mr_trainer_effect_type answer, struct session **sp)
{
    struct session *s = mr_trainer__find(t, ev->session);
    if (!s || s->is_forgotten) {
        mr_trainer__refuse(t, answer, ev->ticket, MR_ENOENT, "there is no such session");
        return NULL;
    }
    *sp = s;
    struct member *m = find(s, ev->role, ev->index);
    if (m) return m;
    bool is_role = ev->role >= MR_TRAINING_PS && ev->role <= MR_TRAINING_SCORER;
    mr_trainer__refuse(t, answer, ev->ticket, MR_EINVAL, "the session has no %s %u",
        is_role ? role_names[ev->role] : "role", ev->index);
    return NULL;
}

static bool is_refused(struct mr_trainer *t, const struct session *s, const struct member *m,
    const struct mr_trainer_event *ev)
{
    struct mr_str came = ev->join.task;
    mr_job_id job = s->job[JOB_ROLES].id;
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(job, id);
    bool is_strange = job.v && !is_of_job(s, came);
    if (s->state == MR_TRAINING_PREPARING)
        mr_trainer__refuse(
            t, MR_TX_JOINED, ev->ticket, MR_ESTATE, "the session's data is not ready yet");
    else if (is_strange)
        mr_trainer__refuse(t, MR_TX_JOINED, ev->ticket, MR_ESTATE,
            "%s %u: task \"%.*s\" is of another life: the session's roles are tasks of job %s",
            role_names[m->role], m->index, (int)MR_MIN(came.n, MR_TRAINING_TASK_BYTES_MAX), came.p,
            id);
    else if (is_superseded(m, came))
        mr_trainer__refuse(t, MR_TX_JOINED, ev->ticket, MR_ESTATE,
            "%s %u: task %.*s was replaced by %.*s", role_names[m->role], m->index,
            MR_STR_ARG(came), (int)m->task_bytes, m->task);
    else
        return false;
    return true;
}

void mr_trainer__join(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct session *s = NULL;
    const struct mr_training_join *j = &ev->join;
    struct member *m = mr_trainer__member_of(t, ev, MR_TX_JOINED, &s);
    if (!m) return;
    struct mr_str task = mr_str_of(m->task, m->task_bytes);
    if (is_refused(t, s, m, ev)) return;
    if (m->join.ticket) answer_join(t, s, m, false);
    m->join.ticket = ev->ticket;
    m->join.until = mr_time_after(t->now, ev->wait);
    bool same = mr_str_eq(task, j->task);
    m->join.is_member = same;
    if (mr_trainer__is_over(s->state)) {
        answer_join(t, s, m, mr_trainer__is_over(s->durable.state));
        return;
    }
    if (s->phase == MR_TRAINING_EXIT) return; /* the Join waits, and joins_turn answers it */
    /* The role runs, but the answer to Submit has not come yet. The Join waits. At the end of its
     * wait, joins_turn answers that the role has to call Join again. */
    if (!s->job[JOB_ROLES].id.v) return;
    m->join.is_member = true;
    if (m->state == MR_MEMBER_HERE && !same) lose(t, s, m, "was replaced");
    m->heard = t->now;
    if (mr_trainer__is_over(s->state)) return;
    m->address_bytes = mr_trainer__copy(m->address, sizeof m->address, j->address);
    m->node_bytes = mr_trainer__copy(m->node, sizeof m->node, j->node);
    m->socket_bytes = mr_trainer__copy(m->socket, sizeof m->socket, j->socket);
    /* a foreign program that has finished may start again, too */
    if (m->state != MR_MEMBER_HERE) take_place(t, s, m, j);
}

/* ---- barrier --------------------------------------------------------------------------------- */

bool mr_trainer__is_in_force(const struct member *m, uint64_t incarnation)
{
    return (m->state == MR_MEMBER_HERE || m->state == MR_MEMBER_FINISHED) && incarnation &&
           m->incarnation == incarnation;
}

static struct mr_str barrier_name(const struct member *m)
{
    return mr_str_of(m->barrier.name, m->barrier.name_bytes);
}

void mr_trainer__barrier(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct session *s = NULL;
    struct member *m = mr_trainer__member_of(t, ev, MR_TX_BARRIER, &s);
    if (!m) return;
    if (!mr_trainer__is_in_force(m, ev->incarnation) || mr_trainer__is_over(s->state)) {
        mr_trainer__refuse(t, MR_TX_BARRIER, ev->ticket, MR_ESTATE, "this incarnation is revoked");
        return;
    }
    if (!ev->text.n || ev->text.n > sizeof m->barrier.name || !ev->parties) {
        mr_trainer__refuse(t, MR_TX_BARRIER, ev->ticket, MR_EINVAL,
            "name: expected 1 to %d bytes; parties: at least 1", MR_TRAINING_BARRIER_BYTES_MAX);
        return;
    }
    if (m->barrier.ticket) answer_barrier(t, s, m, MR_EABORTED, "the same role called again");
    uint32_t here = 1;
    for (uint32_t i = 0; i < s->members_count; i++) {
        const struct member *o = &s->members[i];
        if (!o->barrier.ticket || !mr_str_eq(barrier_name(o), ev->text)) continue;
        here++;
        if (o->barrier.parties == ev->parties) continue;
        mr_trainer__refuse(t, MR_TX_BARRIER, ev->ticket, MR_EINVAL,
            "parties: %s %u said %u of barrier \"%.*s\"", role_names[o->role], o->index,
            o->barrier.parties, MR_STR_ARG(ev->text));
        return;
    }
    m->barrier.ticket = ev->ticket;
    m->barrier.until = mr_time_after(t->now, ev->wait);
    m->barrier.parties = ev->parties;
    m->barrier.name_bytes = mr_trainer__copy(m->barrier.name, sizeof m->barrier.name, ev->text);
    for (uint32_t i = 0; i < s->members_count && here >= ev->parties; i++) {
        struct member *o = &s->members[i];
        if (o->barrier.ticket && mr_str_eq(barrier_name(o), ev->text))
            answer_barrier(t, s, o, MR_OK, NULL);
    }
}

/* ---- report ---------------------------------------------------------------------------------- */

/* Takes over counters from a report. Reports may arrive out of order, so totals never decrease. */
static void account(struct mr_training_counters *to, const struct mr_training_counters *c)
{
    if (c->steps >= to->steps) {
        to->loss = c->loss;
        to->accuracy = c->accuracy;
    }
    to->steps = MR_MAX(to->steps, c->steps);
    to->examples = MR_MAX(to->examples, c->examples);
    to->epoch = MR_MAX(to->epoch, c->epoch);
    to->pull_s = MR_MAX(to->pull_s, c->pull_s);
    to->push_s = MR_MAX(to->push_s, c->push_s);
    to->wait_s = MR_MAX(to->wait_s, c->wait_s);
    to->compute_s = MR_MAX(to->compute_s, c->compute_s);
    to->feed_s = MR_MAX(to->feed_s, c->feed_s);
    to->gradients_stale = MR_MAX(to->gradients_stale, c->gradients_stale);
    to->gradients_lost = MR_MAX(to->gradients_lost, c->gradients_lost);
    to->gradients_applied = MR_MAX(to->gradients_applied, c->gradients_applied);
    to->steps_lost = MR_MAX(to->steps_lost, c->steps_lost);
    to->moved_parts = MR_MAX(to->moved_parts, c->moved_parts);
    to->moved_bytes = MR_MAX(to->moved_bytes, c->moved_bytes);
}

static void take_version(struct session *s, struct member *m, const struct mr_training_report *r)
{
    if (!mr_trainer__is_owner(s, m) || r->restore_epoch != s->restore_epoch) return;
    m->restored = true;
    m->version = MR_MAX(m->version, r->version);
    s->has_version = true;
    s->version_seen = MR_MAX(s->version_seen, m->version);
    s->version_best = MR_MAX(s->version_best, m->version);
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < s->members_count; i++) {
        const struct member *o = &s->members[i];
        if (!mr_trainer__is_owner(s, o)) continue;
        least = MR_MIN(least, o->restored ? o->version : s->version);
    }
    s->version = MR_MAX(s->version, least);
}

static void take_kept(
    struct mr_trainer *t, struct session *s, struct member *m, const struct mr_training_report *r)
{
    if (s->phase != MR_TRAINING_KEEP || m != mr_trainer__saver(s) ||
        m->instructed != MR_TRAINING_KEEP)
        return;
    if (!r->finished || mr_object_id_is_none(r->model_object)) return;
    s->model = r->model_object;
    if (r->score_json.n && r->score_json.n <= sizeof s->score)
        s->score_bytes = mr_trainer__copy(s->score, sizeof s->score, r->score_json);
    s->phase = MR_TRAINING_EXIT;
    s->is_dirty = true;
    (void)t;
}

static void take_finished(struct session *s, struct member *m, const struct mr_training_report *r)
{
    if (!r->finished) return;
    if (m->instructed >= MR_TRAINING_HALT) m->halted = true;
    bool ends = m->instructed == MR_TRAINING_EXIT || s->document->is_exec;
    if (!ends || m->state == MR_MEMBER_FINISHED) return;
    m->state = MR_MEMBER_FINISHED;
    s->is_dirty = true;
}

static void sample(struct mr_trainer *t, struct session *s)
{
    uint32_t n = s->samples_count;
    if (n && t->now - s->samples[n - 1].at < 500 * MR_MS) return;
    uint64_t examples = 0;
    for (uint32_t i = 0; i < s->members_count; i++)
        if (s->members[i].role == MR_TRAINING_WORKER)
            examples += s->members[i].before.examples + s->members[i].now.examples;
    /* The sample is dropped: without a new step it would show a speed of 0 between two long
     * steps. */
    if (n && examples == s->samples[n - 1].examples) return;
    if (n == SAMPLES_MAX) memmove(s->samples, s->samples + 1, (--n) * sizeof s->samples[0]);
    s->samples[n].at = t->now;
    s->samples[n].examples = examples;
    s->samples_count = n + 1;
}

void mr_trainer__report(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct session *s = NULL;
    const struct mr_training_report *r = &ev->report;
    struct member *m = mr_trainer__member_of(t, ev, MR_TX_REPORTED, &s);
    if (!m) return;
    bool in_force = mr_trainer__is_in_force(m, ev->incarnation);
    if (!in_force && !mr_trainer__is_over(s->durable.state)) {
        mr_trainer__refuse(t, MR_TX_REPORTED, ev->ticket, MR_ESTATE,
            "%s %u: incarnation %llu is revoked: another attempt replaced it, or it sent no report "
            "for too long",
            role_names[m->role], m->index, (unsigned long long)ev->incarnation);
        return;
    }
    if (in_force && !mr_trainer__is_over(s->state)) {
        m->heard = t->now;
        account(&m->now, &r->counters);
        m->exhausted |= r->exhausted;
        take_version(s, m, r);
        mr_trainer__checkpoint_reported(t, s, m, r);
        take_kept(t, s, m, r);
        take_finished(s, m, r);
        sample(t, s);
        s->has_progress = true;
        if (r->failure.n && s->phase != MR_TRAINING_EXIT)
            mr_trainer__fail(
                t, s, "%s %u: %.*s", role_names[m->role], m->index, MR_STR_ARG(r->failure));
    }
    struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_REPORTED);
    x->ticket = ev->ticket;
    x->session = s->id;
    x->role = m->role;
    x->index = m->index;
    x->instruction = mr_trainer__instruction(s, m);
    if (in_force) m->instructed = x->instruction.phase;
}
