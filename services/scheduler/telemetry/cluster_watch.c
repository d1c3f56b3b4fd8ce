#include "services/scheduler/telemetry/cluster_watch.h"

#include "base/alloc.h"
#include "host/clock.h"

#include <inttypes.h>
#include <stdio.h>

#define WATCHERS_MAX 1024u
/* How often the states of workers and stores are compared with those at the last comparison. This
 * finds changes that the core does not report in a note (struct mr_sched_note): for example, a
 * worker itself begins to retire. */
#define LOOK_EVERY (250 * MR_MS)
/* Pause between two comparisons for each worker and store, up to LOOK_EVERY. A comparison takes
 * about a thirtieth of this time (bench/c/live_bench.c). After an outage of the network, thousands
 * of workers change one after another, and the core thread would do little else than compare. */
#define LOOK_PAUSE MR_US
/* limit of unsent bytes of one stream; further events wait until the client has read */
#define QUEUED_BYTES_MAX ((size_t)256 << 10)

static_assert((int)MR_CLUSTER_GAP == MILLRACE__V1__CLUSTER_CHANGE__CLUSTER_CHANGE_GAP, "as told");
static_assert(
    (int)MR_CLUSTER_JOB_FORGOTTEN == MILLRACE__V1__CLUSTER_CHANGE__CLUSTER_CHANGE_JOB_FORGOTTEN,
    "as told");

struct watcher {
    struct mr_list node;
    mr_rpc_call_id call;
    uint64_t after; /* number of the last event that was sent or skipped */
    bool without_jobs;
};

struct known { /* a worker or a store, as it was at the last comparison */
    struct mr_cluster_seen seen;
    char *name, *node;
};

struct mr_cluster_watch {
    struct mr_cluster_ring ring;
    struct mr_list watchers;
    uint32_t watchers_count;
    struct known *workers, *stores;   /* workers by slot, stores by number */
    uint32_t workers_max, stores_max; /* stores have the numbers 1 to stores_max */
    mr_time looked;
    bool is_dirty;
    uint64_t told; /* number of the newest event that all streams were offered */
};

struct mr_cluster_watch *mr_cluster_watch_new(const struct mr_shell *sh)
{
    struct mr_cluster_watch *c = mr_alloc(sizeof *c);
    mr_cluster_ring_init(&c->ring, sh->options.events_kept);
    mr_list_init(&c->watchers);
    c->workers_max = sh->options.core.workers_max;
    c->stores_max = sh->options.core.stores_max;
    c->workers = mr_alloc_array(c->workers_max, sizeof *c->workers);
    c->stores = mr_alloc_array((size_t)c->stores_max + 1, sizeof *c->stores);
    c->is_dirty = true;
    return c;
}

static void watcher_free(struct mr_cluster_watch *c, struct watcher *w)
{
    mr_list_remove(&w->node);
    c->watchers_count--;
    mr_release(w);
}

static void known_fini(struct known *k)
{
    mr_release(k->name);
    mr_release(k->node);
    *k = (struct known){0};
}

void mr_cluster_watch_free(struct mr_cluster_watch **cp)
{
    struct mr_cluster_watch *c = *cp;
    *cp = NULL;
    if (!c) return;
    MR_LIST_EACH(node, &c->watchers)
    watcher_free(c, MR_LIST_ITEM(node, struct watcher, node));
    for (uint32_t i = 0; i < c->workers_max; i++)
        known_fini(&c->workers[i]);
    for (uint32_t i = 0; i <= c->stores_max; i++)
        known_fini(&c->stores[i]);
    mr_release(c->workers);
    mr_release(c->stores);
    mr_cluster_ring_fini(&c->ring);
    mr_release(c);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct mr_cluster_event *add(struct mr_shell *sh, enum mr_cluster_change change)
{
    return mr_cluster_ring_add(&sh->cluster_watch->ring, change, mr_clock_wall());
}

void mr_cluster_watch_job(struct mr_shell *sh, mr_job_id job, enum mr_job_state state)
{
    struct mr_cluster_event *e = add(sh, MR_CLUSTER_JOB_STATE);
    e->job = job;
    e->state = (int)state;
}

void mr_cluster_watch_forgotten(struct mr_shell *sh, mr_job_id job)
{
    add(sh, MR_CLUSTER_JOB_FORGOTTEN)->job = job;
}

void mr_cluster_watch_dirty(struct mr_shell *sh)
{
    sh->cluster_watch->is_dirty = true;
}

static void add_about(struct mr_shell *sh, enum mr_cluster_change change, const struct known *k)
{
    struct mr_cluster_event *e = add(sh, change);
    e->worker = k->name ? mr_copy_text(k->name) : NULL;
    e->node = k->node ? mr_copy_text(k->node) : NULL;
}

static bool is_end(enum mr_cluster_change change)
{
    return change == MR_CLUSTER_WORKER_LEFT || change == MR_CLUSTER_WORKER_LOST;
}

static char *copy_str(struct mr_str s)
{
    char *p = mr_alloc(s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

static void look_at_worker(struct mr_shell *sh, uint32_t slot, bool at_ends)
{
    struct known *k = &sh->cluster_watch->workers[slot];
    struct mr_sched_worker_info w = {0};
    enum mr_cluster_change changes[MR_CLUSTER_CHANGES_MAX];
    struct mr_cluster_seen now = {.is_there = mr_sched_worker(sh->core, slot, &w)};
    now.is_connected = w.is_connected;
    now.is_retiring = w.is_retiring;
    now.incarnation = w.incarnation;
    size_t count = mr_cluster_worker_changes(&k->seen, &now, changes);
    bool is_other = now.is_there && (!k->seen.is_there || k->seen.incarnation != now.incarnation);
    /* the first pass adds events of workers that left or were lost, the second pass all other
     * events */
    if (at_ends) {
        if (!count || !is_end(changes[0])) return;
        add_about(sh, changes[0], k);
        known_fini(k);
        return;
    }
    if (is_other) {
        known_fini(k);
        k->name = copy_str(w.name);
        k->node = copy_str(w.node);
    }
    for (size_t i = 0; i < count; i++)
        add_about(sh, changes[i], k);
    k->seen = now;
}

static void look_at_store(struct mr_shell *sh, uint32_t number, bool at_ends)
{
    struct known *k = &sh->cluster_watch->stores[number];
    struct mr_str node = {0}, address = {0};
    struct mr_cluster_seen now = {.is_there = true};
    if (!mr_sched_store(sh->core, number, &now.incarnation, &node, &address, &now.is_connected))
        return;
    if (!node.n) return; /* the store has not registered: only a worker has named it */
    enum mr_cluster_change change = mr_cluster_store_change(&k->seen, &now);
    if (at_ends != (change == MR_CLUSTER_STORE_LOST)) return;
    if (!k->node) k->node = copy_str(node);
    if (change != MR_CLUSTER_NOTHING) add_about(sh, change, k);
    if (change != MR_CLUSTER_NOTHING || now.is_connected) k->seen = now;
}

static void look(struct mr_shell *sh, mr_time now)
{
    struct mr_cluster_watch *c = sh->cluster_watch;
    uint32_t workers = mr_sched_worker_slots(sh->core), stores = mr_sched_stores_count(sh->core);
    c->looked = now;
    c->is_dirty = false;
    for (int at_ends = 1; at_ends >= 0; at_ends--) {
        for (uint32_t i = 0; i < workers; i++)
            look_at_worker(sh, i, at_ends);
        for (uint32_t i = 1; i <= stores && i <= c->stores_max; i++)
            look_at_store(sh, i, at_ends);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

static void send(
    struct mr_shell *sh, struct mr_rpc_call *call, uint64_t number, Millrace__V1__ClusterEvent *m)
{
    char id[MR_CLUSTER_ID_TEXT_MAX];
    mr_cluster_id_format(sh->options.core.incarnation, number, id);
    m->event_id = id;
    (void)mr_rpc_call_send_pb(call, &m->base);
}

static void send_gap(
    struct mr_shell *sh, struct mr_rpc_call *call, uint64_t before, uint64_t missed)
{
    Millrace__V1__ClusterEvent m = MILLRACE__V1__CLUSTER_EVENT__INIT;
    m.change = MILLRACE__V1__CLUSTER_CHANGE__CLUSTER_CHANGE_GAP;
    m.time_ns = mr_clock_wall();
    m.missed = missed;
    send(sh, call, before, &m);
}

static void send_scheduler(struct mr_shell *sh, struct mr_rpc_call *call, uint64_t number)
{
    char incarnation[24];
    Millrace__V1__ClusterEvent m = MILLRACE__V1__CLUSTER_EVENT__INIT;
    (void)snprintf(incarnation, sizeof incarnation, "%016" PRIx64, sh->options.core.incarnation);
    m.change = MILLRACE__V1__CLUSTER_CHANGE__CLUSTER_CHANGE_SCHEDULER;
    m.time_ns = sh->started_wall_ns;
    m.scheduler = incarnation;
    m.epoch = mr_sched_epoch(sh->core);
    send(sh, call, number, &m);
}

static void send_event(
    struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_cluster_event *e)
{
    char job[MR_JOB_ID_TEXT_MAX] = "";
    Millrace__V1__ClusterEvent m = MILLRACE__V1__CLUSTER_EVENT__INIT;
    if (e->job.v) mr_job_id_format(e->job, job);
    m.change = (Millrace__V1__ClusterChange)e->change;
    m.time_ns = e->wall_ns;
    if (e->worker) m.worker = e->worker;
    if (e->node) m.node = e->node;
    m.job = job;
    m.state = (Millrace__V1__JobState)e->state;
    send(sh, call, e->number, &m);
}

static bool is_of_job(const struct mr_cluster_event *e)
{
    return e->change == MR_CLUSTER_JOB_STATE || e->change == MR_CLUSTER_JOB_FORGOTTEN;
}

static void pump(struct mr_shell *sh, struct watcher *w)
{
    const struct mr_cluster_ring *ring = &sh->cluster_watch->ring;
    struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, w->call);
    const struct mr_cluster_event *e;
    uint64_t missed = 0;
    while (call && (e = mr_cluster_ring_next(ring, w->after, &missed))) {
        if (!mr_rpc_call_has_room(call, QUEUED_BYTES_MAX)) return;
        if (missed) send_gap(sh, call, e->number - 1, missed);
        if (!w->without_jobs || !is_of_job(e)) send_event(sh, call, e);
        w->after = e->number;
    }
}

/* Returns when the next comparison is due. */
static mr_time look_due(const struct mr_shell *sh)
{
    const struct mr_cluster_watch *c = sh->cluster_watch;
    uint32_t count = mr_sched_worker_slots(sh->core) + mr_sched_stores_count(sh->core);
    mr_duration pause = c->is_dirty ? count * (mr_duration)LOOK_PAUSE : LOOK_EVERY;
    return c->looked ? mr_time_after(c->looked, MR_MIN(pause, (mr_duration)LOOK_EVERY)) : 0;
}

mr_time mr_cluster_watch_deadline(const struct mr_shell *sh)
{
    return sh->cluster_watch->is_dirty ? look_due(sh) : MR_NEVER;
}

void mr_cluster_watch_tell(struct mr_shell *sh, mr_time now)
{
    struct mr_cluster_watch *c = sh->cluster_watch;
    if (now >= look_due(sh)) look(sh, now);
    if (c->told == c->ring.last) return;
    c->told = c->ring.last;
    MR_LIST_EACH(node, &c->watchers)
    pump(sh, MR_LIST_ITEM(node, struct watcher, node));
}

const struct mr_cluster_ring *mr_cluster_watch_ring(const struct mr_shell *sh)
{
    return &sh->cluster_watch->ring;
}

void mr_cluster_watch_stop(struct mr_shell *sh)
{
    MR_LIST_EACH(node, &sh->cluster_watch->watchers)
    {
        struct mr_rpc_call *call =
            mr_rpc_call_find(sh->loop, MR_LIST_ITEM(node, struct watcher, node)->call);
        if (call) mr_shell_fail(call, MR_EAWAY, "the scheduler is stopping: ask again");
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct context { /* the context of a call */
    struct mr_shell *sh;
    struct watcher *w; /* NULL: the request has not arrived yet */
};

static void on_open(struct mr_rpc_call *call)
{
    struct context *x = mr_alloc(sizeof *x);
    x->sh = mr_shell_of(call);
    mr_rpc_call_set_context(call, x);
}

static struct watcher *watcher_new(struct mr_shell *sh, struct mr_rpc_call *call)
{
    struct watcher *w = mr_alloc(sizeof *w);
    w->call = mr_rpc_call_id_of(call);
    mr_list_add_tail(&sh->cluster_watch->watchers, &w->node);
    sh->cluster_watch->watchers_count++;
    return w;
}

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct context *x = mr_rpc_call_context(call);
    struct mr_shell *sh = x->sh;
    const struct mr_cluster_ring *ring = &sh->cluster_watch->ring;
    uint64_t incarnation = 0, number = 0;
    const Millrace__V1__WatchClusterRequest *m =
        mr_shell_request(sh, call, msg, &millrace__v1__watch_cluster_request__descriptor);
    if (!m || x->w) return;
    bool resumes = m->last_event_id[0] != 0;
    if (resumes && !mr_cluster_id_parse(mr_str(m->last_event_id), &incarnation, &number)) {
        mr_shell_fail(call, MR_EINVAL, "last_event_id: \"%.60s\" is no event id of the cluster",
            m->last_event_id);
        return;
    }
    if (sh->cluster_watch->watchers_count == WATCHERS_MAX) {
        mr_shell_fail(call, MR_ELIMIT, "%u calls watch the cluster already", WATCHERS_MAX);
        return;
    }
    x->w = watcher_new(sh, call);
    x->w->without_jobs = m->without_jobs;
    bool is_ours = resumes && incarnation == sh->options.core.incarnation && number <= ring->last;
    x->w->after = is_ours ? number : resumes ? mr_cluster_ring_first(ring) - 1 : ring->last;
    if (resumes && !is_ours) send_gap(sh, call, x->w->after, 0);
    if (!is_ours) send_scheduler(sh, call, x->w->after);
    pump(sh, x->w);
}

static void on_writable(struct mr_rpc_call *call)
{
    const struct context *x = mr_rpc_call_context(call);
    if (x->w) pump(x->sh, x->w);
}

static void on_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct context *x = mr_rpc_call_context(call);
    (void)status;
    if (x->w) watcher_free(x->sh->cluster_watch, x->w);
    mr_release(x);
}

const struct mr_rpc_handler mr_cluster_watch_handler = {
    .on_open = on_open, .on_message = on_message, .on_writable = on_writable, .on_done = on_done};
