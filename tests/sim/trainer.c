/* The trainer's core among simulated roles, a scheduler that runs their tasks again, and a Redis
 * that comes and goes, in virtual time; the trainer itself dies and starts from its records.
 *
 *   sim_trainer [--seed N | --start N --seeds N] [--trace]
 *
 * After every step the core checks itself (mr_trainer_check); here is checked what others were
 * told: every call is answered once, incarnations are never told twice, generation, restore epoch
 * and phase never go back, nobody is sent to a checkpoint that not all shards cut or that was
 * erased, what has ended stays as it was, and in the end every session has ended, with a reason. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "services/trainer/core.h"

#include <stdio.h>
#include <stdlib.h>

#define TICK (10 * MR_MS)
#define SESSIONS 3
#define MEMBERS 8
#define PROCS 1024
#define TICKETS 65536
#define WRITES 1024
#define CUTS 4096
#define WALL 1700000000000000000u

enum kind { K_START, K_STOP, K_JOIN, K_REPORT, K_BARRIER, K_FORGET };

struct proc { /* one attempt of one role */
    bool alive, joined, finished, exhausted, kept;
    uint32_t session, member, attempt;
    uint64_t incarnation, version, steps, ticket;
    uint32_t generation, restore_epoch;
    enum mr_training_phase phase;
    mr_time next, silent_until;
    uint64_t cut_version;
    mr_object_id cut, model;
};

struct ticket {
    enum kind kind;
    uint32_t proc, session;
    bool answered, dropped;
};

struct write {
    uint64_t sequence;
    uint32_t session;
    bool is_delete;
    char *p;
    size_t n;
    mr_time at;
};

struct cut {
    uint32_t session, shard, restore_epoch;
    uint64_t version;
    mr_object_id object;
    bool erased;
};

struct plan {
    mr_training_id id;
    char document[1024];
    char *record;
    size_t record_bytes;
    uint32_t counts[4];
    uint32_t members, shards;
    bool started, accepted, ended, is_exec, fails;
    enum mr_training_state end;
    uint32_t generation, restore_epoch, rank;
    mr_time graph_at, roles_at; /* when the graph's job ends; when the roles' was submitted */
    bool has_graph_job, has_roles_job, cancelled;
    uint32_t attempts[MEMBERS];
    uint64_t told[4096]; /* incarnation: the proc that was told it, + 1 */
    mr_time start_at;
    uint64_t latest[MEMBERS];    /* incarnation that was told */
    uint32_t worked_in[MEMBERS]; /* restore epoch that an owner was let in with */
};

static struct world {
    uint64_t seed;
    struct mr_rng rng;
    mr_time now;
    bool trace, calm;
    struct mr_trainer *core;
    struct mr_trainer_effects fx;
    struct mr_trainer_config config;
    bool redis_away, scheduler_away;
    mr_time redis_back, scheduler_back, core_back;
    struct plan plans[SESSIONS];
    struct proc procs[PROCS];
    uint32_t procs_count;
    struct ticket tickets[TICKETS];
    uint64_t tickets_count;
    struct write writes[WRITES];
    uint32_t writes_count;
    struct cut cuts[CUTS];
    uint32_t cuts_count;
    uint64_t objects, steps, crashes, kills, done, failed, restores;
    struct mr_trainer_event later[4096]; /* answers on their way */
    mr_time later_at[4096];
    uint32_t later_count;
} w;

static void fail(const char *what)
{
    (void)printf(
        "seed %llu at %.3f s: %s\n", (unsigned long long)w.seed, (double)w.now / 1e9, what);
    (void)fflush(NULL);
    abort();
}

#define MUST(x)                                                                                    \
    do {                                                                                           \
        if (!(x)) fail(#x);                                                                        \
    } while (0)
#define SAY(...)                                                                                   \
    do {                                                                                           \
        if (w.trace) {                                                                             \
            (void)printf("%8.3f ", (double)w.now / 1e9);                                           \
            (void)printf(__VA_ARGS__);                                                             \
            (void)printf("\n");                                                                    \
        }                                                                                          \
    } while (0)

static uint64_t below(uint64_t n)
{
    return mr_rng_below(&w.rng, n);
}

static bool chance(uint64_t of)
{
    return below(of) == 0;
}

static uint64_t ticket(enum kind kind, uint32_t proc, uint32_t session)
{
    MUST(w.tickets_count < TICKETS - 1);
    w.tickets[++w.tickets_count] = (struct ticket){kind, proc, session, false, false};
    return w.tickets_count;
}

static struct plan *plan_of(mr_training_id id)
{
    for (uint32_t i = 0; i < SESSIONS; i++)
        if (w.plans[i].id.v == id.v) return &w.plans[i];
    return NULL;
}

static void role_of(const struct plan *p, uint32_t member, struct mr_trainer_event *ev)
{
    uint32_t i = member, r = MR_TRAINING_PS;
    while (i >= p->counts[r])
        i -= p->counts[r++];
    ev->role = (enum mr_training_role)r;
    ev->index = i;
}

static bool is_owner(const struct plan *p, const struct mr_trainer_event *ev)
{
    return ev->role == (p->counts[MR_TRAINING_PS] ? MR_TRAINING_PS : MR_TRAINING_WORKER);
}

/* ---- effects -----------------------------------------------------------------------------------
 */

static void step(struct mr_trainer_event *ev);

static void later(struct mr_trainer_event ev, mr_duration most)
{
    MUST(w.later_count < MR_ARRAY_LEN(w.later));
    w.later[w.later_count] = ev;
    w.later_at[w.later_count++] = w.now + TICK + below(most);
}

static void check_told(struct plan *p, const struct mr_trainer_told *told)
{
    uint32_t rank = told->phase == MR_TRAINING_RUN ? 1 : told->phase == MR_TRAINING_EXIT ? 3 : 2;
    MUST(told->generation >= p->generation);
    MUST(told->restore_epoch >= p->restore_epoch);
    MUST(rank >= p->rank);
    p->generation = told->generation;
    p->restore_epoch = told->restore_epoch;
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
    check_told(p, &x->told);
    if (x->joined.incarnation) {
        MUST(x->joined.incarnation < MR_ARRAY_LEN(p->told));
        uint64_t *who = &p->told[x->joined.incarnation], me = (uint64_t)(r - w.procs) + 1;
        MUST(!*who || *who == me);
        *who = me;
        p->latest[r->member] = MR_MAX(p->latest[r->member], x->joined.incarnation);
    }
    if (!x->joined.formed) return;
    if (!x->joined.incarnation) {
        MUST(x->told.phase == MR_TRAINING_EXIT);
        r->alive = false;
        return;
    }
    if (x->joined.has_checkpoint) check_restore(p);
    if (r->incarnation != x->joined.incarnation || r->restore_epoch != x->told.restore_epoch) {
        struct mr_training_info info;
        MUST(!mr_trainer_info(w.core, p->id, &info));
        r->version = info.restore.objects_count ? info.restore.version : 0;
        r->cut = (mr_object_id){0};
    }
    struct mr_trainer_event place = {0};
    role_of(p, r->member, &place);
    bool anew = r->incarnation != x->joined.incarnation;
    if (anew && is_owner(p, &place) && !p->is_exec && x->told.phase == MR_TRAINING_RUN)
        MUST(x->told.restore_epoch > p->worked_in[r->member]); /* what it had is gone */
    p->worked_in[r->member] = x->told.restore_epoch;
    if (anew) r->steps = 0;
    r->joined = true;
    r->incarnation = x->joined.incarnation;
    r->generation = x->told.generation;
    r->restore_epoch = x->told.restore_epoch;
    r->phase = x->told.phase;
}

static void reported(struct proc *r, const struct mr_trainer_effect *x)
{
    r->ticket = 0;
    if (x->err) {
        MUST(x->err == MR_ESTATE || x->err == MR_ENOENT);
        if (chance(4) && !w.calm)
            r->joined = false; /* it begins again as it is */
        else
            r->alive = false;
        return;
    }
    struct plan *p = &w.plans[r->session];
    MUST(r->incarnation >= p->latest[r->member] || x->told.phase == MR_TRAINING_EXIT);
    check_told(p, &x->told);
    MUST(x->told.phase >= r->phase || x->told.phase == MR_TRAINING_HALT);
    if (x->told.generation != r->generation) r->joined = false;
    r->phase = x->told.phase;
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
    struct plan *p = plan_of(x->session);
    struct mr_str text = mr_trainer_effect_text(&w.fx, x);
    for (uint32_t i = 0; i < SESSIONS && !p; i++) /* its first, before START is answered */
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
    struct plan *p = plan_of(x->session);
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
    later(ev, 50 * MR_MS);
}

static void perform(const struct mr_trainer_effect *x)
{
    struct plan *p = x->session.v ? plan_of(x->session) : NULL;
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
    case MR_TX_FOLLOW:
    case MR_TX_UNFOLLOW: break;
    }
}

static void step(struct mr_trainer_event *ev)
{
    if (!w.core) {
        mr_training_document_free(&ev->document);
        return;
    }
    ev->wall_ns = WALL + w.now;
    mr_trainer_step(w.core, w.now, ev, &w.fx);
    mr_trainer_check(w.core);
    w.steps++;
    for (size_t i = 0; i < mr_trainer_effects_count(&w.fx); i++)
        perform(mr_trainer_effect_at(&w.fx, i));
    mr_trainer_effects_clear(&w.fx);
}

/* ---- roles -------------------------------------------------------------------------------------
 */

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
    role_of(p, r->member, &ev);
    bool runs = r->phase == MR_TRAINING_RUN;
    r->steps += runs ? below(30) : 0;
    if (is_owner(p, &ev) && runs) r->version += below(30);
    if (is_owner(p, &ev) && runs && !p->is_exec) cut(r, &ev);
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
    ev.ticket = r->ticket = ticket(K_REPORT, me, r->session);
    r->next = w.now + 250 * MR_MS;
    if (!w.calm && chance(20)) { /* the same again, later */
        struct mr_trainer_event twin = ev;
        twin.report.failure = (struct mr_str){0};
        twin.ticket = ticket(K_REPORT, me, r->session);
        later(twin, 2 * MR_SECOND);
    }
    step(&ev);
    if (leaves && w.core) r->alive = false;
}

static void join(struct proc *r)
{
    struct plan *p = &w.plans[r->session];
    char task[64];
    (void)snprintf(task, sizeof task, "j1-%u/%u/%u", r->session * 2 + 2, r->member, r->attempt);
    struct mr_trainer_event ev = {.type = MR_TE_JOIN, .session = p->id, .wait = below(MR_SECOND)};
    role_of(p, r->member, &ev);
    ev.join =
        (struct mr_training_join){mr_str(task), MR_STR("127.0.0.1:7"), MR_STR("n"), MR_STR("/s")};
    ev.ticket = r->ticket = ticket(K_JOIN, (uint32_t)(r - w.procs), r->session);
    r->next = w.now + 200 * MR_MS;
    step(&ev);
}

static void role_turn(struct proc *r)
{
    if (!r->alive || r->next > w.now || r->silent_until > w.now || !w.core) return;
    if (r->ticket && r->ticket != UINT64_MAX) return;
    if (!w.calm && r->joined && chance(200)) { /* a barrier that nobody else may come to */
        struct mr_trainer_event ev = {.type = MR_TE_BARRIER,
            .session = w.plans[r->session].id,
            .incarnation = r->incarnation,
            .text = MR_STR("b"),
            .parties = 2,
            .wait = MR_SECOND};
        role_of(&w.plans[r->session], r->member, &ev);
        ev.ticket = ticket(K_BARRIER, (uint32_t)(r - w.procs), r->session);
        step(&ev);
    }
    if (r->joined)
        report(r);
    else
        join(r);
}

/* Runs an attempt of every role that has none alive; zombies of earlier ones may live on. */
static void scheduler_turn(struct plan *p)
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

/* ---- Redis, the trainer's life -----------------------------------------------------------------
 */

static void redis_turn(void)
{
    uint64_t acked = 0;
    uint32_t n = 0;
    if (w.redis_away) return;
    for (; n < w.writes_count && w.writes[n].at <= w.now; n++) {
        struct write *q = &w.writes[n];
        struct plan *p = &w.plans[q->session];
        mr_release(p->record);
        p->record = q->p;
        p->record_bytes = q->n;
        acked = q->sequence;
    }
    w.writes_count -= n;
    memmove(w.writes, w.writes + n, w.writes_count * sizeof w.writes[0]);
    if (!acked) return;
    struct mr_trainer_event ev = {.type = MR_TE_REDIS_ACKED, .sequence = acked};
    step(&ev);
}

/* What was sent and not acknowledged: some of it may be there all the same. */
static void lose_writes(void)
{
    uint32_t kept = w.writes_count ? (uint32_t)below(w.writes_count + 1) : 0;
    for (uint32_t i = 0; i < w.writes_count; i++) {
        struct plan *p = &w.plans[w.writes[i].session];
        if (i < kept) {
            mr_release(p->record);
            p->record = w.writes[i].p;
            p->record_bytes = w.writes[i].n;
        } else {
            mr_release(w.writes[i].p);
        }
    }
    w.writes_count = 0;
}

static void crash(void)
{
    SAY("the trainer dies");
    w.crashes++;
    mr_trainer_free(&w.core);
    lose_writes();
    w.core_back = w.now + below(3 * MR_SECOND);
    w.later_count = 0;
    for (uint64_t i = 1; i <= w.tickets_count; i++)
        w.tickets[i].dropped |= !w.tickets[i].answered;
    for (uint32_t i = 0; i < w.procs_count; i++)
        w.procs[i].ticket = 0;
}

static void begin(void)
{
    SAY("the trainer begins");
    w.config.epoch++;
    w.core = mr_trainer_new(&w.config);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct plan *p = &w.plans[i];
        if (p->accepted) MUST(p->record);
        if (!p->record) {
            p->id.v = 0;
            continue;
        }
        struct mr_trainer_event ev = {
            .type = MR_TE_RECORD, .session = p->id, .text = mr_str_of(p->record, p->record_bytes)};
        MUST(!mr_training_document_parse(mr_str(p->document), &ev.document, NULL));
        step(&ev);
        struct mr_training_info info;
        MUST(!mr_trainer_info(w.core, p->id, &info));
        if (p->ended) MUST(info.state == p->end);
        if (info.state >= MR_TRAINING_DONE) p->ended = true;
        p->end = info.state;
    }
    struct mr_trainer_event ev = {.type = MR_TE_RECOVERED};
    step(&ev);
}

static void faults(void)
{
    if (w.calm) return;
    if (w.core && chance(600)) crash();
    if (w.core && !w.redis_away && chance(500)) {
        w.redis_away = true;
        w.redis_back = w.now + below(4 * MR_SECOND);
        lose_writes();
        struct mr_trainer_event ev = {.type = MR_TE_REDIS_AWAY};
        step(&ev);
    }
    if (!w.scheduler_away && chance(500)) {
        w.scheduler_away = true;
        w.scheduler_back = w.now + below(4 * MR_SECOND);
    }
    struct proc *r = w.procs_count ? &w.procs[below(w.procs_count)] : NULL;
    if (r && r->alive && chance(60)) { /* it dies, is slow, or is believed dead and lives on */
        uint64_t how = below(3);
        if (how == 0) r->alive = false;
        if (how == 1) r->silent_until = w.now + below(3 * MR_SECOND);
        struct plan *p = &w.plans[r->session];
        if (how == 2 && r->attempt == p->attempts[r->member] && w.procs_count < PROCS)
            w.procs[w.procs_count++] = (struct proc){.alive = true,
                .session = r->session,
                .member = r->member,
                .attempt = ++p->attempts[r->member],
                .next = w.now};
        w.kills++;
    }
}

static void client(struct plan *p)
{
    if (!p->accepted && p->start_at <= w.now && w.core) {
        struct mr_trainer_event ev = {
            .type = MR_TE_START, .text = mr_str_of(&"abc"[p - w.plans], 1)};
        MUST(!mr_training_document_parse(mr_str(p->document), &ev.document, NULL));
        p->started = true;
        ev.ticket = ticket(K_START, 0, (uint32_t)(p - w.plans));
        p->start_at = w.now + MR_SECOND;
        step(&ev);
    }
    if (p->accepted && !w.calm && w.core && chance(4000)) {
        struct mr_trainer_event ev = {.type = MR_TE_STOP, .session = p->id, .abandon = chance(3)};
        ev.ticket = ticket(K_STOP, 0, (uint32_t)(p - w.plans));
        step(&ev);
    }
    if (p->accepted && w.core && chance(30)) { /* a score */
        char text[64], entry[32];
        (void)snprintf(
            text, sizeof text, "{\"cross_entropy\": %.3f}", 0.1 + (double)below(90) / 100);
        (void)snprintf(
            entry, sizeof entry, "%llu-0", (unsigned long long)((WALL + w.now) / 1000000));
        char name[64];
        mr_training_id_format(p->id, name);
        (void)snprintf(name + strlen(name), 16, ".scores");
        struct mr_trainer_event ev = {.type = MR_TE_ENTRY,
            .channel = mr_str(name),
            .entry = mr_str(entry),
            .text = mr_str(text)};
        step(&ev);
    }
}

static void make_plan(struct plan *p)
{
    static const char *const rules[] = {"async", "sync", "allreduce"};
    static const char *const model =
        "\"model\":{\"input\":[4],\"layers\":[{\"type\":\"Dense\",\"units\":2}]},"
        "\"data\":{\"train\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}},"
        "\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}},";
    uint64_t rule = below(3);
    p->is_exec = chance(5);
    p->fails = chance(10);
    p->counts[MR_TRAINING_PS] = p->is_exec || rule == 2 ? 0 : 1 + (uint32_t)below(2);
    p->counts[MR_TRAINING_WORKER] = 1 + (uint32_t)below(3);
    p->counts[MR_TRAINING_SCORER] = p->is_exec ? 0 : (uint32_t)below(2);
    p->members = p->counts[1] + p->counts[2] + p->counts[3];
    p->shards = p->is_exec ? 0 : rule == 2 ? p->counts[2] : p->counts[1];
    const char *scores =
        p->counts[3] ? "\"threshold\":{\"field\":\"cross_entropy\",\"below\":0.12}," : "";
    (void)snprintf(p->document, sizeof p->document,
        "{%s%s\"roles\":{\"ps\":%u,\"worker\":%s%u%s,\"scorer\":%u},\"update\":{\"rule\":\"%s\"},"
        "\"checkpoint\":{\"every_steps\":50,\"keep\":%u},\"stop\":{%s\"steps\":%u,\"time_s\":%u},"
        "\"limits\":{\"forming_s\":6,\"recovering_s\":6,\"stopping_s\":6,\"lease_s\":1,"
        "\"preparing_s\":5}}",
        p->is_exec ? "" : model, chance(2) ? "\"graph\":{\"tasks\":{}}," : "", p->counts[1],
        p->is_exec ? "{\"exec\":[\"x\"],\"count\":" : "", p->counts[2], p->is_exec ? "}" : "",
        p->counts[3], rules[p->is_exec ? 0 : rule], 1 + (unsigned)below(3), scores,
        chance(2) ? 0 : 400 + (unsigned)below(400), 5 + (unsigned)below(20));
    p->start_at = below(2 * MR_SECOND);
    p->rank = 1;
}

static void tick(void)
{
    if (w.redis_away && w.redis_back <= w.now) {
        struct mr_trainer_event ev = {.type = MR_TE_REDIS_BACK};
        w.redis_away = false;
        step(&ev);
    }
    w.scheduler_away &= w.scheduler_back > w.now;
    if (!w.core && w.core_back <= w.now && !w.redis_away) begin();
    faults();
    redis_turn();
    for (uint32_t i = 0; i < w.later_count;) {
        if (w.later_at[i] > w.now) {
            i++;
            continue;
        }
        struct mr_trainer_event ev = w.later[i];
        w.later[i] = w.later[--w.later_count];
        w.later_at[i] = w.later_at[w.later_count];
        step(&ev);
    }
    for (uint32_t i = 0; i < SESSIONS; i++) {
        client(&w.plans[i]);
        scheduler_turn(&w.plans[i]);
    }
    for (uint32_t i = 0; i < w.procs_count; i++)
        role_turn(&w.procs[i]);
    if (w.core && mr_trainer_deadline(w.core) <= w.now && !(chance(50) && !w.calm)) {
        struct mr_trainer_event ev = {.type = MR_TE_TICK};
        step(&ev);
        MUST(mr_trainer_deadline(w.core) > w.now || w.redis_away);
    }
    w.now += TICK;
}

static bool all_ended(void)
{
    for (uint32_t i = 0; i < SESSIONS; i++)
        if (!w.plans[i].ended) return false;
    return true;
}

static void one(uint64_t seed)
{
    uint64_t steps = w.steps, crashes = w.crashes, kills = w.kills, done = w.done,
             failed = w.failed, restores = w.restores;
    bool trace = w.trace;
    memset(&w, 0, sizeof w);
    w.seed = seed;
    w.trace = trace;
    mr_rng_init(&w.rng, seed);
    mr_trainer_effects_init(&w.fx);
    mr_trainer_config_default(&w.config);
    w.now = MR_SECOND;
    for (uint32_t i = 0; i < SESSIONS; i++)
        make_plan(&w.plans[i]);
    begin();
    while (w.now < 16 * MR_SECOND)
        tick();
    w.calm = true;
    while (w.now < 90 * MR_SECOND && (!w.core || !all_ended()))
        tick();
    if (!all_ended()) fail("not every session has ended");
    for (uint32_t i = 0; i < 300; i++)
        tick();
    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct mr_training_info info;
        MUST(!mr_trainer_info(w.core, w.plans[i].id, &info));
        MUST(info.state == w.plans[i].end);
        bool done_one = info.state == MR_TRAINING_DONE;
        if (done_one && !w.plans[i].is_exec) MUST(info.model_object.maker == 8);
        w.done += done_one;
        w.failed += !done_one;
        w.restores += info.restores;
        SAY("session %u: %s %.*s", i, done_one ? "done" : "failed", MR_STR_ARG(info.reason));
    }
    for (uint64_t i = 1; i <= w.tickets_count; i++)
        if (!w.tickets[i].answered && !w.tickets[i].dropped) fail("a call was never answered");
    lose_writes();
    for (uint32_t i = 0; i < SESSIONS; i++)
        mr_release(w.plans[i].record);
    mr_trainer_free(&w.core);
    mr_trainer_effects_fini(&w.fx);
    w.steps += steps;
    w.crashes += crashes;
    w.kills += kills;
    w.done += done;
    w.failed += failed;
    w.restores += restores;
}

int main(int argc, char **argv)
{
    uint64_t start = 1, seeds = 1;
    for (int i = 1; i < argc; i++) {
        struct mr_str a = mr_str(argv[i]);
        bool more = i + 1 < argc;
        if (mr_str_eq(a, MR_STR("--trace")))
            w.trace = true;
        else if (mr_str_eq(a, MR_STR("--quiet")))
            continue;
        else if (mr_str_eq(a, MR_STR("--seeds")) && more)
            seeds = strtoull(argv[++i], NULL, 0);
        else if ((mr_str_eq(a, MR_STR("--start")) || mr_str_eq(a, MR_STR("--seed"))) && more)
            start = strtoull(argv[++i], NULL, 0);
        else {
            (void)fprintf(stderr, "sim_trainer [--seed N | --start N --seeds N] [--trace]\n");
            return 2;
        }
    }
    for (uint64_t i = 0; i < seeds; i++)
        one(start + i);
    (void)printf(
        "%llu seeds: %llu steps, %llu deaths of the trainer, %llu of roles, %llu restores, "
        "sessions %llu done %llu failed\n",
        (unsigned long long)seeds, (unsigned long long)w.steps, (unsigned long long)w.crashes,
        (unsigned long long)w.kills, (unsigned long long)w.restores, (unsigned long long)w.done,
        (unsigned long long)w.failed);
    return 0;
}
