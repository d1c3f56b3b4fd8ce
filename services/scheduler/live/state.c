#include "services/scheduler/live/state.h"

#include "account/class.h"
#include "base/alloc.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "services/scheduler/base/job_lookup.h"
#include "services/scheduler/core/running.h"
#include "services/scheduler/live/alarm.h"
#include "services/scheduler/live/live.h"
#include "services/scheduler/live/lost.h"
#include "services/scheduler/live/text.h"
#include "services/scheduler/live/usage.h"
#include "services/scheduler/telemetry/cluster_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* limit of jobs that a search for unfinished jobs looks at, the newest first */
#define JOBS_LOOKED_MAX 4096u
/* limit of a job's operators that are compared */
#define JOB_OPS_LOOKED_MAX 1024u
/* for how long an alarm tells that a worker or store was lost */
#define LOST_SHOWN (60 * MR_SECOND)
/* After this time without a report, a gateway or trainer counts as silent. It reports once a
 * second, or every 3 s while it is idle. */
#define SERVICE_SILENT (10 * MR_SECOND)

double mr_live_speed_next(struct mr_live_speed *s, mr_time now, uint64_t tasks_done)
{
    uint32_t oldest = s->count < MR_LIVE_SPEED_POINTS ? 0 : s->count % MR_LIVE_SPEED_POINTS;
    bool is_first = !s->count;
    mr_time since = s->points[oldest].at;
    uint64_t done = tasks_done - s->points[oldest].tasks_done;
    s->points[s->count % MR_LIVE_SPEED_POINTS].at = now;
    s->points[s->count % MR_LIVE_SPEED_POINTS].tasks_done = tasks_done;
    s->count++;
    if (is_first || now <= since) return 0;
    return (double)done * (double)MR_SECOND / (double)(now - since);
}

struct making { /* the state that is being made */
    struct mr_shell *sh;
    mr_time now;
    Millrace__V1__LiveState m;
    Millrace__V1__LiveMemory memory;
    struct mr_alarms alarms;
    struct mr_alarm_limits limits;
    struct mr_lost lost;
};

static char *text(struct mr_shell *sh, struct mr_str s)
{
    char *out = mr_shell_take(sh, MR_LIVE_TEXT_BYTES);
    mr_live_text(s, out, MR_LIVE_TEXT_BYTES);
    return out;
}

static mr_duration since(const struct making *k, mr_time at)
{
    return k->now - MR_MIN(at, k->now);
}

/* ---- what the slots do ----------------------------------------------------------------------- */

static const enum mr_account_class class_of[MR_SCHED_IDLES] = {
    [MR_SCHED_IDLE_NO_WORK] = MR_ACCOUNT_NO_WORK,
    [MR_SCHED_IDLE_DEPENDENCY] = MR_ACCOUNT_DEPENDENCY,
    [MR_SCHED_IDLE_IMBALANCE] = MR_ACCOUNT_IMBALANCE,
    [MR_SCHED_IDLE_DECIDE] = MR_ACCOUNT_DECIDE,
    [MR_SCHED_IDLE_MEMORY] = MR_ACCOUNT_MEMORY,
    [MR_SCHED_IDLE_RESTRICTED] = MR_ACCOUNT_RESTRICTED,
    [MR_SCHED_IDLE_JOURNAL] = MR_ACCOUNT_JOURNAL,
    [MR_SCHED_IDLE_STOPPED] = MR_ACCOUNT_STOPPED,
};

static void doing_add(
    struct making *k, enum mr_account_class class, struct mr_str op, uint32_t slots)
{
    if (!slots) return;
    Millrace__V1__LiveSlots *row = mr_shell_take(k->sh, sizeof *row);
    millrace__v1__live_slots__init(row);
    row->class_ = mr_unconst(mr_account_class_name(class));
    row->op = text(k->sh, op);
    row->slots = slots;
    k->m.doing[k->m.n_doing++] = row;
}

/* Adds the operators with the most slots, and the sum of the others as operator "". */
static void busy_out(struct making *k, uint32_t *by_op, uint32_t ops)
{
    uint32_t rest = by_op[0];
    for (int i = 0; i < MR_LIVE_OPS_MAX; i++) {
        uint32_t best = 0, slots = 0;
        for (uint32_t op = 1; op <= ops; op++)
            if (by_op[op] > slots) {
                best = op;
                slots = by_op[op];
            }
        if (!best) break;
        doing_add(k, MR_ACCOUNT_COMPUTE, mr_sched_op_name(k->sh->core, best), slots);
        by_op[best] = 0;
    }
    for (uint32_t op = 1; op <= ops; op++)
        rest += by_op[op];
    doing_add(k, MR_ACCOUNT_COMPUTE, MR_STR(""), rest);
}

static void doing_out(struct making *k)
{
    struct mr_sched_doing d;
    uint32_t ops = mr_sched_ops_count(k->sh->core);
    uint32_t *by_op = mr_shell_take(k->sh, (ops + 1) * sizeof *by_op);
    memset(by_op, 0, (ops + 1) * sizeof *by_op);
    mr_sched_doing(k->sh->core, by_op, &d);
    size_t rows = MR_LIVE_OPS_MAX + 1 + MR_SCHED_IDLES;
    k->m.doing = mr_shell_take(k->sh, rows * sizeof *k->m.doing);
    k->m.slots = d.slots;
    busy_out(k, by_op, ops);
    for (uint32_t i = 0; i < MR_SCHED_IDLES; i++)
        doing_add(k, class_of[i], MR_STR(""), d.idle[i]);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static int by_tasks(const void *a, const void *b)
{
    const struct mr_sched_op_tasks *x = a, *y = b;
    return x->tasks > y->tasks ? -1 : x->tasks < y->tasks;
}

static void job_ops_out(struct making *k, mr_job_id id, Millrace__V1__LiveJob *m)
{
    struct mr_shell *sh = k->sh;
    struct mr_sched_op_tasks *ops = mr_shell_take(sh, JOB_OPS_LOOKED_MAX * sizeof *ops);
    uint32_t n = 0, count;
    while (n < JOB_OPS_LOOKED_MAX && mr_sched_job_op(sh->core, id, n, &ops[n]))
        n++;
    count = n;
    if (n) qsort(ops, n, sizeof *ops, by_tasks);
    n = MR_MIN(n, (uint32_t)MR_LIVE_JOB_OPS_MAX);
    m->ops = mr_shell_take(sh, (n + 1) * sizeof *m->ops);
    for (uint32_t i = 0; i < n; i++) {
        Millrace__V1__LiveOp *row = mr_shell_take(sh, sizeof *row);
        millrace__v1__live_op__init(row);
        row->op = text(sh, ops[i].op);
        row->tasks = ops[i].tasks;
        row->ended = ops[i].ended;
        m->ops[m->n_ops++] = row;
    }
    m->ops_more = count - n;
}

static Millrace__V1__LiveJob *job_out(struct making *k, const struct mr_sched_job_info *info)
{
    struct mr_shell *sh = k->sh;
    Millrace__V1__LiveJob *m = mr_shell_take(sh, sizeof *m);
    char id[MR_JOB_ID_TEXT_MAX];
    millrace__v1__live_job__init(m);
    mr_job_id_format(info->id, id);
    m->id = mr_shell_text(sh, mr_str(id));
    m->name = text(sh, info->graph->job.name);
    m->state = (Millrace__V1__JobState)info->state;
    m->created_ns = info->created_wall_ns;
    for (uint32_t i = MR_TASK_WAITING; i < MR_TASK_STATES; i++) {
        m->tasks += info->counts[i];
        if (i > MR_TASK_RUNNING) m->ended += info->counts[i];
    }
    m->failed = info->counts[MR_TASK_ERRED];
    m->sent = info->counts[MR_TASK_RUNNING];
    m->ready = info->counts[MR_TASK_READY];
    job_ops_out(k, info->id, m);
    return m;
}

static void jobs_out(struct making *k)
{
    struct mr_sched_job_info info;
    const struct mr_sched *core = k->sh->core;
    mr_job_id id = mr_sched_job_newest(core);
    k->m.jobs = mr_shell_take(k->sh, MR_LIVE_JOBS_MAX * sizeof *k->m.jobs);
    for (uint32_t looked = 0; id.v && looked < JOBS_LOOKED_MAX; looked++) {
        if (k->m.n_jobs == MR_MIN((uint64_t)MR_LIVE_JOBS_MAX, k->m.jobs_running)) break;
        if (mr_sched_job(core, id, &info) && info.accepted && !mr_job_is_over(info.state))
            k->m.jobs[k->m.n_jobs++] = job_out(k, &info);
        id = mr_sched_job_older(core, id);
    }
    k->m.jobs_more = k->m.jobs_running - MR_MIN((uint64_t)k->m.n_jobs, k->m.jobs_running);
}

/* ---- workers --------------------------------------------------------------------------------- */

static void worker_out(struct making *k, uint32_t slot, const struct mr_sched_worker_info *w)
{
    struct mr_shell *sh = k->sh;
    const struct mr_process_usage *u = mr_usage_of_worker(sh, slot);
    mr_duration silent = since(k, w->last_heard);
    bool is_heard = w->is_connected && silent < mr_alarm_silence(&k->limits);
    mr_alarms_worker(&k->alarms, &k->limits, w->name, w->is_connected, silent);
    mr_lost_here(&k->lost, false, w->name);
    k->m.workers_connected += w->is_connected;
    k->m.workers_silent += !is_heard;
    k->m.workers_retiring += w->is_retiring;
    k->memory.workers_used_bytes += w->memory_used_bytes;
    k->memory.workers_bytes += w->memory_bytes;
    if (k->m.n_workers == MR_LIVE_WORKERS_MAX) {
        k->m.workers_more++;
        return;
    }
    Millrace__V1__LiveWorker *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__live_worker__init(m);
    m->name = text(sh, w->name);
    m->node = text(sh, w->node);
    m->state = mr_unconst(!is_heard ? "silent" : w->is_retiring ? "retiring" : "connected");
    m->slots = w->slots;
    m->busy = mr_sched_worker_busy(sh->core, slot);
    m->queued = w->sent - MR_MIN(w->sent, m->busy);
    m->memory_bytes = w->memory_bytes;
    m->memory_used_bytes = w->memory_used_bytes;
    m->cpu_milli = u->rates.cpu_milli;
    m->received_per_s = u->rates.received_per_s;
    m->sent_per_s = u->rates.sent_per_s;
    k->m.workers[k->m.n_workers++] = m;
}

static void workers_out(struct making *k)
{
    uint32_t slots = mr_sched_worker_slots(k->sh->core);
    k->m.workers = mr_shell_take(k->sh, MR_LIVE_WORKERS_MAX * sizeof *k->m.workers);
    for (uint32_t i = 0; i < slots; i++) {
        struct mr_sched_worker_info w;
        if (mr_sched_worker(k->sh->core, i, &w)) worker_out(k, i, &w);
    }
}

/* ---- services -------------------------------------------------------------------------------- */

/* Adds a service. `u`: what its process uses; NULL: not known. */
static void service_out(struct making *k, const char *kind, struct mr_str name, const char *health,
    const struct mr_process_usage *u)
{
    if (k->m.n_services == MR_LIVE_SERVICES_MAX) {
        k->m.services_more++;
        return;
    }
    Millrace__V1__LiveService *m = mr_shell_take(k->sh, sizeof *m);
    millrace__v1__live_service__init(m);
    m->kind = mr_unconst(kind);
    m->name = text(k->sh, name);
    m->health = mr_unconst(health);
    if (u) {
        m->memory_bytes = u->memory_bytes;
        m->cpu_milli = u->rates.cpu_milli;
        m->received_per_s = u->rates.received_per_s;
        m->sent_per_s = u->rates.sent_per_s;
    }
    k->m.services[k->m.n_services++] = m;
}

static void store_out(struct making *k, uint32_t number, struct mr_str node)
{
    const struct mr_store_usage *u = mr_usage_of_store(k->sh, number);
    const struct mr_alarm_store facts = {.node = node,
        .silent = u->process.heard ? since(k, u->process.heard) : 0,
        .memory_bytes = u->budget_bytes,
        .used_bytes = u->used_bytes,
        .disk_full = mr_str(u->disk_full)};
    mr_alarms_store(&k->alarms, &k->limits, &facts);
    mr_lost_here(&k->lost, true, node);
    k->memory.stores_used_bytes += u->used_bytes;
    k->memory.stores_bytes += u->budget_bytes;
    k->memory.spilled_bytes += u->process.spilled_bytes;
    k->memory.objects += u->objects;
    bool is_silent = facts.silent >= mr_alarm_silence(&k->limits);
    const char *health = is_silent                                       ? "silent"
                         : facts.disk_full.n || mr_alarm_is_full(&facts) ? "full"
                                                                         : "ok";
    service_out(k, mr_sample_kind_name(MR_SAMPLE_OBJECTSTORE), node, health, &u->process);
}

static void services_out(struct making *k, bool is_redis_away)
{
    struct mr_shell *sh = k->sh;
    k->m.services = mr_shell_take(sh, MR_LIVE_SERVICES_MAX * sizeof *k->m.services);
    service_out(k, "redis", MR_STR("redis"), is_redis_away ? "away" : "ok", NULL);
    service_out(k, "scheduler", MR_STR("scheduler"), "ok", mr_usage_of_self(sh));
    const struct mr_service_usage *s;
    for (uint32_t i = 0; (s = mr_usage_service(sh, i)); i++) {
        mr_duration silent = since(k, s->process.heard);
        bool is_silent = silent >= SERVICE_SILENT;
        if (is_silent) mr_alarms_service_silent(&k->alarms, mr_str(s->name), silent);
        const char *kind = mr_sample_kind_name(s->kind);
        struct mr_str name = mr_str(s->name + strlen(kind) + 1); /* without "gateway@" */
        service_out(k, kind, name, is_silent ? "silent" : "ok", &s->process);
    }
    uint32_t stores = mr_sched_stores_count(sh->core);
    for (uint32_t i = 1; i <= stores; i++) {
        uint64_t incarnation;
        struct mr_str node, address;
        bool is_alive;
        if (mr_sched_store(sh->core, i, &incarnation, &node, &address, &is_alive) && is_alive)
            store_out(k, i, node);
    }
}

/* ---- alarms ---------------------------------------------------------------------------------- */

/* Tells which workers and stores were lost in the last minute and have not come back. */
static void lost_out(struct making *k, uint64_t wall_ns)
{
    for (uint32_t i = 0; i < k->lost.count; i++) {
        const struct mr_lost_one *x = &k->lost.at[i];
        mr_duration ago = wall_ns - MR_MIN(wall_ns, x->wall_ns);
        if (x->is_here) continue;
        if (x->is_store)
            mr_alarms_store_lost(&k->alarms, x->name, ago);
        else
            mr_alarms_worker_lost(&k->alarms, x->name, ago);
    }
}

static void alarms_out(struct making *k)
{
    const struct mr_alarms *a = &k->alarms;
    k->m.alarms = mr_shell_take(k->sh, MR_ALARMS_MAX * sizeof *k->m.alarms);
    for (uint32_t i = 0; i < a->count; i++) {
        Millrace__V1__LiveAlarm *m = mr_shell_take(k->sh, sizeof *m);
        millrace__v1__live_alarm__init(m);
        m->kind = mr_unconst(a->at[i].kind);
        m->subject = mr_unconst(a->at[i].subject);
        m->text = mr_unconst(a->at[i].text);
        k->m.alarms[k->m.n_alarms++] = m;
    }
    k->m.alarms_more = a->more;
}

/* Adds the alarms about the whole cluster, which come first. */
static void alarms_begin(struct making *k, const struct mr_sched_totals *t, bool is_redis_away)
{
    const struct mr_alarm_cluster facts = {.is_redis_away = is_redis_away,
        .is_recovering = t->is_recovering,
        .workers = t->workers,
        .stores = t->stores};
    mr_alarms_cluster(&k->alarms, &facts);
}

void mr_live_render(struct mr_shell *sh, mr_time now, bool is_redis_away,
    struct mr_live_speed *speed, struct mr_buf *out)
{
    mr_pb_arena_clear(&sh->scratch);
    struct making *k = mr_shell_take(sh, sizeof *k);
    struct mr_sched_totals t;
    char incarnation[24];
    uint64_t wall_ns = mr_clock_wall();
    mr_sched_totals(sh->core, &t);
    *k = (struct making){.sh = sh,
        .now = now,
        .m = MILLRACE__V1__LIVE_STATE__INIT,
        .memory = MILLRACE__V1__LIVE_MEMORY__INIT,
        .limits = {sh->options.core.heartbeat, sh->options.core.lease}};
    (void)snprintf(incarnation, sizeof incarnation, "%016" PRIx64, sh->options.core.incarnation);
    mr_lost_find(mr_cluster_watch_ring(sh), wall_ns - LOST_SHOWN, &k->lost);
    k->m.time_ns = wall_ns;
    k->m.scheduler = incarnation;
    k->m.epoch = t.epoch;
    k->m.tasks_done = t.tasks_done;
    k->m.tasks_per_s = mr_live_speed_next(speed, now, t.tasks_done);
    k->m.tasks_ready = t.tasks_ready;
    k->m.jobs_running = t.jobs_running;
    k->m.memory = &k->memory;
    alarms_begin(k, &t, is_redis_away);
    doing_out(k);
    jobs_out(k);
    workers_out(k);
    services_out(k, is_redis_away);
    lost_out(k, wall_ns);
    alarms_out(k);
    mr_pb_pack(&k->m.base, out);
}
