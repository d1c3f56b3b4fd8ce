/* The core's side of the journal, a write-ahead log of acknowledged facts. Each record leaves with
 * a sequence number. What the record says is announced to clients only when Redis has acknowledged
 * the record. The values that a job gets in one turn (pass of the shell's loop) form one record. */
#include "services/scheduler/core/task/journal.h"

#include "base/assert.h"
#include "graph/bytes/bytes.h"
#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/record.h"

#include <string.h>

#define CHUNK MR_CHUNK_BYTES

static uint64_t emit_head(
    struct mr_sched *s, struct mr_sched_record_head *h, struct mr_str a, struct mr_str b)
{
    if (s->replay.is_active) return s->journal.sequence;
    uint64_t pad = 0;
    struct mr_buf *out = &s->fx->journal;
    h->sequence = ++s->journal.sequence;
    h->bytes = (uint32_t)(a.n + b.n);
    mr_buf_add(out, h, sizeof *h);
    mr_buf_add_str(out, a);
    mr_buf_add_str(out, b);
    mr_buf_add(out, &pad, (size_t)(mr_align_up(h->bytes, 8) - h->bytes));
    s->journal.written_bytes += sizeof *h + h->bytes + h->piece_bytes;
    return h->sequence;
}

static uint64_t emit(
    struct mr_sched *s, enum mr_sched_record type, struct mr_str a, struct mr_str b)
{
    struct mr_sched_record_head h = {.type = type};
    return emit_head(s, &h, a, b);
}

static uint64_t emit_payload(struct mr_sched *s, enum mr_sched_record type)
{
    uint64_t sequence = emit(s, type, mr_buf_str(&s->journal.payload), (struct mr_str){0});
    mr_buf_clear(&s->journal.payload);
    return sequence;
}

void mr_sched__promise(struct mr_sched *s, const struct pending *p)
{
    mr_assert(s->journal.pending_end - s->journal.pending_at < s->config.tasks_max);
    struct pending *to = &s->journal.pending[s->journal.pending_end++ % s->config.tasks_max];
    *to = *p;
    to->bytes = s->journal.written_bytes;
    if (p->sequence <= s->journal.acked)
        /* Redis has acknowledged the record already, so its content is announced at the end of the
         * turn */
        s->has_work = true;
}

static void emit_graph(struct mr_sched *s, uint64_t id, struct mr_str bytes, uint64_t total)
{
    for (uint64_t at = 0; at < total; at += CHUNK) {
        uint64_t head[2] = {id, at};
        size_t n = (size_t)MR_MIN((uint64_t)CHUNK, total - at);
        struct mr_sched_record_head h = {.type = MR_RECORD_GRAPH};
        struct mr_str piece = {0};
        if (bytes.n) {
            piece = mr_str_of(bytes.p + at, n);
        } else {
            h.piece = (uint32_t)(at / CHUNK) + 1;
            h.piece_bytes = (uint32_t)n;
        }
        (void)emit_head(s, &h, mr_str_of(head, sizeof head), piece);
    }
}

void mr_sched__journal_job(struct mr_sched *s, uint32_t job, const struct mr_sched_submit *sub)
{
    const struct job *j = &s->jobs[job];
    struct mr_str bytes = sub->graph_bytes;
    struct mr_buf made;
    mr_buf_init(&made, MR_JOB_BODY_BYTES_MAX * 4);
    if (!bytes.n && !sub->piece_bytes) {
        int err = mr_graph_to_bytes(j->graph, &made, NULL);
        /* cannot fail: the limits of a submitted job keep its graph smaller than the buffer */
        mr_assert(!err);
        bytes = mr_buf_str(&made);
    }
    uint64_t total = bytes.n + sub->piece_bytes;
    emit_graph(s, j->id, bytes, total);
    mr_sched__record_job(j, sub->resolved, sub->resolved_count, total, &s->journal.payload);
    (void)emit_payload(s, MR_RECORD_ACCEPTED);
    mr_buf_fini(&made);
}

void mr_sched__journal_state(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    mr_sched__journal_flush(s); /* the record of values comes before the record of the job's end */
    mr_sched__record_state(s, j, &s->journal.payload);
    j->event_sequence = emit_payload(s, MR_RECORD_JOB_STATE);
    struct pending p = {
        .type = P_STATE, .sequence = j->event_sequence, .job = j->id, .state = j->state};
    mr_sched__promise(s, &p);
}

void mr_sched__journal_erred(struct mr_sched *s, uint32_t task, const struct failure *st)
{
    mr_sched__record_erred(s, task, st, &s->journal.payload);
    (void)emit_payload(s, MR_RECORD_ERRED);
}

void mr_sched__journal_loop(struct mr_sched *s, uint32_t job, uint32_t loop)
{
    mr_sched__record_loop(&s->jobs[job], loop, &s->journal.payload);
    (void)emit_payload(s, MR_RECORD_LOOP);
}

void mr_sched__journal_forgotten(struct mr_sched *s, uint64_t id)
{
    uint64_t row[2] = {id, mr_sched__wall(s)};
    (void)emit(s, MR_RECORD_FORGOTTEN, mr_str_of(row, sizeof row), (struct mr_str){0});
    s->job_list.forgotten[s->job_list.forgotten_count++ % FORGOTTEN_MAX] =
        (struct forgotten){row[0], row[1]};
}

void mr_sched__journal_epoch(struct mr_sched *s)
{
    (void)emit(s, MR_RECORD_EPOCH, mr_str_of(&s->config.incarnation, sizeof s->config.incarnation),
        mr_str_of(&s->config.epoch, sizeof s->config.epoch));
}

void mr_sched__journal_store(struct mr_sched *s, uint32_t store)
{
    const struct store *st = &s->stores[store];
    uint32_t n = (uint32_t)strlen(st->node);
    mr_buf_add(&s->journal.payload, &st->incarnation, sizeof st->incarnation);
    mr_buf_add(&s->journal.payload, &n, sizeof n);
    mr_buf_add(&s->journal.payload, st->node, n);
    (void)emit_payload(s, MR_RECORD_STORE);
}

uint64_t mr_sched__journal_worker(struct mr_sched *s, uint32_t slot, bool is_lost)
{
    const struct worker *w = &s->workers[slot];
    uint32_t n = (uint32_t)strlen(w->facts->name);
    mr_buf_add(&s->journal.payload, &w->incarnation, sizeof w->incarnation);
    if (!is_lost) {
        mr_buf_add(&s->journal.payload, &n, sizeof n);
        mr_buf_add(&s->journal.payload, w->facts->name, n);
    }
    uint64_t sequence = emit_payload(s, is_lost ? MR_RECORD_WORKER_LOST : MR_RECORD_WORKER);
    if (is_lost) return sequence;
    struct pending p = {
        .type = P_WORKER, .sequence = sequence, .slot = slot, .incarnation = w->incarnation};
    mr_sched__promise(s, &p);
    return sequence;
}

void mr_sched__journal_flush(struct mr_sched *s)
{
    if (!s->journal.open.n) return;
    uint64_t sequence = emit(s, MR_RECORD_VALUES,
        mr_str_of(&s->journal.open_job, sizeof s->journal.open_job), mr_buf_str(&s->journal.open));
    struct pending p = {.type = P_VALUES,
        .sequence = sequence,
        .job = s->journal.open_job,
        .count = s->journal.open_count};
    mr_sched__promise(s, &p);
    mr_buf_clear(&s->journal.open);
    s->journal.open_count = 0;
}

void mr_sched__journal_part(struct mr_sched *s, uint32_t task)
{
    uint64_t id = job_of(s, task)->id;
    if (s->journal.open_job != id || s->journal.open.n > CHUNK) mr_sched__journal_flush(s);
    s->journal.open_job = id;
    mr_sched__record_value(s, task, &s->journal.open);
}

/* Writes into the open record, each once, the values that the value of `task` refers to, directly
 * or through other values. Without these values the value of `task` cannot be read. */
void mr_sched__journal_parts(struct mr_sched *s, uint32_t task)
{
    uint32_t bottom = s->stack_count;
    const struct job *j = job_of(s, task);
    s->stack[s->stack_count++] = task;
    for (uint32_t i = bottom; i < s->stack_count; i++) {
        uint32_t at = s->stack[i], n;
        if (!s->tasks[at].refs) continue;
        const uint32_t *in = mr_graph_inputs(j->graph, at - j->base, &n);
        for (uint32_t k = 0; k < n; k++) {
            struct task *u = &s->tasks[j->base + in[k]];
            if (u->is_marked || u->flags & T_FIXED || !mr_sched__is_object(s, j->base + in[k]))
                continue;
            u->is_marked = true;
            s->stack[s->stack_count++] = j->base + in[k];
        }
    }
    while (s->stack_count > bottom + 1) {
        uint32_t part = s->stack[--s->stack_count];
        s->tasks[part].is_marked = false;
        mr_sched__journal_part(s, part);
    }
    s->stack_count = bottom;
}

void mr_sched__journal_value(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    if (t->refs) mr_sched__journal_parts(s, task);
    mr_sched__journal_part(s, task);
    s->journal.open_count++;
    t->flags |= T_UNACKED;
    mr_assert(s->journal.unacked_end - s->journal.unacked_at < s->config.tasks_max);
    s->journal.unacked[s->journal.unacked_end++ % s->config.tasks_max] = index_of(s, task);
}

void mr_sched__note_ready(struct mr_sched *s, uint32_t task)
{
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_TARGETS_READY);
    uint32_t index = index_of(s, task);
    n->job = (mr_job_id){job_of(s, task)->id};
    n->at = (uint32_t)(s->fx->ready.n / sizeof index);
    n->count = 1;
    mr_buf_add(&s->fx->ready, &index, sizeof index);
}

static void values_acked(struct mr_sched *s, const struct pending *p)
{
    uint32_t slot = mr_sched__job_find(s, p->job), count = 0;
    uint32_t at = (uint32_t)(s->fx->ready.n / sizeof(uint32_t));
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = s->journal.unacked[s->journal.unacked_at++ % s->config.tasks_max];
        if (slot == NONE) continue; /* the job has been forgotten since */
        struct job *j = &s->jobs[slot];
        struct task *t = &s->tasks[j->base + index];
        t->flags = (uint16_t)(t->flags & ~T_UNACKED);
        if (!(t->flags & T_TARGET)) continue;
        mr_buf_add(&s->fx->ready, &index, sizeof index);
        count++;
    }
    if (!count) return;
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_TARGETS_READY);
    n->job = (mr_job_id){p->job};
    n->at = at;
    n->count = count;
}

static void accepted(struct mr_sched *s, const struct pending *p)
{
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_REPLY);
    n->ticket = p->ticket;
    n->job = (mr_job_id){p->job};
    n->existed = p->state;
    uint32_t job = mr_sched__job_find(s, p->job);
    if (job == NONE) return;
    s->jobs[job].flags |= J_ACCEPTED;
    if (s->jobs[job].announced) return;
    s->jobs[job].announced = MR_JOB_PENDING;
    n->index = MR_JOB_PENDING;
}

static void state_acked(struct mr_sched *s, const struct pending *p)
{
    uint32_t job = mr_sched__job_find(s, p->job);
    if (job == NONE) return;
    s->jobs[job].announced = (uint8_t)p->state;
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_JOB_STATE);
    n->job = (mr_job_id){p->job};
    n->index = p->state;
    n->sequence = p->sequence;
}

static void worker_acked(struct mr_sched *s, const struct pending *p)
{
    struct worker *w = &s->workers[p->slot];
    if (w->state == W_FREE || w->incarnation != p->incarnation) return;
    w->is_known = true;
    mr_sched__load_changed(s, p->slot, false);
    s->has_work = true;
}

/* Makes the announcements whose records Redis has acknowledged. */
void mr_sched__journal_tell(struct mr_sched *s)
{
    while (s->journal.pending_at < s->journal.pending_end) {
        struct pending p = s->journal.pending[s->journal.pending_at % s->config.tasks_max];
        if (p.sequence > s->journal.acked) break;
        s->journal.pending_at++;
        s->journal.acked_bytes = p.bytes;
        switch ((enum pending_type)p.type) {
        case P_ACCEPT: accepted(s, &p); break;
        case P_VALUES: values_acked(s, &p); break;
        case P_STATE: state_acked(s, &p); break;
        case P_WORKER: worker_acked(s, &p); break;
        case P_REPLY: mr_sched__reply(s, p.ticket, (mr_job_id){p.job}, MR_OK, NULL); break;
        }
    }
    if (s->journal.acked == s->journal.sequence) s->journal.acked_bytes = s->journal.written_bytes;
    /* An empty ring restarts at 0. Else it would, in time, touch all pages of its address space. */
    if (s->journal.pending_at == s->journal.pending_end)
        s->journal.pending_at = s->journal.pending_end = 0;
    if (s->journal.unacked_at == s->journal.unacked_end)
        s->journal.unacked_at = s->journal.unacked_end = 0;
}

void mr_sched__journal_acked(struct mr_sched *s, uint64_t sequence)
{
    s->journal.acked = MR_MAX(s->journal.acked, MR_MIN(sequence, s->journal.sequence));
    mr_sched__journal_tell(s);
    s->has_work = true;
}
