/* The trainer's core in virtual time, among simulated roles, a scheduler that runs the roles' tasks
 * again, and a Redis that comes and goes. The trainer itself dies and starts from its records.
 *
 *   sim_trainer [--seed N | --start N --seeds N] [--trace]
 *
 * After every step the core checks its own invariants (mr_trainer_check). The simulation checks
 * what the core tells others: every call is answered once; no incarnation is given to two
 * processes; generation, restore epoch and phase never go back; a checkpoint to restore has been
 * stored by all shards and not erased; a session that has ended stays as it is; at last every
 * session has ended, with a reason. */
#include "tests/sim/trainer/trainer.h"

struct trainer_world w;

_Noreturn void ts_fail(const char *what)
{
    (void)printf(
        "seed %llu at %.3f s: %s\n", (unsigned long long)w.seed, (double)w.now / 1e9, what);
    (void)fflush(NULL);
    abort();
}

uint64_t ts_ticket(enum kind kind, uint32_t proc, uint32_t session)
{
    MUST(w.tickets_count < TICKETS - 1);
    w.tickets[++w.tickets_count] = (struct ticket){kind, proc, session, false, false};
    return w.tickets_count;
}

struct plan *ts_plan_of(mr_training_id id)
{
    for (uint32_t i = 0; i < SESSIONS; i++)
        if (w.plans[i].id.v == id.v) return &w.plans[i];
    return NULL;
}

void ts_role_of(const struct plan *p, uint32_t member, struct mr_trainer_event *ev)
{
    uint32_t i = member, r = MR_TRAINING_PS;
    while (i >= p->counts[r])
        i -= p->counts[r++];
    ev->role = (enum mr_training_role)r;
    ev->index = i;
}

bool ts_is_owner(const struct plan *p, const struct mr_trainer_event *ev)
{
    return ev->role == (p->counts[MR_TRAINING_PS] ? MR_TRAINING_PS : MR_TRAINING_WORKER);
}

/* ---- Redis, and restarts of the trainer ------------------------------------------------------ */

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
    ts_step(&ev);
}

/* Ends the writes that were not acknowledged. A random number of them, the first ones, have reached
 * Redis anyway. */
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
        ts_step(&ev);
        struct mr_training_info info;
        MUST(!mr_trainer_info(w.core, p->id, &info));
        if (p->ended) MUST(info.state == p->end);
        if (info.state >= MR_TRAINING_DONE) p->ended = true;
        p->end = info.state;
    }
    struct mr_trainer_event ev = {.type = MR_TE_RECOVERED};
    ts_step(&ev);
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
        ts_step(&ev);
    }
    if (!w.scheduler_away && chance(500)) {
        w.scheduler_away = true;
        w.scheduler_back = w.now + below(4 * MR_SECOND);
    }
    struct proc *r = w.procs_count ? &w.procs[below(w.procs_count)] : NULL;
    /* A role dies, is silent for a while, or is taken for dead and lives on. */
    if (r && r->alive && chance(60)) {
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
        ev.ticket = ts_ticket(K_START, 0, (uint32_t)(p - w.plans));
        p->start_at = w.now + MR_SECOND;
        ts_step(&ev);
    }
    if (p->accepted && !w.calm && w.core && chance(4000)) {
        struct mr_trainer_event ev = {.type = MR_TE_STOP, .session = p->id, .abandon = chance(3)};
        ev.ticket = ts_ticket(K_STOP, 0, (uint32_t)(p - w.plans));
        ts_step(&ev);
    }
    if (p->accepted && w.core && chance(30)) { /* a score is published */
        char text[64], entry[32];
        (void)snprintf(
            text, sizeof text, "{\"cross_entropy\": %.3f}", 0.1 + (double)below(90) / 100);
        (void)snprintf(
            entry, sizeof entry, "%llu-0", (unsigned long long)((WALL + w.now) / 1000000));
        char name[64];
        mr_trainer_id_format(p->id, name);
        (void)snprintf(name + strlen(name), 16, ".scores");
        struct mr_trainer_event ev = {.type = MR_TE_ENTRY,
            .channel = mr_str(name),
            .entry = mr_str(entry),
            .text = mr_str(text)};
        ts_step(&ev);
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
        ts_step(&ev);
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
        ts_step(&ev);
    }
    for (uint32_t i = 0; i < SESSIONS; i++) {
        client(&w.plans[i]);
        ts_scheduler_turn(&w.plans[i]);
    }
    for (uint32_t i = 0; i < w.procs_count; i++)
        ts_role_turn(&w.procs[i]);
    if (w.core && mr_trainer_deadline(w.core) <= w.now && !(chance(50) && !w.calm)) {
        struct mr_trainer_event ev = {.type = MR_TE_TICK};
        ts_step(&ev);
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
    uint64_t digest = w.digest;
    memset(&w, 0, sizeof w);
    w.seed = seed;
    w.trace = trace;
    w.digest = digest;
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
    if (!all_ended()) ts_fail("not every session has ended");
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
        if (!w.tickets[i].answered && !w.tickets[i].dropped) ts_fail("a call was never answered");
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
        "sessions %llu done %llu failed, digest %016llx\n",
        (unsigned long long)seeds, (unsigned long long)w.steps, (unsigned long long)w.crashes,
        (unsigned long long)w.kills, (unsigned long long)w.restores, (unsigned long long)w.done,
        (unsigned long long)w.failed, (unsigned long long)w.digest);
    return 0;
}
