/* Error texts of failed tasks: a ring of the texts of the last `failures_max` failures. A job has a
 * copy of its first failure, which is kept as long as the job. */
#include "services/scheduler/core/state/failure.h"

#include "base/alloc.h"
#include "services/scheduler/core/state/lookup.h"

#include <string.h>

#define MESSAGE_MAX 1000u
#define ARGUMENTS_MAX 1024u

static char *text_copy(struct mr_str t, size_t max, bool keep_end)
{
    if (!t.n) return NULL;
    size_t n = MR_MIN(t.n, max);
    char *copy = mr_alloc(n + 1);
    memcpy(copy, keep_end ? t.p + (t.n - n) : t.p, n);
    for (size_t i = 0; i < n; i++)
        if (!copy[i]) copy[i] = '?';
    return copy;
}

struct failure mr_sched__failure_make(
    struct mr_sched *s, uint32_t task, int code, struct mr_str message, const char *worker)
{
    const struct task *t = &s->tasks[task];
    return (struct failure){.task = task,
        .code = code,
        .attempts = t->attempt,
        .op = s->classes[t->class].op,
        .message = text_copy(message, MESSAGE_MAX, false),
        .worker = text_copy(mr_str(worker), NAME_BYTES, false)};
}

void mr_sched__failure_more(struct failure *st, struct mr_str arguments, struct mr_str log)
{
    st->arguments = text_copy(arguments, ARGUMENTS_MAX, false);
    st->log = text_copy(log, MR_TASK_LOG_BYTES_MAX, true);
}

void mr_sched__failure_fini(struct failure *st)
{
    mr_release(st->message);
    mr_release(st->arguments);
    mr_release(st->worker);
    mr_release(st->log);
    *st = (struct failure){.task = NONE};
}

void mr_sched__failure_copy(struct failure *to, const struct failure *from)
{
    *to = *from;
    to->message = from->message ? mr_copy_text(from->message) : NULL;
    to->arguments = from->arguments ? mr_copy_text(from->arguments) : NULL;
    to->worker = from->worker ? mr_copy_text(from->worker) : NULL;
    to->log = from->log ? mr_copy_text(from->log) : NULL;
}

static bool failure_eq(const void *ctx, uint32_t item, const void *key)
{
    return ((const struct mr_sched *)ctx)->failures.at[item].task == *(const uint32_t *)key;
}

static uint32_t find_failure(const struct mr_sched *s, uint32_t task)
{
    return mr_index_find(&s->failures.index, mr_hash_u64(task), failure_eq, s, &task);
}

static void drop_at(struct mr_sched *s, uint32_t at)
{
    struct failure *st = &s->failures.at[at];
    if (st->task == NONE) return;
    (void)mr_index_remove(&s->failures.index, mr_hash_u64(st->task), at);
    mr_sched__failure_fini(st);
}

void mr_sched__failure_put(struct mr_sched *s, uint32_t task, const struct failure *from)
{
    mr_sched__failure_drop(s, task);
    uint32_t at = s->failures.next;
    s->failures.next = (at + 1) % s->config.failures_max;
    drop_at(s, at);
    mr_sched__failure_copy(&s->failures.at[at], from);
    s->failures.at[at].task = task;
    mr_index_add(&s->failures.index, mr_hash_u64(task), at, NULL, NULL);
}

const struct failure *mr_sched__failure(const struct mr_sched *s, uint32_t task)
{
    uint32_t at = find_failure(s, task);
    if (at != MR_INDEX_NONE) return &s->failures.at[at];
    const struct job *j = job_of(s, task);
    return j->has_failure && j->failure.task == task ? &j->failure : NULL;
}

void mr_sched__failure_drop(struct mr_sched *s, uint32_t task)
{
    uint32_t at = find_failure(s, task);
    if (at != MR_INDEX_NONE) drop_at(s, at);
}

void mr_sched__failure_drop_job(struct mr_sched *s, uint32_t job)
{
    const struct job *j = &s->jobs[job];
    for (uint32_t i = 0; i < j->graph->nodes_count; i++)
        mr_sched__failure_drop(s, j->base + i);
}
