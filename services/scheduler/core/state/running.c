/* What runs, as far as that can be known: a worker tells of starts only where somebody has to know,
 * for each word costs more than a small task. It runs what it said it runs (in heartbeats, or when
 * it was asked to give something back), and beyond that what it was sent first, as many as it has
 * slots. What else it was sent waits there. */
#include "services/scheduler/core/task/internal.h"

#define LOOKED_MAX(w) (256 + 4 * (w)->slots) /* of a worker's tasks; what runs was sent early */

struct looked {
    uint32_t job, task; /* NONE: any */
    uint32_t count;
    struct mr_buf *out;
};

static void look(const struct mr_sched *s, uint32_t task, struct looked *l)
{
    const struct job *j = job_of(s, task);
    if (l->job != NONE && j != &s->jobs[l->job]) return;
    if (l->task != NONE && task != l->task) return;
    uint32_t index = task - j->base;
    l->count++;
    if (l->out) mr_buf_add(l->out, &index, sizeof index);
}

/* Of those that have a slot: all that started if `started`, or else the others. */
static void look_at(const struct mr_sched *s, const struct worker *w, bool started, uint32_t *slots,
    struct looked *l)
{
    uint32_t seen = 0;
    for (uint32_t i = w->sent_head; i != NONE && seen < LOOKED_MAX(w); i = s->tasks[i].next) {
        const struct task *t = &s->tasks[i];
        seen++;
        if (t->state != MR_TASK_RUNNING || t->use == USE_DONE) continue;
        if (t->flags & T_LONG) { /* it needs no slot, and starts at once */
            if (started) look(s, i, l);
            continue;
        }
        if (!*slots || started != ((t->flags & T_STARTED) != 0)) continue;
        --*slots;
        look(s, i, l);
    }
}

static void look_at_worker(const struct mr_sched *s, uint32_t slot, struct looked *l)
{
    const struct worker *w = &s->workers[slot];
    uint32_t slots = w->slots;
    if (w->state != W_CONNECTED || w->sent_head == NONE) return;
    look_at(s, w, true, &slots, l);
    if (slots) look_at(s, w, false, &slots, l);
}

uint32_t mr_sched_running(const struct mr_sched *s, mr_job_id id, struct mr_buf *out)
{
    struct looked l = {.job = mr_sc_job_find(s, id.v), .task = NONE, .out = out};
    if (l.job == NONE || !s->jobs[l.job].counts[MR_TASK_RUNNING]) return 0;
    for (uint32_t i = 0; i < s->workers_top; i++)
        look_at_worker(s, i, &l);
    return l.count;
}

bool mr_sched_is_running(const struct mr_sched *s, mr_job_id id, uint32_t index)
{
    struct looked l = {.job = NONE, .task = mr_sc_find(s, id.v, index)};
    if (l.task == NONE || s->tasks[l.task].state != MR_TASK_RUNNING) return false;
    look_at_worker(s, s->tasks[l.task].worker, &l);
    return l.count != 0;
}

static mr_time began_at(const struct worker *w, uint32_t task, uint32_t attempt)
{
    const struct worker_facts *f = w->facts;
    for (uint32_t i = 0; i < f->began_count; i++)
        if (f->began[i].task == task && f->began[i].attempt == attempt) return f->began[i].at;
    return 0;
}

void mr_sc_began(struct mr_sched *s, uint32_t worker, uint32_t task, mr_time at)
{
    struct worker_facts *f = s->workers[worker].facts;
    if (f->began_count == BEGAN_MAX) return;
    f->began[f->began_count++] = (struct began){task, s->tasks[task].attempt, at};
}

bool mr_sched_longest(const struct mr_sched *s, mr_job_id id, uint32_t *index, mr_time *since)
{
    uint32_t job = mr_sc_job_find(s, id.v);
    bool found = false;
    if (job == NONE || !s->jobs[job].counts[MR_TASK_RUNNING]) return false;
    const struct job *j = &s->jobs[job];
    for (uint32_t slot = 0; slot < s->workers_top; slot++) {
        const struct worker *w = &s->workers[slot];
        const struct worker_facts *f = w->facts;
        for (uint32_t i = 0; w->state == W_CONNECTED && i < f->began_count; i++) {
            uint32_t at = f->began[i].task - j->base;
            const struct task *t = &s->tasks[f->began[i].task];
            if (f->began[i].task < j->base || at >= j->graph->nodes_count) continue;
            if (t->state != MR_TASK_RUNNING || t->worker != slot) continue;
            if (t->attempt != f->began[i].attempt) continue;
            bool is_older = f->began[i].at < *since || (f->began[i].at == *since && at < *index);
            if (found && !is_older) continue;
            *since = f->began[i].at;
            *index = at;
            found = true;
        }
    }
    return found;
}

/* It began when its worker said so, else not before it was there and could; it ended after its
 * worker was heard last. */
void mr_sc_span_lost(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct worker *w = &s->workers[t->worker];
    mr_time began = began_at(w, task, t->attempt);
    struct mr_sched_span *p = mr_buf_extend(&s->fx->spans, sizeof *p);
    mr_assert(p);
    *p = (struct mr_sched_span){.job = {job_of(s, task)->id},
        .index = index_of(s, task),
        .attempt = t->attempt,
        .op = s->classes[t->class].op,
        .worker = t->worker,
        .outcome = MR_OUTCOME_LOST,
        .ready = t->state == MR_TASK_WAITING ? 0 : t->ready_at,
        .accounted = s->now};
    p->sent = sent_at(s, t, began);
    p->started = began ? began : MR_MAX(p->ready, p->sent);
    p->finished = MR_MAX(p->started, MR_MIN(w->last_heard, s->now));
}

/* ---- slots ------------------------------------------------------------------------------------
 */

uint64_t mr_sc_slots_us(const struct mr_sched *s)
{
    return s->slots_us + (s->now - s->slots_at) / MR_US * s->slots_connected;
}

void mr_sc_worker_is(struct mr_sched *s, struct worker *w, uint32_t state)
{
    bool was = w->state == W_CONNECTED, is = state == W_CONNECTED;
    w->state = (uint8_t)state;
    if (was == is) return;
    s->slots_us = mr_sc_slots_us(s);
    s->slots_at = s->now;
    s->slots_connected = is ? s->slots_connected + w->slots : s->slots_connected - w->slots;
}

void mr_sc_slots_begin(struct mr_sched *s, struct job *j)
{
    j->slots_mark = mr_sc_slots_us(s);
    j->ran_mark = s->now;
}

void mr_sc_slots_end(struct mr_sched *s, struct job *j)
{
    if (!j->ran_mark) return;
    j->slots_us += mr_sc_slots_us(s) - j->slots_mark;
    j->ran_us += (s->now - j->ran_mark) / MR_US;
    if (!j->slots_us) { /* it took no microsecond */
        j->slots_us = s->slots_connected;
        j->ran_us = 1;
    }
    j->ran_mark = 0;
}

uint64_t mr_sched_job_slots(const struct mr_sched *s, mr_job_id id)
{
    uint32_t job = mr_sc_job_find(s, id.v);
    if (job == NONE) return 0;
    const struct job *j = &s->jobs[job];
    uint64_t slots_us = j->slots_us, ran_us = j->ran_us;
    if (j->ran_mark) {
        slots_us += mr_sc_slots_us(s) - j->slots_mark;
        ran_us += (s->now - j->ran_mark) / MR_US;
    }
    if (!ran_us) return j->ran_mark ? (uint64_t)s->slots_connected * 1000 : 0;
    return slots_us / ran_us * 1000 + slots_us % ran_us * 1000 / ran_us;
}
