/* Performs and checks the effects of the trainer's core: answers to calls, records for Redis, jobs
 * for the scheduler. */
#include "tests/sim/trainer/trainer.h"

void ts_later(struct mr_trainer_event ev, mr_duration most)
{
    MUST(w.later_count < MR_ARRAY_LEN(w.later));
    w.later[w.later_count] = ev;
    w.later_at[w.later_count++] = w.now + TICK + below(most);
}

static void check_told(struct plan *p, const struct mr_trainer_instruction *instruction)
{
    uint32_t rank = instruction->phase == MR_TRAINING_RUN    ? 1
                    : instruction->phase == MR_TRAINING_EXIT ? 3
                                                             : 2;
    MUST(instruction->generation >= p->generation);
    MUST(instruction->restore_epoch >= p->restore_epoch);
    MUST(rank >= p->rank);
    p->generation = instruction->generation;
    p->restore_epoch = instruction->restore_epoch;
    p->rank = rank;
}

static void check_restore(struct plan *p)
{
    struct mr_training_info info;
    uint32_t epoch = 0;
    MUST(!mr_trainer_info(w.core, p->id, &info));
    if (!info.restore.objects_count) return;
    MUST(info.restore.objects_count == p->shards);
    for (uint32_t k = 0; k < p->shards; k++) {
        bool found = false;
        for (uint32_t i = 0; i < w.cuts_count; i++) {
            const struct cut *c = &w.cuts[i];
            if (!mr_object_id_eq(c->object, info.restore.objects[k])) continue;
            found = true;
            MUST(&w.plans[c->session] == p && c->shard == k);
            MUST(c->version == info.restore.version);
            MUST(!c->erased);
            MUST(!k || c->restore_epoch == epoch);
            epoch = c->restore_epoch;
        }
        MUST(found);
    }
}

static void joined(struct proc *r, const struct mr_trainer_effect *x)
{
    struct plan *p = &w.plans[r->session];
    r->ticket = 0;
    r->next = w.now + TICK;
    if (x->err) {
        r->alive = x->err == MR_EAWAY || x->err == MR_EABORTED;
        return;
    }
    check_told(p, &x->instruction);
    if (x->joined.incarnation) {
        MUST(x->joined.incarnation < MR_ARRAY_LEN(p->told_to));
        uint64_t *who = &p->told_to[x->joined.incarnation], me = (uint64_t)(r - w.procs) + 1;
        MUST(!*who || *who == me);
        *who = me;
        p->latest[r->member] = MR_MAX(p->latest[r->member], x->joined.incarnation);
    }
    if (!x->joined.formed) return;
    if (!x->joined.incarnation) {
        MUST(x->instruction.phase == MR_TRAINING_EXIT);
        r->alive = false;
        return;
    }
    if (x->joined.has_checkpoint) check_restore(p);
    if (r->incarnation != x->joined.incarnation ||
        r->restore_epoch != x->instruction.restore_epoch) {
        struct mr_training_info info;
        MUST(!mr_trainer_info(w.core, p->id, &info));
        r->version = info.restore.objects_count ? info.restore.version : 0;
        r->cut = (mr_object_id){0};
    }
    struct mr_trainer_event place = {0};
    ts_role_of(p, r->member, &place);
    bool anew = r->incarnation != x->joined.incarnation;
    if (anew && ts_is_owner(p, &place) && !p->is_exec && x->instruction.phase == MR_TRAINING_RUN)
        /* The new incarnation does not have the parameters of the incarnation before it. So the
         * session must have been restored in between. */
        MUST(x->instruction.restore_epoch > p->worked_in[r->member]);
    p->worked_in[r->member] = x->instruction.restore_epoch;
    if (anew) r->steps = 0;
    r->joined = true;
    r->incarnation = x->joined.incarnation;
    r->generation = x->instruction.generation;
    r->restore_epoch = x->instruction.restore_epoch;
    r->phase = x->instruction.phase;
}

static void reported(struct proc *r, const struct mr_trainer_effect *x)
{
    r->ticket = 0;
    if (x->err) {
        MUST(x->err == MR_ESTATE || x->err == MR_ENOENT);
        if (chance(4) && !w.calm)
            r->joined = false; /* the same process joins again */
        else
            r->alive = false;
        return;
    }
    struct plan *p = &w.plans[r->session];
    MUST(r->incarnation >= p->latest[r->member] || x->instruction.phase == MR_TRAINING_EXIT);
    check_told(p, &x->instruction);
    MUST(x->instruction.phase >= r->phase || x->instruction.phase == MR_TRAINING_HALT);
    if (x->instruction.generation != r->generation) r->joined = false;
    r->phase = x->instruction.phase;
}

static void answered(const struct mr_trainer_effect *x)
{
    MUST(x->ticket && x->ticket <= w.tickets_count);
    struct ticket *k = &w.tickets[x->ticket];
    MUST(!k->answered && !k->dropped);
    k->answered = true;
    struct proc *r = &w.procs[k->proc];
    bool mine = (k->kind == K_JOIN || k->kind == K_REPORT) && r->ticket == x->ticket;
    if (k->kind == K_START) {
        struct plan *p = &w.plans[k->session];
        if (!x->err) p->accepted = true;
        if (!x->err) MUST(!p->id.v || p->id.v == x->session.v);
        if (!x->err) p->id = x->session;
    }
    if (mine && k->kind == K_JOIN) joined(r, x);
    if (mine && k->kind == K_REPORT) reported(r, x);
}

static void write_record(const struct mr_trainer_effect *x)
{
    struct plan *p = ts_plan_of(x->session);
    struct mr_str text = mr_trainer_effect_text(&w.fx, x);
    /* The first record of a session is written before START is answered. */
    for (uint32_t i = 0; i < SESSIONS && !p; i++)
        if (w.plans[i].started && !w.plans[i].id.v &&
            mr_str_eq(mr_trainer_document(w.core, x->session), mr_str(w.plans[i].document)))
            p = &w.plans[i];
    MUST(p);
    p->id = x->session;
    MUST(w.writes_count < WRITES);
    struct write *q = &w.writes[w.writes_count++];
    *q = (struct write){.sequence = x->sequence,
        .session = (uint32_t)(p - w.plans),
        .is_delete = x->type == MR_TX_DELETE,
        .at = w.now + below(30 * MR_MS)};
    if (text.n) q->p = mr_copy(text.p, q->n = text.n);
}

static void job(const struct mr_trainer_effect *x)
{
    struct plan *p = ts_plan_of(x->session);
    struct mr_trainer_event ev = {.session = x->session, .roles = x->roles};
    ev.type = x->type == MR_TX_JOB_SUBMIT ? MR_TE_JOB_SUBMITTED
              : x->type == MR_TX_JOB_POLL ? MR_TE_JOB_STATE
                                          : MR_TE_JOB_CANCELLED;
    ev.job = mr_job_id_make(1, (uint32_t)(p - w.plans) * 2 + x->roles + 1);
    if (w.scheduler_away) {
        ev.err = MR_EAWAY;
        ev.job_state = MR_TRAINING_JOB_AWAY;
    }
    if (x->type == MR_TX_JOB_SUBMIT && (!w.scheduler_away || chance(2))) {
        if (!x->roles && !p->has_graph_job) p->graph_at = w.now + below(3 * MR_SECOND);
        if (x->roles && !p->has_roles_job) p->roles_at = w.now;
        *(x->roles ? &p->has_roles_job : &p->has_graph_job) = true;
    } else if (x->type == MR_TX_JOB_POLL && !x->roles && !w.scheduler_away) {
        ev.job_state = w.now < p->graph_at ? MR_TRAINING_JOB_GOES_ON
                       : p->fails          ? MR_TRAINING_JOB_FAILED
                                           : MR_TRAINING_JOB_DONE;
    } else if (x->type == MR_TX_JOB_POLL && x->roles && !w.scheduler_away) {
        bool all = true;
        for (uint32_t m = 0; m < p->members; m++) {
            bool over = false;
            for (uint32_t i = 0; i < w.procs_count; i++)
                over |= &w.plans[w.procs[i].session] == p && w.procs[i].member == m &&
                        w.procs[i].attempt == p->attempts[m] && w.procs[i].finished &&
                        w.procs[i].phase == MR_TRAINING_EXIT;
            all &= over;
        }
        ev.job_state = all ? MR_TRAINING_JOB_DONE : MR_TRAINING_JOB_GOES_ON;
    } else if (x->type == MR_TX_JOB_CANCEL && !w.scheduler_away && x->roles) {
        p->cancelled = true;
        for (uint32_t i = 0; i < w.procs_count; i++)
            if (&w.plans[w.procs[i].session] == p) w.procs[i].alive = false;
    }
    ts_later(ev, 50 * MR_MS);
}

static void perform(const struct mr_trainer_effect *x)
{
    struct plan *p = x->session.v ? ts_plan_of(x->session) : NULL;
    struct mr_training_info info;
    switch (x->type) {
    case MR_TX_STARTED:
    case MR_TX_STOPPED:
    case MR_TX_FORGOTTEN:
    case MR_TX_JOINED:
    case MR_TX_REPORTED:
    case MR_TX_BARRIER: answered(x); break;
    case MR_TX_WRITE:
    case MR_TX_DELETE: write_record(x); break;
    case MR_TX_JOB_SUBMIT:
    case MR_TX_JOB_POLL:
    case MR_TX_JOB_CANCEL: job(x); break;
    case MR_TX_ERASE:
        for (uint32_t i = 0; i < w.cuts_count; i++)
            if (mr_object_id_eq(w.cuts[i].object, x->object)) w.cuts[i].erased = true;
        break;
    case MR_TX_CHANGED:
        MUST(p && !mr_trainer_info(w.core, x->session, &info));
        if (x->change)
            SAY("session %u: %d generation %u %.*s", (unsigned)(p - w.plans), (int)info.state,
                info.generation, MR_STR_ARG(info.reason));
        if (p->ended) MUST(info.state == p->end);
        if (info.state < MR_TRAINING_DONE) break;
        MUST(info.reason.n);
        p->ended = true;
        p->end = info.state;
        break;
    case MR_TX_JOB_FORGET:
    case MR_TX_LOCATE:
    case MR_TX_FOLLOW:
    case MR_TX_UNFOLLOW:
    case MR_TX_ROWS: break; /* no role of the simulation asks for rows */
    }
}

/* Adds bytes to the digest, a 64-bit FNV-1a hash as in digest.c. */
static void fold(const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        w.digest = (w.digest ^ b[i]) * 1099511628211u;
}

static void digest(const struct mr_trainer_effect *x)
{
    struct mr_str text = mr_trainer_effect_text(&w.fx, x);
    const uint64_t facts[] = {w.now, (uint64_t)x->type, x->session.v, x->ticket, x->sequence,
        (uint64_t)x->err, x->roles, text.n};
    fold(facts, sizeof facts);
    fold(text.p, text.n);
}

void ts_step(struct mr_trainer_event *ev)
{
    if (!w.core) {
        mr_training_document_free(&ev->document);
        return;
    }
    ev->wall_ns = WALL + w.now;
    mr_trainer_step(w.core, w.now, ev, &w.fx);
    mr_trainer_check(w.core);
    w.steps++;
    for (size_t i = 0; i < mr_trainer_effects_count(&w.fx); i++) {
        digest(mr_trainer_effect_at(&w.fx, i));
        perform(mr_trainer_effect_at(&w.fx, i));
    }
    mr_trainer_effects_clear(&w.fx);
}
