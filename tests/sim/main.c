/* sim --seeds N --start S: runs N simulated clusters (worlds) one after another, each from its own
 * seed, beginning with seed S. */
#include "tests/sim/sim.h"

#include "base/str.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Longest virtual time from the end of faults to the end of all jobs. */
#define CALM_MAX (180 * MR_SECOND)
#define STEPS_MAX 3000000u

struct options {
    uint64_t start, seeds, check_every;
    bool trace, quiet;
    uint32_t plant, faults;
    bool has_faults, has_roles, has_loops, has_templates, has_tears, has_rewinds, has_stores,
        has_fair;
    bool covers; /* a run of many seeds fails if a rare case did not happen in any seed */
};

static struct sim_counts totals;
static uint64_t digest; /* digest over all seeds */

static void on_abort(int sig)
{
    (void)sig;
    sim_story("an assertion failed");
    (void)fflush(NULL);
    _exit(sim_current && sim_current->plant ? 0 : 1);
}

static struct sim_proc *proc_awake(struct sim *s, const struct mr_virtual_event *ev, uint32_t proc)
{
    struct sim_proc *p = &s->procs[proc];
    if (!p->is_alive) return NULL;
    if (p->asleep_until <= s->now) {
        p->asleep_until = 0;
        return p;
    }
    sim_push(s, p->asleep_until - s->now, *ev);
    if (ev->kind == EV_WAKE && p->wake_order == ev->order) p->wake_order = s->queue.order;
    return NULL;
}

static void down(struct sim *s, struct mr_virtual_event *ev)
{
    struct sim_session *x = &s->sessions[ev->a];
    struct sim_proc *p = x->is_down ? proc_awake(s, ev, x->proc) : NULL;
    if (x->is_down && !p && s->procs[x->proc].is_alive) {
        ev->msg = NULL; /* the message waits until the process wakes */
        return;
    }
    x->flying_down -= ev->kind == EV_DOWN;
    if (x->is_waiting && x->is_up && s->sched && x->life == s->life && x->has_joined &&
        s->session_of[x->slot] == ev->a) {
        x->is_waiting = false;
        sim_flush(s, x->slot);
    }
    if (!p) return;
    if (ev->kind == EV_DOWN) {
        if (!ev->msg) return; /* the message was lost on its way */
        /* the scheduler has now learned which tasks ran when the worker's previous process died */
        if (ev->msg->down.registered) p->has_suspects = false;
        struct mr_worker_event m = {.kind = MR_WORKER_MESSAGE, .message = &ev->msg->down};
        sim_proc_step(s, p, &m);
    } else {
        x->is_down = false;
        p->session = NONE;
        struct mr_worker_event m = {.kind = ev->c ? MR_WORKER_REVOKED : MR_WORKER_DISCONNECTED};
        sim_say(s, "w%" PRIu32 " %s", p->name, ev->c ? "is revoked" : "is disconnected");
        sim_proc_step(s, p, &m);
    }
    sim_proc_turn(s, p);
}

static void connect(struct sim *s, const struct mr_virtual_event *ev)
{
    struct sim_proc *p = proc_awake(s, ev, ev->a);
    if (!p) return;
    if (s->sessions_count == SESSIONS_MAX) sim_fail(s, "sessions without end");
    uint32_t id = s->sessions_count++;
    struct sim_session *x = &s->sessions[id];
    *x = (struct sim_session){.proc = ev->a, .life = s->life, .is_down = true};
    x->is_up = s->sched != NULL;
    p->session = id;
    struct mr_worker_event m = {.kind = MR_WORKER_CONNECTED};
    sim_proc_step(s, p, &m);
    if (!x->is_up) sim_push(s, MR_MS, (struct mr_virtual_event){.kind = EV_DOWN_END, .a = id});
    sim_proc_turn(s, p);
}

static void fetched(struct sim *s, struct sim_proc *p, const struct mr_virtual_event *ev)
{
    uint32_t serial = (uint32_t)(ev->c >> 32);
    uint64_t number = ev->c & UINT32_MAX;
    bool has = sim_object_is_somewhere(s, number);
    s->losses += !has; /* the loss is noticed only now */
    struct mr_worker_event m = {.kind = MR_WORKER_FETCHED,
        .fetched = {ev->b, serial, has ? MR_OK : MR_ENOENT, MR_STR("the store has it not")}};
    for (uint32_t i = 0; i < MR_ARRAY_LEN(p->pins); i++) {
        struct sim_pin *pin = &p->pins[i];
        if (pin->serial != serial) continue;
        if (has) {
            sim_object_pin(s, number, p->store, true);
            pin->object = number;
        } else {
            *pin = (struct sim_pin){0};
        }
        break;
    }
    sim_proc_step(s, p, &m);
}

static void proc_event(struct sim *s, const struct mr_virtual_event *ev)
{
    struct sim_proc *p = proc_awake(s, ev, ev->a);
    if (!p) return;
    if (ev->kind == EV_WAKE) {
        if (p->wake_order != ev->order) return; /* another wake-up was planned since */
        struct mr_worker_event m = {.kind = MR_WORKER_TICK};
        p->wake_at = MR_NEVER;
        sim_proc_step(s, p, &m);
    } else if (ev->kind == EV_EXEC) {
        sim_exec_end(s, p, ev->b, ev->c);
    } else {
        fetched(s, p, ev);
    }
    if (p->is_alive) sim_proc_turn(s, p);
}

static void handle(struct sim *s, struct mr_virtual_event *ev)
{
    switch ((enum sim_event)ev->kind) {
    case EV_SCHED_TURN:
        if (s->sched && ev->a == s->life && ev->order == s->turn_order) sim_sched_turn(s);
        break;
    case EV_SCHED_START:
        if (!s->sched) sim_sched_start(s);
        break;
    case EV_UP:
        if (ev->msg)
            sim_up(s, ev->a, ev->msg);
        else
            s->sessions[ev->a].flying_up--;
        break;
    case EV_UP_END: sim_up_end(s, ev->a); break;
    case EV_DOWN:
    case EV_DOWN_END: down(s, ev); break;
    case EV_CONNECT: connect(s, ev); break;
    case EV_WAKE:
    case EV_EXEC:
    case EV_FETCHED: proc_event(s, ev); break;
    case EV_ACK:
        if (s->sched && ev->a == s->life) sim_journal_ack(s, ev->c);
        break;
    case EV_STORES:
        sim_stores_beat(s);
        sim_push(s, s->config.heartbeat, (struct mr_virtual_event){.kind = EV_STORES});
        break;
    case EV_PROC_START: sim_proc_start(s, ev->a); break;
    case EV_STORE_START: sim_store_start(s, ev->a); break;
    case EV_STORE_CONNECT: sim_store_connect(s, ev->a); break;
    case EV_STORE_DOWN: sim_store_down(s, ev); break;
    case EV_FORGET: sim_client_forget(s); break;
    case EV_SUBMIT: sim_client_submit(s, ev->a); break;
    case EV_CLIENT: sim_client_act_on(s, ev->a, ev->b); break;
    case EV_FAULT: sim_fault(s); break;
    }
}

bool sim_run(struct sim *s, mr_time until, bool stop_when_content)
{
    struct mr_virtual_event ev;
    for (uint64_t n = 0; s->queue.count && s->queue.heap[0].at <= until; n++) {
        (void)mr_virtual_pop(&s->queue, &ev);
        s->now = ev.at;
        sim_digest_event(s, &ev);
        handle(s, &ev);
        mr_virtual_message_free(&ev.msg);
        if (s->steps > STEPS_MAX) sim_fail(s, "steps without end");
        if (stop_when_content && n % 64 == 0 && sim_client_is_content(s)) return true;
    }
    s->now = until;
    return stop_when_content && sim_client_is_content(s);
}

void sim_configure(struct sim *s)
{
    mr_rng_init(&s->rng, s->seed);
    mr_sched_config_default(&s->config);
    s->config.tasks_max = 16384;
    s->config.jobs_max = 64;
    s->config.workers_max = 64;
    s->config.stores_max = STORES_MAX;
    s->config.ops_max = 60;
    s->config.inline_blocks = sim_chance(s, 3) ? 64 : 16384;
    s->config.failures_max = 64;
    s->config.unacked_bytes_max = sim_chance(s, 3) ? 16384 : 1 << 20;
    s->config.heartbeat = 100 * MR_MS;
    s->config.lease = MR_SECOND;
    s->config.probation = 200 * MR_MS;
    s->config.keep_jobs = 0;
    s->config.keep_jobs_max = 64;
}

static void set_up(struct sim *s, const struct options *o)
{
    sim_configure(s);
    s->now = MR_SECOND;
    s->names = 1 + (uint32_t)sim_below(s, NAMES_MAX);
    s->names = MR_MAX(s->names, 2u);
    s->nodes = 1 + (uint32_t)sim_below(s, MR_MIN(s->names, (uint32_t)NODES_MAX));
    s->specs_count = 1 + (uint32_t)sim_below(s, SPECS_MAX);
    s->faults_mask = o->has_faults ? o->faults : (uint32_t)mr_rng_next(&s->rng);
    if (o->has_rewinds) s->faults_mask |= sim_crashes;
    if (o->has_stores) s->faults_mask |= sim_deaths_of_stores;
    memset(s->proc_of, 0xff, sizeof s->proc_of);
    for (uint32_t i = 0; i < s->nodes; i++)
        sim_push(s, 0, (struct mr_virtual_event){.kind = EV_STORE_START, .a = i});
    for (uint32_t i = 0; i < s->names; i++)
        sim_push(
            s, sim_below(s, 100 * MR_MS), (struct mr_virtual_event){.kind = EV_PROC_START, .a = i});
    sim_shared_make(s);
    sim_templates_install(s);
    for (uint32_t i = 0; i < s->specs_count; i++) {
        sim_spec_make(s, i);
        sim_push(
            s, sim_below(s, 3 * MR_SECOND), (struct mr_virtual_event){.kind = EV_SUBMIT, .a = i});
    }
    sim_specs_expect(s);
    sim_push(s, 0, (struct mr_virtual_event){.kind = EV_STORES});
    sim_push(s, 50 * MR_MS, (struct mr_virtual_event){.kind = EV_FAULT});
    sim_sched_start(s);
}

/* Checks that the scheduler, the workers and the stores hold nothing for jobs that are
 * forgotten. */
static void check_leaks(struct sim *s)
{
    uint32_t node = 0;
    const char *left = mr_sched_leftover(s->sched);
    if (left) sim_fail(s, "the scheduler has %s left, and there is no job", left);
    for (uint32_t i = 0; i < s->names; i++) {
        if (s->proc_of[i] == NONE) continue;
        const struct sim_proc *p = &s->procs[s->proc_of[i]];
        left = mr_worker_leftover(p->w);
        if (left || (p->has_told && (p->held_bytes || p->queued)))
            sim_fail(s,
                "I12: w%" PRIu32 " has %s left; it told of %" PRIu64 " bytes and %" PRIu32
                " tasks, and there is no job",
                i, left ? left : "nothing", p->held_bytes, p->queued);
    }
    uint64_t object = sim_stores_leftover(s, &node);
    if (object)
        sim_fail(s, "I16: the store of node %" PRIu32 " keeps object %" PRIu64 " for no job", node,
            object);
}

void sim_tear_down(struct sim *s)
{
    if (s->sched) {
        mr_sched_free(&s->sched);
        mr_sched_effects_fini(&s->fx);
        mr_arena_fini(&s->arena);
    }
    for (uint32_t i = 0; i < s->procs_count; i++) {
        struct sim_proc *p = &s->procs[i];
        if (!p->is_alive) continue;
        sim_exec_drop(s, p);
        mr_worker_free(&p->w);
        mr_worker_effects_fini(&p->fx);
    }
    mr_virtual_queue_fini(&s->queue);
    for (uint32_t i = 0; i < s->sessions_count; i++)
        mr_sched_numbers_fini(&s->sessions[i].numbers);
    sim_journal_fini(&s->journal);
    sim_journal_fini(&s->copy);
    for (uint32_t i = 0; i < s->specs_count; i++) {
        mr_graph_free(&s->specs[i].graph);
        mr_graph_free(&s->specs[i].same);
    }
    sim_templates_fini(s);
    for (uint32_t i = 0; i < s->jobs_count; i++)
        mr_release(s->jobs[i].task);
    mr_release(s->objects);
}

/* Runs AGAIN_MAX jobs that are instances of one job template, one after another, while nothing else
 * runs. */
static void again(struct sim *s)
{
    for (uint32_t i = 0; i < AGAIN_MAX; i++) {
        if (i == 2) { /* a worker dies and is replaced */
            uint32_t name = (uint32_t)sim_below(s, s->names);
            if (s->proc_of[name] != NONE) sim_proc_kill(s, s->proc_of[name]);
            (void)sim_run(s, s->now + 4 * s->config.lease, false);
        }
        sim_template_again(s, i);
        if (!sim_run(s, s->now + CALM_MAX, true)) {
            sim_client_complain(s);
            sim_fail(s, "I9: an instance of a template has not ended");
        }
        sim_template_placed(s, i);
    }
}

/* Runs until `is_so` returns true. */
static void run_to(struct sim *s, bool (*is_so)(struct sim *s))
{
    mr_time end = s->now + CALM_MAX;
    while (!is_so(s)) {
        if (s->now >= end) sim_fail(s, "I9: a job beside another has not ended");
        (void)sim_run(s, s->now + 100 * MR_US, false);
    }
}

/* Runs a small job beside a large one, while nothing else runs. */
static void fair(struct sim *s)
{
    sim_fair_begin(s);
    run_to(s, sim_fair_add);
    run_to(s, sim_fair_check);
    if (!sim_run(s, s->now + CALM_MAX, true)) sim_fail(s, "I9: a large job has not ended");
}

static void add_up(const struct sim_counts *c)
{
    const uint64_t *from = (const void *)c;
    uint64_t *to = (void *)&totals;
    for (size_t i = 0; i < sizeof *c / sizeof *from; i++)
        to[i] += from[i];
}

static void one(const struct options *o, uint64_t seed)
{
    struct sim *s = mr_alloc(sizeof *s);
    sim_current = s;
    s->seed = seed;
    s->trace = o->trace;
    s->plant = (enum sim_plant)o->plant;
    s->has_roles = o->has_roles;
    s->has_loops = o->has_loops;
    s->has_templates = o->has_templates;
    s->has_rewinds = o->has_rewinds;
    s->has_stores = o->has_stores;
    s->has_fair = o->has_fair;
    s->has_tears = o->has_tears || o->has_loops || o->has_templates;
    s->check_every = (uint32_t)o->check_every;
    sim_digest_begin(s);
    set_up(s, o);
    (void)sim_run(s, s->now + MR_SECOND + sim_below(s, 8 * MR_SECOND), false);
    sim_calm(s);
    if (!sim_run(s, s->now + CALM_MAX, true)) {
        sim_client_complain(s);
        sim_fail(s, "I9: not every job has ended");
    }
    (void)sim_run(s, s->now + 2 * MR_SECOND, false);
    if (!sim_run(s, s->now + CALM_MAX, true)) sim_fail(s, "I9: a retried job has not ended");
    if (s->has_templates) again(s);
    if (s->has_fair) fair(s);
    for (uint32_t i = 0; i < 3; i++) { /* values that turn out to be lost are asked for again */
        sim_client_values(s, true, i == 0);
        (void)sim_run(s, s->now + 5 * MR_SECOND, false);
    }
    sim_client_values(s, false, false);
    sim_client_forget(s);
    if (!sim_run(s, s->now + CALM_MAX, true)) {
        sim_client_complain(s);
        sim_fail(s, "forgotten jobs stay");
    }
    (void)sim_run(s, s->now + 5 * MR_SECOND, false);
    mr_sched_check(s->sched);
    check_leaks(s);
    sim_sched_count(s);
    s->count.steps = s->steps;
    if (!o->quiet)
        (void)printf("seed %" PRIu64 ": %" PRIu64 " steps, %" PRIu64 " starts, %" PRIu64
                     " deaths, %" PRIu64 " crashes, %" PRIu64 " cuts, %" PRIu64 " sleeps, %" PRIu64
                     " stores, %" PRIu64 " recomputed, %" PRIu64 " children, %" PRIu64
                     " moves, %" PRIu64 " squeezes, %" PRIu64 " used up, %" PRIu64 "/%" PRIu64
                     "/%" PRIu64 " jobs\n",
            seed, s->steps, s->count.starts, s->count.deaths, s->count.crashes,
            s->count.disconnects, s->count.sleeps, s->count.stores, s->count.recomputed,
            s->count.children, s->count.moves, s->count.squeezes, s->count.used_up,
            s->count.jobs_done, s->count.jobs_failed, s->count.jobs_cancelled);
    add_up(&s->count);
    digest = (digest << 1 | digest >> 63) ^ s->digest;
    sim_tear_down(s);
    sim_current = NULL;
    mr_release(s);
}

static uint64_t number(const char *name, const char *text)
{
    char *end = NULL;
    uint64_t v = text ? strtoull(text, &end, 0) : 0;
    if (text && end != text && !*end) return v;
    (void)fprintf(stderr, "sim: %s takes a number\n", name);
    exit(2);
}

/* Prints how often the cases happened that a run of many seeds has to cover. False: a case that is
 * wanted did not happen. */
static bool tell_coverage(const struct options *o)
{
    bool is_torn = o->has_tears || o->has_loops || o->has_templates;
    const struct {
        const char *what;
        uint64_t n;
        bool is_wanted;
    } rows[] = {
        {"used up", totals.used_up, true},
        {"strands cut", totals.cuts, true},
        {"strands lost in the middle", totals.torn, is_torn},
        {"values lost that were to be used up", totals.lost_locals, is_torn},
        {"instances of templates", totals.instances, o->has_templates},
        {"placed by the cache", totals.cached, o->has_templates || o->has_loops},
        {"places repaired", totals.repaired, o->has_templates || o->has_loops},
        {"places made", totals.scored, true},
        {"roots held back", totals.roots_held, false}, /* happens in few seeds only */
        {"ends of loops read back", totals.ends_read, o->has_templates || o->has_loops},
        {"times that Redis rewound", totals.rewinds, o->has_rewinds},
        {"jobs lost with it", totals.lost_jobs, o->has_rewinds},
        {"epochs raised", totals.raised, o->has_rewinds},
        {"small jobs that passed large ones", totals.fair, o->has_fair},
        {"failures of tasks by a store's death", totals.store_failures, o->has_stores},
        {"loops read back before their end", totals.rounds_read, o->has_loops},
    };
    bool has_all = true;
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        (void)printf("  %s %" PRIu64 "%s\n", rows[i].what, rows[i].n,
            rows[i].is_wanted && !rows[i].n ? ": none, and there should be" : "");
        has_all &= rows[i].n || !rows[i].is_wanted;
    }
    return has_all;
}

int main(int argc, char **argv)
{
    struct options o = {.start = 1, .seeds = 1, .check_every = 1};
    for (int i = 1; i < argc; i++) {
        struct mr_str a = mr_str(argv[i]);
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (mr_str_eq(a, MR_STR("--trace")))
            o.trace = true;
        else if (mr_str_eq(a, MR_STR("--quiet")))
            o.quiet = true;
        else if (mr_str_eq(a, MR_STR("--roles")))
            o.has_roles = true;
        else if (mr_str_eq(a, MR_STR("--loops")))
            o.has_loops = true;
        else if (mr_str_eq(a, MR_STR("--templates")))
            o.has_templates = true;
        else if (mr_str_eq(a, MR_STR("--tears")))
            o.has_tears = true;
        else if (mr_str_eq(a, MR_STR("--rewinds")))
            o.has_rewinds = true;
        else if (mr_str_eq(a, MR_STR("--stores")))
            o.has_stores = true;
        else if (mr_str_eq(a, MR_STR("--fair")))
            o.has_fair = true;
        else if (mr_str_eq(a, MR_STR("--schedules")))
            return sim_schedules(value);
        else if (mr_str_eq(a, MR_STR("--covers")))
            o.covers = true;
        else if (mr_str_eq(a, MR_STR("--start")))
            o.start = number(argv[i++], value);
        else if (mr_str_eq(a, MR_STR("--seed")))
            o.start = number(argv[i++], value);
        else if (mr_str_eq(a, MR_STR("--seeds")))
            o.seeds = number(argv[i++], value);
        else if (mr_str_eq(a, MR_STR("--check-every")))
            o.check_every = number(argv[i++], value);
        else if (mr_str_eq(a, MR_STR("--plant")))
            o.plant = (uint32_t)number(argv[i++], value);
        else if (mr_str_eq(a, MR_STR("--faults"))) {
            o.faults = (uint32_t)number(argv[i++], value);
            o.has_faults = true;
        } else {
            (void)fprintf(stderr,
                "sim [--seed N | --start N --seeds N] [--check-every STEPS] "
                "[--faults MASK] [--plant BUG] [--roles] [--loops] [--templates] [--tears] "
                "[--rewinds] [--stores] [--fair] "
                "[--covers] [--trace] [--quiet]\n"
                "sim --schedules [FILE]\n");
            return 2;
        }
    }
    struct sigaction sa = {.sa_handler = on_abort};
    (void)sigaction(SIGABRT, &sa, NULL);
    o.check_every = MR_MAX(o.check_every, 1u);
    for (uint64_t i = 0; i < o.seeds; i++)
        one(&o, o.start + i);
    (void)printf("%" PRIu64 " seeds: %" PRIu64 " steps, %" PRIu64 " starts, %" PRIu64
                 " deaths, %" PRIu64 " crashes, %" PRIu64 " recomputed, jobs %" PRIu64
                 " done %" PRIu64 " failed %" PRIu64 " cancelled, digest %016" PRIx64 "\n",
        o.seeds, totals.steps, totals.starts, totals.deaths, totals.crashes, totals.recomputed,
        totals.jobs_done, totals.jobs_failed, totals.jobs_cancelled, digest);
    bool has_all = tell_coverage(&o);
    if (o.plant) (void)fprintf(stderr, "the planted bug %" PRIu32 " was not caught\n", o.plant);
    return o.plant || (o.covers && !has_all) ? 1 : 0;
}
