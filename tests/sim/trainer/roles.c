/* The roles of a session, and the scheduler, which runs an attempt of each role. */
#include "tests/sim/trainer/trainer.h"

static void cut(struct proc *r, const struct mr_trainer_event *ev)
{
    uint64_t version = r->version / 50 * 50;
    if (!version || version == r->cut_version || (chance(3) && !w.calm)) return;
    MUST(w.cuts_count < CUTS);
    r->cut_version = version;
    r->cut = (mr_object_id){7, ++w.objects};
    w.cuts[w.cuts_count++] =
        (struct cut){r->session, ev->index, r->restore_epoch, version, r->cut, false};
}

static void report(struct proc *r)
{
    struct plan *p = &w.plans[r->session];
    struct mr_trainer_event ev = {.type = MR_TE_REPORT, .session = p->id};
    ts_role_of(p, r->member, &ev);
    bool runs = r->phase == MR_TRAINING_RUN;
    r->steps += runs ? below(30) : 0;
    if (ts_is_owner(p, &ev) && runs) r->version += below(30);
    if (ts_is_owner(p, &ev) && runs && !p->is_exec) cut(r, &ev);
    r->exhausted |= runs && r->steps > 2000;
    if (p->is_exec) r->exhausted |= r->steps > 600;
    r->finished = r->phase >= MR_TRAINING_HALT || (p->is_exec && r->exhausted);
    if (r->phase == MR_TRAINING_KEEP && !r->kept && (w.calm || chance(3))) {
        r->kept = true;
        r->model = (mr_object_id){8, ++w.objects};
    }
    ev.incarnation = r->incarnation;
    ev.report = (struct mr_training_report){.generation = r->generation,
        .restore_epoch = r->restore_epoch,
        .counters = {.steps = r->steps, .examples = r->steps * 64, .epoch = r->steps / 500},
        .version = r->version,
        .exhausted = r->exhausted,
        .finished = r->finished,
        .checkpoint_version = r->cut_version,
        .checkpoint_object = r->cut};
    if (r->phase == MR_TRAINING_KEEP && r->kept) ev.report.model_object = r->model;
    if (!w.calm && chance(3000)) ev.report.failure = MR_STR("the loss is not a number");
    bool leaves = r->phase == MR_TRAINING_EXIT;
    uint32_t me = (uint32_t)(r - w.procs);
    ev.ticket = r->ticket = ts_ticket(K_REPORT, me, r->session);
    r->next = w.now + 250 * MR_MS;
    if (!w.calm && chance(20)) { /* sends the same report again later */
        struct mr_trainer_event twin = ev;
        twin.report.failure = (struct mr_str){0};
        twin.ticket = ts_ticket(K_REPORT, me, r->session);
        ts_later(twin, 2 * MR_SECOND);
    }
    ts_step(&ev);
    if (leaves && w.core) r->alive = false;
}

static void join(struct proc *r)
{
    struct plan *p = &w.plans[r->session];
    char task[64];
    (void)snprintf(task, sizeof task, "j1-%u/%u/%u", r->session * 2 + 2, r->member, r->attempt);
    struct mr_trainer_event ev = {.type = MR_TE_JOIN, .session = p->id, .wait = below(MR_SECOND)};
    ts_role_of(p, r->member, &ev);
    ev.join =
        (struct mr_training_join){mr_str(task), MR_STR("127.0.0.1:7"), MR_STR("n"), MR_STR("/s")};
    ev.ticket = r->ticket = ts_ticket(K_JOIN, (uint32_t)(r - w.procs), r->session);
    r->next = w.now + 200 * MR_MS;
    ts_step(&ev);
}

void ts_role_turn(struct proc *r)
{
    if (!r->alive || r->next > w.now || r->silent_until > w.now || !w.core) return;
    if (r->ticket && r->ticket != UINT64_MAX) return;
    /* The role waits at a barrier at which perhaps no other role arrives. */
    if (!w.calm && r->joined && chance(200)) {
        struct mr_trainer_event ev = {.type = MR_TE_BARRIER,
            .session = w.plans[r->session].id,
            .incarnation = r->incarnation,
            .text = MR_STR("b"),
            .parties = 2,
            .wait = MR_SECOND};
        ts_role_of(&w.plans[r->session], r->member, &ev);
        ev.ticket = ts_ticket(K_BARRIER, (uint32_t)(r - w.procs), r->session);
        ts_step(&ev);
    }
    if (r->joined)
        report(r);
    else
        join(r);
}

/* Starts an attempt of each role whose last attempt is dead. Earlier attempts that were taken for
 * dead may live on. */
void ts_scheduler_turn(struct plan *p)
{
    if (!p->has_roles_job || p->cancelled || w.scheduler_away) return;
    for (uint32_t m = 0; m < p->members; m++) {
        bool busy = false;
        for (uint32_t i = 0; i < w.procs_count; i++) {
            struct proc *r = &w.procs[i];
            bool mine = &w.plans[r->session] == p && r->member == m && r->attempt == p->attempts[m];
            busy |= mine && (r->alive || (r->finished && r->phase == MR_TRAINING_EXIT));
        }
        if (busy || w.procs_count == PROCS || !chance(w.calm ? 10 : 40)) continue;
        w.procs[w.procs_count++] = (struct proc){.alive = true,
            .session = (uint32_t)(p - w.plans),
            .member = m,
            .attempt = ++p->attempts[m],
            .next = w.now + below(MR_SECOND)};
    }
}
