/* Each watched job has a list of its watchers; an index finds the watcher of a call. results.c
 * sends values to the watchers that want them. */
#include "services/scheduler/shell/watch.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "rpc/server/waits.h"
#include "services/scheduler/base/job_lookup.h"
#include "services/scheduler/shell/job_message.h"
#include "services/scheduler/shell/results.h"

#include <inttypes.h>
#include <stdio.h>

/* limit of the values in one SubmitResponse; the client fetches the other values with Results */
#define VALUES_BYTES_MAX ((size_t)8 << 20)

struct mr_watch {
    struct mr_watcher **slots; /* by slot; NULL: free */
    uint32_t slots_count;
    uint32_t slots_free; /* no slot below this one is free */
    struct mr_index by_call;
    struct mr_watched_job **jobs; /* ascending by id */
    uint32_t jobs_count;
    mr_time deadline; /* not later than the earliest deadline of a watcher */
};

static uint64_t call_hash(uint64_t call)
{
    return mr_hash_u64(call);
}

static bool call_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_watch *f = ctx;
    return f->slots[item]->call.v == *(const uint64_t *)key;
}

static uint64_t call_rehash(const void *ctx, uint32_t item)
{
    const struct mr_watch *f = ctx;
    return call_hash(f->slots[item]->call.v);
}

struct mr_watch *mr_watch_new(struct mr_shell *sh)
{
    (void)sh;
    struct mr_watch *f = mr_alloc(sizeof *f);
    mr_index_init(&f->by_call, 16);
    f->deadline = MR_NEVER;
    return f;
}

static uint32_t place_of(const struct mr_watch *f, mr_job_id job)
{
    uint32_t low = 0;
    uint32_t high = f->jobs_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (f->jobs[mid]->job.v < job.v)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct mr_watched_job *job_find(const struct mr_watch *f, mr_job_id job)
{
    uint32_t at = place_of(f, job);
    return at < f->jobs_count && f->jobs[at]->job.v == job.v ? f->jobs[at] : NULL;
}

static struct mr_watched_job *job_find_or_add(struct mr_watch *f, mr_job_id job)
{
    struct mr_watched_job *j = job_find(f, job);
    if (j) return j;
    uint32_t at = place_of(f, job);
    size_t old = f->jobs_count * sizeof(struct mr_watched_job *);
    f->jobs = mr_grow(f->jobs, old, old + sizeof(struct mr_watched_job *));
    memmove(&f->jobs[at + 1], &f->jobs[at], (f->jobs_count - at) * sizeof(struct mr_watched_job *));
    f->jobs_count++;
    j = mr_alloc(sizeof *j);
    j->job = job;
    mr_list_init(&j->watchers);
    f->jobs[at] = j;
    return j;
}

static void job_drop_if_empty(struct mr_watch *f, struct mr_watched_job *j)
{
    if (!mr_list_is_empty(&j->watchers) || j->busy) return;
    uint32_t at = place_of(f, j->job);
    memmove(
        &f->jobs[at], &f->jobs[at + 1], (f->jobs_count - at - 1) * sizeof(struct mr_watched_job *));
    f->jobs_count--;
    mr_release(j);
}

static void watcher_free(struct mr_watch *f, struct mr_watcher *w)
{
    (void)mr_index_remove(&f->by_call, call_hash(w->call.v), w->slot);
    f->slots[w->slot] = NULL;
    f->slots_free = MR_MIN(f->slots_free, w->slot);
    mr_list_remove(&w->node);
    mr_results_fini(w);
    job_drop_if_empty(f, w->job);
    mr_release(w);
}

void mr_watch_free(struct mr_watch **fp)
{
    struct mr_watch *f = *fp;
    *fp = NULL;
    if (!f) return;
    for (uint32_t i = 0; i < f->slots_count; i++)
        if (f->slots[i]) watcher_free(f, f->slots[i]);
    mr_index_fini(&f->by_call);
    mr_release(f->slots);
    mr_release(f->jobs);
    mr_release(f);
}

static struct mr_watcher *watcher_of(struct mr_shell *sh, const struct mr_rpc_call *call)
{
    uint64_t id = mr_rpc_call_id_of(call).v;
    uint32_t slot = mr_index_find(&sh->watch->by_call, call_hash(id), call_eq, sh->watch, &id);
    return slot == MR_INDEX_NONE ? NULL : sh->watch->slots[slot];
}

void mr_watch_call_done(struct mr_rpc_call *call)
{
    /* the first member of every context is the shell */
    struct mr_shell *sh = *(struct mr_shell **)mr_rpc_call_context(call);
    struct mr_watcher *w = watcher_of(sh, call);
    if (w) watcher_free(sh->watch, w);
}

static uint32_t slot_take(struct mr_watch *f)
{
    while (f->slots_free < f->slots_count && f->slots[f->slots_free])
        f->slots_free++;
    if (f->slots_free < f->slots_count) return f->slots_free;
    uint32_t more = MR_MAX(16u, f->slots_count * 2);
    f->slots = mr_grow(f->slots, f->slots_count * sizeof *f->slots, more * sizeof *f->slots);
    uint32_t at = f->slots_count;
    f->slots_count = more;
    return at;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void add_values(
    struct mr_shell *sh, Millrace__V1__SubmitResponse *m, const struct mr_sched_job_info *info)
{
    const struct mr_graph *g = info->graph;
    m->values = mr_shell_take(sh, g->targets_count * sizeof *m->values);
    for (uint32_t i = 0; i < g->targets_count && sh->scratch.bytes < VALUES_BYTES_MAX; i++) {
        struct mr_buf bytes;
        struct mr_sched_value value;
        mr_buf_init(&bytes, MR_INLINE_VALUE_BYTES_MAX);
        if (mr_sched_value(sh->core, info->id, g->targets[i], &bytes, &value) &&
            value.kind == MR_SCHED_VALUE_INLINE) {
            Millrace__V1__TargetValue *row = mr_shell_take(sh, sizeof *row);
            millrace__v1__target_value__init(row);
            row->key = mr_shell_text(sh, mr_graph_key(g, g->targets[i]));
            row->pack.len = bytes.n;
            row->pack.data = mr_shell_take(sh, bytes.n);
            memcpy(row->pack.data, bytes.p, bytes.n);
            m->values[m->n_values++] = row;
        }
        mr_buf_fini(&bytes);
    }
}

static void answer_job(
    struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_watcher_spec *spec)
{
    mr_pb_arena_clear(&sh->scratch);
    Millrace__V1__Job *job = mr_job_message(sh, spec->job);
    struct mr_sched_job_info info;
    if (!job || !mr_sched_job(sh->core, spec->job, &info)) {
        mr_shell_fail(call, MR_ENOENT, "the job was forgotten meanwhile");
        return;
    }
    if (spec->kind == MR_WATCH_GET) {
        (void)mr_rpc_call_reply_pb(call, &job->base);
        return;
    }
    Millrace__V1__SubmitResponse m = MILLRACE__V1__SUBMIT_RESPONSE__INIT;
    m.id = job->id;
    m.job = job;
    m.existed = spec->existed;
    if (spec->want_values && info.state == MR_JOB_DONE) add_values(sh, &m, &info);
    (void)mr_rpc_call_reply_pb(call, &m.base);
}

static void send_event(
    struct mr_shell *sh, struct mr_rpc_call *call, mr_job_id job, uint64_t sequence)
{
    char id[24] = "";
    mr_pb_arena_clear(&sh->scratch);
    Millrace__V1__JobEvent m = MILLRACE__V1__JOB_EVENT__INIT;
    m.job = mr_job_message(sh, job);
    if (sequence) (void)snprintf(id, sizeof id, "%" PRIu64, sequence);
    m.event_id = id;
    m.time_ns = mr_clock_wall();
    (void)mr_rpc_call_send_pb(call, &m.base);
}

/* Sends the job's event, if it is new. True: the call has ended. */
static bool watch(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, bool progress)
{
    bool over = mr_job_is_over(info->state);
    /* Any other number than the last is new. A lower number is new, too, after Redis was restored
     * from an older copy. */
    bool is_news = info->event_sequence && info->event_sequence != w->seen_event;
    if (is_news || !w->has_sent) {
        w->seen_event = info->event_sequence;
        w->has_sent = true;
        send_event(w->sh, call, info->id, info->event_sequence);
    } else if (progress && mr_rpc_call_is_writable(call) && !mr_rpc_call_queued_bytes(call)) {
        send_event(w->sh, call, info->id, 0);
    }
    if (over) (void)mr_rpc_call_finish_ok(call);
    return over;
}

/* Called when the job has changed or the wait is over: sends what the call waits for. True: the
 * call has ended. */
static bool look(struct mr_watcher *w, bool progress, bool timed_out)
{
    struct mr_shell *sh = w->sh;
    struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, w->call);
    struct mr_sched_job_info info;
    if (!call) return true;
    if (!mr_sched_job(sh->core, w->spec.job, &info)) {
        mr_shell_fail(call, MR_ENOENT, "the job was forgotten meanwhile");
        return true;
    }
    switch (w->spec.kind) {
    case MR_WATCH_GET:
    case MR_WATCH_SUBMIT:
        if (!mr_job_is_over(info.state) && !timed_out) return false;
        answer_job(sh, call, &w->spec);
        return true;
    case MR_WATCH_EVENTS: return watch(w, call, &info, progress);
    case MR_WATCH_RESULT:
    case MR_WATCH_RESULTS: return mr_results_look(w, call, &info, timed_out);
    }
    return true;
}

void mr_watch_add(struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_watcher_spec *spec)
{
    struct mr_watch *f = sh->watch;
    struct mr_sched_job_info info;
    bool known = mr_sched_job(sh->core, spec->job, &info);
    bool only_job = spec->kind == MR_WATCH_GET || spec->kind == MR_WATCH_SUBMIT;
    bool may_wait = spec->wait && !sh->is_stopping;
    if (!known || (only_job && (!may_wait || mr_job_is_over(info.state)))) {
        answer_job(sh, call, spec);
        return;
    }
    struct mr_watcher *w = mr_alloc(sizeof *w);
    w->sh = sh;
    w->spec = *spec;
    w->spec.nodes = NULL;
    w->call = mr_rpc_call_id_of(call);
    w->slot = slot_take(f);
    f->slots[w->slot] = w;
    mr_index_add(&f->by_call, call_hash(w->call.v), w->slot, call_rehash, f);
    w->job = job_find_or_add(f, spec->job);
    mr_list_add_tail(&w->job->watchers, &w->node);
    w->seen_event = spec->after_event;
    w->has_sent = spec->after_event != 0;
    w->deadline =
        spec->kind == MR_WATCH_EVENTS ? MR_NEVER : mr_time_after(mr_clock_now(), spec->wait);
    if (!only_job && spec->kind != MR_WATCH_EVENTS) mr_results_init(w, spec, &info);
    w->job->busy++;
    struct mr_watched_job *job = w->job;
    bool over = look(w, false, false);
    job->busy--;
    if (over)
        watcher_free(f, w);
    else
        f->deadline = MR_MIN(f->deadline, w->deadline);
    if (mr_list_is_empty(&job->watchers) && !over) job_drop_if_empty(f, job);
}

void mr_watch_job_changed(struct mr_shell *sh, mr_job_id job, bool progress)
{
    struct mr_watched_job *j = job_find(sh->watch, job);
    if (!j) return;
    j->busy++;
    MR_LIST_EACH(node, &j->watchers)
    {
        struct mr_watcher *w = MR_LIST_ITEM(node, struct mr_watcher, node);
        if (look(w, progress, false)) watcher_free(sh->watch, w);
    }
    j->busy--;
    job_drop_if_empty(sh->watch, j);
}

void mr_watch_targets_ready(
    struct mr_shell *sh, mr_job_id job, const uint32_t *nodes, uint32_t count)
{
    struct mr_watched_job *j = job_find(sh->watch, job);
    if (!j) return;
    /* a copy, since the core's buffer may move */
    uint32_t *copy = mr_copy(nodes, count * sizeof *nodes);
    j->busy++;
    MR_LIST_EACH(node, &j->watchers)
    {
        struct mr_watcher *w = MR_LIST_ITEM(node, struct mr_watcher, node);
        bool of_values = w->spec.kind == MR_WATCH_RESULT || w->spec.kind == MR_WATCH_RESULTS;
        if (!of_values) continue;
        mr_results_ready(w, copy, count);
        if (look(w, false, false)) watcher_free(sh->watch, w);
    }
    j->busy--;
    job_drop_if_empty(sh->watch, j);
    mr_release(copy);
}

void mr_watch_target_bytes(struct mr_shell *sh, mr_job_id job, uint32_t node, struct mr_str pack)
{
    struct mr_watched_job *j = job_find(sh->watch, job);
    struct mr_sched_job_info info;
    if (!j || !mr_sched_job(sh->core, job, &info)) return;
    j->busy++;
    MR_LIST_EACH(list, &j->watchers)
    {
        struct mr_watcher *w = MR_LIST_ITEM(list, struct mr_watcher, node);
        struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, w->call);
        if (!w->wanted || !call) continue;
        if (mr_results_bytes(w, call, &info, node, pack)) watcher_free(sh->watch, w);
    }
    j->busy--;
    job_drop_if_empty(sh->watch, j);
}

void mr_watch_target_failed(
    struct mr_shell *sh, mr_job_id job, uint32_t node, int code, struct mr_str why)
{
    if (!code) { /* the task failed, and its result has the error */
        mr_watch_targets_ready(sh, job, &node, 1);
        return;
    }
    struct mr_watched_job *j = job_find(sh->watch, job);
    struct mr_sched_job_info info;
    if (!j || !mr_sched_job(sh->core, job, &info)) return;
    /* The watchers get the error now. Asking the core again would bring the same failure
     * forever. */
    j->busy++;
    MR_LIST_EACH(list, &j->watchers)
    {
        struct mr_watcher *w = MR_LIST_ITEM(list, struct mr_watcher, node);
        struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, w->call);
        if (!w->wanted || !call) continue;
        if (mr_results_failed(w, call, &info, node, code, why)) watcher_free(sh->watch, w);
    }
    j->busy--;
    job_drop_if_empty(sh->watch, j);
}

void mr_watch_forgotten(struct mr_shell *sh, mr_job_id job)
{
    mr_watch_job_changed(sh, job, false);
}

void mr_watch_writable(struct mr_shell *sh, const struct mr_rpc_call *call)
{
    struct mr_watcher *w = watcher_of(sh, call);
    if (w && look(w, false, false)) watcher_free(sh->watch, w);
}

mr_time mr_watch_deadline(const struct mr_shell *sh)
{
    return sh->watch->deadline;
}

void mr_watch_tick(struct mr_shell *sh, mr_time now)
{
    struct mr_watch *f = sh->watch;
    if (f->deadline > now) return;
    f->deadline = MR_NEVER;
    for (uint32_t i = 0; i < f->slots_count; i++) {
        struct mr_watcher *w = f->slots[i];
        if (!w) continue;
        if (w->deadline <= now && look(w, false, true)) {
            watcher_free(f, w);
            continue;
        }
        /* the wait is over, but the answer to Result or Results is still being sent */
        if (w->deadline <= now) w->deadline = MR_NEVER;
        f->deadline = MR_MIN(f->deadline, w->deadline);
    }
}

void mr_watch_end_waits(struct mr_shell *sh, struct mr_str waiter)
{
    struct mr_watch *f = sh->watch;
    for (uint32_t i = 0; i < f->slots_count; i++) {
        struct mr_watcher *w = f->slots[i];
        if (!w || w->spec.kind == MR_WATCH_EVENTS || w->deadline == MR_NEVER) continue;
        const struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, w->call);
        if (call && mr_rpc_waits_of(call, waiter)) w->deadline = f->deadline = 0;
    }
}

void mr_watch_stop(struct mr_shell *sh)
{
    struct mr_watch *f = sh->watch;
    for (uint32_t i = 0; i < f->slots_count; i++) {
        struct mr_watcher *w = f->slots[i];
        struct mr_rpc_call *call = w ? mr_rpc_call_find(sh->loop, w->call) : NULL;
        if (!call) continue;
        bool only_job = w->spec.kind == MR_WATCH_GET || w->spec.kind == MR_WATCH_SUBMIT;
        if (!only_job || !look(w, false, true))
            mr_shell_fail(call, MR_EAWAY, "the scheduler is stopping: ask again");
        watcher_free(f, w);
    }
}
