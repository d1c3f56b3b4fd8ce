#include "services/scheduler/live/usage.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/machine.h"
#include "services/scheduler/live/text.h"
#include "services/scheduler/telemetry/trace.h"

#include <inttypes.h>
#include <stdio.h>

#define SAMPLES_EVERY MR_SECOND
#define BLOCK_BYTES_MAX ((size_t)512 << 10)
/* A service that was silent for so long is dropped. */
#define SERVICE_KEPT (60 * MR_SECOND)
/* A new process of the same kind on the same node takes the place of one that was silent for so
 * long: the service was restarted. */
#define SERVICE_REPLACED (4 * MR_SECOND)

struct mr_usage {
    struct mr_process_usage *workers; /* by slot */
    struct mr_store_usage *stores;    /* by number */
    uint32_t workers_max, stores_max;
    struct mr_service_usage services[MR_USAGE_SERVICES_MAX];
    uint32_t services_count;
    struct mr_process_usage self;
    struct mr_buf *block; /* samples that the writer has not got yet; NULL: none */
    mr_time due;          /* when the block goes to the writer; MR_NEVER: there is none */
};

struct mr_usage *mr_usage_new(const struct mr_shell *sh)
{
    struct mr_usage *u = mr_alloc(sizeof *u);
    u->workers_max = sh->options.core.workers_max;
    u->stores_max = sh->options.core.stores_max;
    u->workers = mr_alloc_array(u->workers_max, sizeof *u->workers);
    u->stores = mr_alloc_array((size_t)u->stores_max + 1, sizeof *u->stores);
    u->due = MR_NEVER;
    return u;
}

void mr_usage_free(struct mr_usage **up)
{
    struct mr_usage *u = *up;
    *up = NULL;
    if (!u) return;
    if (u->block) mr_buf_fini(u->block);
    mr_release(u->block);
    mr_release(u->workers);
    mr_release(u->stores);
    mr_release(u);
}

/* ---- samples --------------------------------------------------------------------------------- */

struct process {
    enum mr_sample_kind kind;
    struct mr_str name, node;
};

static void sample_add(
    struct mr_usage *u, const struct process *who, const struct mr_process_usage *p)
{
    if (!u->block) {
        u->block = mr_alloc(sizeof *u->block);
        mr_buf_init(u->block, MR_TRACE_BLOCK_BYTES_MAX);
        mr_samples_begin(u->block);
        u->due = mr_time_after(p->heard, SAMPLES_EVERY);
    }
    const struct mr_sample s = {.process = who->name,
        .node = who->node,
        .kind = who->kind,
        .at = mr_clock_wall(),
        .values = {[MR_SAMPLE_MEMORY_BYTES] = p->memory_bytes,
            [MR_SAMPLE_CPU_MILLI] = p->rates.cpu_milli,
            [MR_SAMPLE_RECEIVED] = p->rates.received_per_s,
            [MR_SAMPLE_SENT] = p->rates.sent_per_s,
            [MR_SAMPLE_SPILLED_BYTES] = p->spilled_bytes,
            [MR_SAMPLE_WRITTEN] = p->rates.written_per_s,
            [MR_SAMPLE_QUEUED] = p->queued}};
    mr_samples_add(u->block, &s);
    if (u->block->n >= BLOCK_BYTES_MAX) u->due = 0;
}

/* Takes the counters of a process, and adds a sample. */
static void heard(struct mr_usage *u, struct mr_process_usage *p, const struct process *who,
    const struct mr_counters *now)
{
    p->heard = now->at;
    (void)mr_rates_next(&p->last, now, &p->rates);
    sample_add(u, who, p);
}

void mr_usage_worker_joined(struct mr_shell *sh, uint32_t slot)
{
    sh->usage->workers[slot] = (struct mr_process_usage){.heard = mr_clock_now()};
}

void mr_usage_store_joined(struct mr_shell *sh, uint32_t number, uint64_t budget_bytes)
{
    sh->usage->stores[number] =
        (struct mr_store_usage){.process.heard = mr_clock_now(), .budget_bytes = budget_bytes};
}

void mr_usage_worker(struct mr_shell *sh, uint32_t slot, const struct mr_ws_heartbeat *h)
{
    struct mr_usage *u = sh->usage;
    struct mr_sched_worker_info w;
    if (slot >= u->workers_max || !mr_sched_worker(sh->core, slot, &w)) return;
    struct mr_process_usage *p = &u->workers[slot];
    const struct process who = {MR_SAMPLE_WORKER, w.name, w.node};
    const struct mr_counters now = {.at = mr_clock_now(),
        .cpu_ns = h->cpu_ns,
        .received_bytes = h->received_bytes,
        .sent_bytes = h->sent_bytes};
    p->memory_bytes = h->memory_used_bytes;
    p->queued = h->queued;
    heard(u, p, &who, &now);
}

void mr_usage_store(struct mr_shell *sh, uint32_t number, const Millrace__V1__StoreHeartbeat *h)
{
    struct mr_usage *u = sh->usage;
    uint64_t incarnation;
    struct mr_str node, address;
    bool is_alive;
    if (number > u->stores_max ||
        !mr_sched_store(sh->core, number, &incarnation, &node, &address, &is_alive))
        return;
    struct mr_store_usage *s = &u->stores[number];
    char name[MR_USAGE_NAME_BYTES];
    (void)snprintf(name, sizeof name, "objectstore@%.*s", MR_STR_ARG(node));
    const struct process who = {MR_SAMPLE_OBJECTSTORE, mr_str(name), node};
    const struct mr_counters now = {.at = mr_clock_now(),
        .cpu_ns = h->cpu_ns,
        .received_bytes = h->received_bytes,
        .sent_bytes = h->sent_bytes,
        .written_bytes = h->written_bytes};
    s->used_bytes = h->used_bytes;
    s->objects = h->objects;
    (void)snprintf(
        s->disk_full, sizeof s->disk_full, "%.*s", (int)sizeof s->disk_full - 1, h->disk_full);
    s->process.memory_bytes = h->resident_bytes;
    s->process.spilled_bytes = h->spilled_bytes;
    heard(u, &s->process, &who, &now);
}

/* ---- gateways and trainers ------------------------------------------------------------------- */

static void services_clean(struct mr_usage *u, mr_time now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < u->services_count; i++)
        if (now < mr_time_after(u->services[i].process.heard, SERVICE_KEPT))
            u->services[kept++] = u->services[i];
    u->services_count = kept;
}

/* Returns the entry of the service, perhaps a new one. NULL: there is no room. */
static struct mr_service_usage *service_of(struct mr_usage *u, enum mr_sample_kind kind,
    const Millrace__V1__ReportUsageRequest *r, mr_time now)
{
    struct mr_service_usage *free = NULL;
    for (uint32_t i = 0; i < u->services_count; i++) {
        struct mr_service_usage *s = &u->services[i];
        if (s->kind != kind || strcmp(s->node, r->node) != 0) continue;
        if (s->pid == r->pid) return s;
        if (now >= mr_time_after(s->process.heard, SERVICE_REPLACED)) free = s;
    }
    if (!free && u->services_count == MR_USAGE_SERVICES_MAX) return NULL;
    if (!free) free = &u->services[u->services_count++];
    *free = (struct mr_service_usage){.kind = kind, .pid = r->pid};
    (void)snprintf(free->node, sizeof free->node, "%s", r->node);
    (void)snprintf(free->name, sizeof free->name, "%s@%.100s-%" PRIu32, mr_sample_kind_name(kind),
        r->node, r->pid);
    return free;
}

int mr_usage_report(
    struct mr_shell *sh, const Millrace__V1__ReportUsageRequest *r, struct mr_error *e)
{
    struct mr_usage *u = sh->usage;
    enum mr_sample_kind kind = MR_SAMPLE_GATEWAY;
    if (!strcmp(r->kind, mr_sample_kind_name(MR_SAMPLE_TRAINER)))
        kind = MR_SAMPLE_TRAINER;
    else if (strcmp(r->kind, mr_sample_kind_name(MR_SAMPLE_GATEWAY)) != 0)
        return mr_fail(
            e, MR_EINVAL, "kind: expected \"gateway\" or \"trainer\", not \"%.20s\"", r->kind);
    if (strlen(r->node) >= MR_USAGE_NAME_BYTES)
        return mr_fail(e, MR_EINVAL, "node: expected at most %d bytes", MR_USAGE_NAME_BYTES - 1);
    mr_time now = mr_clock_now();
    services_clean(u, now);
    struct mr_service_usage *s = service_of(u, kind, r, now);
    if (!s) return mr_fail(e, MR_ELIMIT, "%u services report already", MR_USAGE_SERVICES_MAX);
    const struct process who = {kind, mr_str(s->name), mr_str(s->node)};
    const struct mr_counters counters = {.at = now,
        .cpu_ns = r->cpu_ns,
        .received_bytes = r->received_bytes,
        .sent_bytes = r->sent_bytes};
    s->process.memory_bytes = r->memory_bytes;
    heard(u, &s->process, &who, &counters);
    return MR_OK;
}

/* ---- what is known --------------------------------------------------------------------------- */

const struct mr_process_usage *mr_usage_of_worker(const struct mr_shell *sh, uint32_t slot)
{
    return &sh->usage->workers[slot];
}

const struct mr_store_usage *mr_usage_of_store(const struct mr_shell *sh, uint32_t number)
{
    return &sh->usage->stores[number];
}

const struct mr_process_usage *mr_usage_of_self(const struct mr_shell *sh)
{
    return &sh->usage->self;
}

const struct mr_service_usage *mr_usage_service(const struct mr_shell *sh, uint32_t i)
{
    return i < sh->usage->services_count ? &sh->usage->services[i] : NULL;
}

/* ---- the scheduler --------------------------------------------------------------------------- */

static void look_at_self(struct mr_shell *sh, mr_time now)
{
    struct mr_usage *u = sh->usage;
    struct mr_sched_totals t;
    struct mr_rpc_traffic traffic = mr_rpc_traffic();
    const struct process who = {MR_SAMPLE_SCHEDULER, MR_STR("scheduler"), MR_STR("")};
    const struct mr_counters counters = {.at = now,
        .cpu_ns = mr_clock_process_cpu(),
        .received_bytes = traffic.received,
        .sent_bytes = traffic.sent};
    mr_sched_totals(sh->core, &t);
    u->self.memory_bytes = mr_machine_resident();
    u->self.queued = (uint32_t)MR_MIN(t.tasks_ready, (uint64_t)UINT32_MAX);
    heard(u, &u->self, &who, &counters);
}

mr_time mr_usage_deadline(const struct mr_shell *sh)
{
    return sh->usage->due;
}

void mr_usage_tick(struct mr_shell *sh, mr_time now)
{
    struct mr_usage *u = sh->usage;
    if (now < u->due) return;
    look_at_self(sh, now);
    services_clean(u, now);
    u->due = MR_NEVER;
    mr_trace_samples_give(sh, &u->block);
}
