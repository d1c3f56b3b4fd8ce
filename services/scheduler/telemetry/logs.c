#include "services/scheduler/telemetry/logs.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "services/scheduler/history/task_output.h"
#include "services/scheduler/base/job_lookup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FOLLOWERS_MAX 1024u
/* limit of unsent bytes of one follower; further output waits until the client has read */
#define QUEUED_BYTES_MAX ((size_t)1 << 20)

struct follower {
    struct mr_list node;
    mr_rpc_call_id call;
    mr_job_id job;
    uint32_t index;   /* the followed task; MR_NODE_NONE: all tasks */
    uint64_t next;    /* position in the job's output from which to send */
    bool stays;       /* the call goes on until the task, or the job, ends */
    bool is_finished; /* the follower's call has ended */
};

struct mr_logs {
    struct mr_tasklog kept;
    struct mr_list followers;
    uint32_t followers_count;
    bool has_news; /* there is output that was not sent to the followers yet */
};

struct mr_logs *mr_logs_new(void)
{
    struct mr_logs *l = mr_alloc(sizeof *l);
    mr_tasklog_init(&l->kept, NULL);
    mr_list_init(&l->followers);
    return l;
}

static void follower_free(struct mr_logs *l, struct follower *f)
{
    mr_list_remove(&f->node);
    l->followers_count--;
    mr_release(f);
}

void mr_logs_free(struct mr_logs **lp)
{
    struct mr_logs *l = *lp;
    *lp = NULL;
    if (!l) return;
    MR_LIST_EACH(node, &l->followers)
    follower_free(l, MR_LIST_ITEM(node, struct follower, node));
    mr_tasklog_fini(&l->kept);
    mr_release(l);
}

/* ---- followers ------------------------------------------------------------------------------- */

static void send_piece(struct mr_shell *sh, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, const struct mr_tasklog_piece *p)
{
    char id[24];
    mr_pb_arena_clear(&sh->scratch);
    Millrace__V1__LogEvent m = MILLRACE__V1__LOG_EVENT__INIT;
    (void)snprintf(id, sizeof id, "%" PRIu64, p->at + p->text.n);
    m.event_id = id;
    m.key = mr_shell_text(sh, mr_graph_key(info->graph, p->index));
    m.attempt = p->attempt;
    m.worker = mr_shell_text(sh, p->worker);
    m.text = mr_shell_text(sh, p->text);
    m.dropped = p->lost;
    (void)mr_rpc_call_send_pb(call, &m.base);
}

/* True: the follower gets no more output. A worker sends a task's last output before the end of the
 * task, or with it. */
static bool is_over(
    struct mr_shell *sh, const struct follower *f, const struct mr_sched_job_info *info)
{
    struct mr_sched_task_info task = {0};
    if (!f->stays || mr_job_is_over(info->state)) return true;
    if (f->index == MR_NODE_NONE || !mr_sched_task(sh->core, f->job, f->index, &task)) return false;
    return task.state > MR_TASK_RUNNING || !task.op;
}

static void pump(struct mr_shell *sh, struct follower *f)
{
    struct mr_sched_job_info info;
    struct mr_tasklog_piece p;
    struct mr_rpc_call *call = mr_rpc_call_find(sh->loop, f->call);
    if (!call || f->is_finished) return;
    if (!mr_sched_job(sh->core, f->job, &info)) {
        f->is_finished = true;
        mr_shell_fail(call, MR_ENOENT, "the job was forgotten meanwhile");
        return;
    }
    bool over = is_over(sh, f, &info);
    while (mr_tasklog_next(&sh->logs->kept, f->job, f->index, f->next, &p)) {
        if (!mr_rpc_call_has_room(call, QUEUED_BYTES_MAX)) return;
        send_piece(sh, call, &info, &p);
        f->next = p.at + p.text.n;
    }
    /* output of other tasks is skipped */
    f->next = MR_MAX(f->next, mr_tasklog_position(&sh->logs->kept, f->job));
    if (!over) return;
    f->is_finished = true;
    (void)mr_rpc_call_finish_ok(call);
}

static void pump_job(struct mr_shell *sh, mr_job_id job)
{
    MR_LIST_EACH(node, &sh->logs->followers)
    {
        struct follower *f = MR_LIST_ITEM(node, struct follower, node);
        if (f->job.v == job.v) pump(sh, f);
    }
}

void mr_logs_job_changed(struct mr_shell *sh, mr_job_id job)
{
    if (sh->logs->followers_count) pump_job(sh, job);
}

void mr_logs_forget(struct mr_shell *sh, mr_job_id job)
{
    mr_tasklog_forget(&sh->logs->kept, job);
    mr_logs_job_changed(sh, job);
}

void mr_logs_writable(struct mr_shell *sh, const struct mr_rpc_call *call)
{
    uint64_t id = mr_rpc_call_id_of(call).v;
    MR_LIST_EACH(node, &sh->logs->followers)
    {
        struct follower *f = MR_LIST_ITEM(node, struct follower, node);
        if (f->call.v == id) pump(sh, f);
    }
}

void mr_logs_call_done(struct mr_shell *sh, const struct mr_rpc_call *call)
{
    uint64_t id = mr_rpc_call_id_of(call).v;
    MR_LIST_EACH(node, &sh->logs->followers)
    {
        struct follower *f = MR_LIST_ITEM(node, struct follower, node);
        if (f->call.v == id) follower_free(sh->logs, f);
    }
}

/* ---- output from workers --------------------------------------------------------------------- */

static void add(struct mr_shell *sh, uint32_t worker, mr_job_id job, uint32_t index,
    uint32_t attempt, struct mr_str text, uint64_t dropped)
{
    struct mr_sched_job_info info;
    struct mr_sched_worker_info who = {0};
    if (text.n > MR_TASK_LOG_BYTES_MAX) {
        dropped += text.n - MR_TASK_LOG_BYTES_MAX;
        text = mr_str_of(text.p + (text.n - MR_TASK_LOG_BYTES_MAX), MR_TASK_LOG_BYTES_MAX);
    }
    if (!text.n || !mr_sched_job(sh->core, job, &info) || index >= info.graph->nodes_count) return;
    (void)mr_sched_worker(sh->core, worker, &who);
    mr_tasklog_add(&sh->logs->kept, job, index, attempt, who.name, text, dropped);
    sh->logs->has_news = true;
}

void mr_logs_tell(struct mr_shell *sh)
{
    struct mr_logs *l = sh->logs;
    if (!l->has_news) return;
    l->has_news = false;
    MR_LIST_EACH(node, &l->followers)
    pump(sh, MR_LIST_ITEM(node, struct follower, node));
}

/* A failure carries the task's output, unless the worker sent the output before. */
static void failures(struct mr_shell *sh, uint32_t worker, const struct mr_ws_completed *c)
{
    for (uint32_t i = 0; i < c->failures_count; i++) {
        const struct mr_ws_failure *f = &c->failures[i];
        uint32_t run = 0, row = f->row;
        if (!f->log.n) continue;
        while (row >= c->tasks.runs[run].count)
            row -= c->tasks.runs[run++].count;
        mr_job_id job = c->tasks.runs[run].job;
        uint32_t index = c->tasks.index[f->row], attempt = c->tasks.attempt[f->row];
        if (!mr_tasklog_has(&sh->logs->kept, job, index, attempt))
            add(sh, worker, job, index, attempt, f->log, 0);
    }
}

void mr_logs_message(struct mr_shell *sh, uint32_t worker, const struct mr_ws_up *m)
{
    for (uint32_t i = 0; i < m->logs_count; i++) {
        const struct mr_ws_log *x = &m->logs[i];
        add(sh, worker, x->job, x->index, x->attempt, x->text, x->lost);
    }
    failures(sh, worker, &m->completed);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void mr_logs_answer(
    struct mr_shell *sh, struct mr_rpc_call *call, const Millrace__V1__LogsRequest *m)
{
    struct mr_sched_job_info info;
    struct mr_sched_task_info task = {0};
    struct mr_tasklog_tail tail;
    mr_job_id job;
    uint32_t node = 0;
    if (!mr_job_lookup(sh, call, m->id, &job, &info) || !mr_job_node(call, &info, m->key, &node))
        return;
    (void)mr_sched_task(sh->core, job, node, &task);
    Millrace__V1__LogsResponse r = MILLRACE__V1__LOGS_RESPONSE__INIT;
    r.attempt = task.attempt;
    if (mr_tasklog_tail(&sh->logs->kept, job, node, &tail)) {
        r.text = mr_shell_take(sh, tail.bytes + 1);
        mr_tasklog_copy(&sh->logs->kept, job, node, &tail, r.text);
        r.text[tail.bytes] = 0;
        r.attempt = tail.attempt;
        r.dropped = tail.lost;
        r.worker = mr_shell_text(sh, tail.worker);
    } else if (task.has_error) {
        /* no output is kept, as after a restart; the error still has the end of the output */
        r.text = mr_shell_text(sh, task.error.log);
        r.worker = mr_shell_text(sh, task.error.worker);
    }
    r.cut = r.dropped || strlen(r.text) >= MR_TASK_LOG_BYTES_MAX;
    r.job_dropped = mr_tasklog_dropped(&sh->logs->kept, job);
    (void)mr_rpc_call_reply_pb(call, &r.base);
}

void mr_logs_follow(
    struct mr_shell *sh, struct mr_rpc_call *call, const Millrace__V1__FollowLogsRequest *m)
{
    struct mr_sched_job_info info;
    mr_job_id job;
    uint32_t node = MR_NODE_NONE;
    char *end = NULL;
    if (!mr_job_lookup(sh, call, m->id, &job, &info)) return;
    if (m->key[0] && !mr_job_node(call, &info, m->key, &node)) return;
    uint64_t next = strtoull(m->last_event_id, &end, 10);
    if (*end || m->last_event_id[0] == '-') {
        mr_shell_fail(call, MR_EINVAL, "last_event_id: \"%.40s\" is no event id of a job's logs",
            m->last_event_id);
        return;
    }
    if (sh->logs->followers_count == FOLLOWERS_MAX) {
        mr_shell_fail(call, MR_ELIMIT, "%u calls follow logs already", FOLLOWERS_MAX);
        return;
    }
    struct follower *f = mr_alloc(sizeof *f);
    f->call = mr_rpc_call_id_of(call);
    f->job = job;
    f->index = node;
    f->stays = m->follow;
    /* a position beyond the end is from before a restart */
    f->next = next <= mr_tasklog_position(&sh->logs->kept, job) ? next : 0;
    mr_list_add_tail(&sh->logs->followers, &f->node);
    sh->logs->followers_count++;
    pump(sh, f);
}
