/* The output of a job is a list of pieces: a piece is one text that a worker sent. When a limit is
 * exceeded, the oldest bytes are evicted. */
#include "services/scheduler/history/task_output.h"

#include "base/alloc.h"
#include "base/limits.h"

#define JOB_BYTES_MAX ((size_t)4 << 20)
#define BYTES_MAX ((size_t)64 << 20)
#define CHARACTER_REST_MAX 3 /* continuation bytes that a character of UTF-8 can have */

struct task {
    uint32_t index, attempt; /* `attempt`: that of the task's last piece */
    struct mr_list pieces;   /* oldest first */
    size_t bytes;
};

struct mr_tasklog_job {
    uint64_t id;
    struct mr_list pieces;
    struct mr_index index; /* from the index of a task in the job to its place in `tasks` */
    struct task **tasks;   /* the tasks that have a piece */
    uint32_t tasks_count, tasks_room;
    size_t bytes;
    uint64_t position, dropped;
    /* the piece that the last reader got; that reader usually goes on behind it. NULL: none */
    struct piece *found;
};

struct piece {
    struct mr_list of_all, of_job, of_task;
    struct mr_tasklog_job *job;
    struct task *task;
    uint32_t attempt;
    uint64_t at;
    /* how many bytes of the task's output the worker dropped right before this piece */
    uint64_t gone;
    /* `lost`: how many bytes of the attempt's output the scheduler evicted from this piece and
     * from the pieces before it. `lost` includes `gone` of the pieces that were evicted whole.
     * `lost_end`: the position in the job's output where the evicted bytes end. When the scheduler
     * evicts a task's last piece, it forgets these numbers of the task. */
    uint64_t lost, lost_end;
    size_t n, skip; /* `skip`: how many bytes at the piece's beginning were evicted */
    size_t worker_bytes;
    char bytes[]; /* the worker's name, then the text */
};

static size_t weight(const struct piece *p)
{
    return sizeof *p + p->worker_bytes + p->n;
}

static bool job_eq(const void *ctx, uint32_t item, const void *key)
{
    return ((const struct mr_tasklog *)ctx)->jobs[item]->id == *(const uint64_t *)key;
}

static uint64_t job_hash(const void *ctx, uint32_t item)
{
    return mr_hash_u64(((const struct mr_tasklog *)ctx)->jobs[item]->id);
}

static bool task_eq(const void *ctx, uint32_t item, const void *key)
{
    return ((const struct mr_tasklog_job *)ctx)->tasks[item]->index == *(const uint32_t *)key;
}

static uint64_t task_hash(const void *ctx, uint32_t item)
{
    return mr_hash_u64(((const struct mr_tasklog_job *)ctx)->tasks[item]->index);
}

static struct mr_tasklog_job *job_find(const struct mr_tasklog *l, uint64_t id)
{
    uint32_t i = mr_index_find(&l->index, mr_hash_u64(id), job_eq, l, &id);
    return i == MR_INDEX_NONE ? NULL : l->jobs[i];
}

static struct task *task_find(const struct mr_tasklog_job *j, uint32_t index)
{
    uint32_t i = mr_index_find(&j->index, mr_hash_u64(index), task_eq, j, &index);
    return i == MR_INDEX_NONE ? NULL : j->tasks[i];
}

static struct mr_tasklog_job *job_add(struct mr_tasklog *l, uint64_t id)
{
    struct mr_tasklog_job *j = job_find(l, id);
    if (j) return j;
    if (l->jobs_count == l->jobs_room) {
        uint32_t more = MR_MAX(16u, l->jobs_room * 2);
        l->jobs = mr_grow(l->jobs, l->jobs_room * sizeof *l->jobs, more * sizeof *l->jobs);
        l->jobs_room = more;
    }
    j = mr_alloc(sizeof *j);
    j->id = id;
    mr_list_init(&j->pieces);
    mr_index_init(&j->index, 16);
    l->jobs[l->jobs_count] = j;
    mr_index_add(&l->index, mr_hash_u64(id), l->jobs_count++, job_hash, l);
    return j;
}

static struct task *task_add(struct mr_tasklog_job *j, uint32_t index)
{
    struct task *t = task_find(j, index);
    if (t) return t;
    if (j->tasks_count == j->tasks_room) {
        uint32_t more = MR_MAX(16u, j->tasks_room * 2);
        j->tasks = mr_grow(j->tasks, j->tasks_room * sizeof *j->tasks, more * sizeof *j->tasks);
        j->tasks_room = more;
    }
    t = mr_alloc(sizeof *t);
    t->index = index;
    mr_list_init(&t->pieces);
    j->tasks[j->tasks_count] = t;
    mr_index_add(&j->index, mr_hash_u64(index), j->tasks_count++, task_hash, j);
    return t;
}

void mr_tasklog_init(struct mr_tasklog *l, const struct mr_tasklog_bounds *bounds)
{
    *l = (struct mr_tasklog){0};
    if (bounds) l->bounds = *bounds;
    if (!l->bounds.task_bytes) l->bounds.task_bytes = MR_TASK_LOG_BYTES_MAX;
    if (!l->bounds.job_bytes) l->bounds.job_bytes = JOB_BYTES_MAX;
    if (!l->bounds.bytes) l->bounds.bytes = BYTES_MAX;
    mr_index_init(&l->index, 16);
    mr_list_init(&l->pieces);
}

static void task_free(struct mr_tasklog_job *j, struct task *t)
{
    uint32_t i = mr_index_find(&j->index, mr_hash_u64(t->index), task_eq, j, &t->index);
    uint32_t last = --j->tasks_count;
    (void)mr_index_remove(&j->index, mr_hash_u64(t->index), i);
    mr_release(t);
    if (i == last) return;
    (void)mr_index_remove(&j->index, task_hash(j, last), last);
    j->tasks[i] = j->tasks[last];
    mr_index_add(&j->index, task_hash(j, i), i, task_hash, j);
}

/* Returns the first position at or after `skip` where a character of UTF-8 starts; `skip` if the
 * text is not UTF-8. */
static size_t boundary(const struct piece *p, size_t skip)
{
    const char *text = p->bytes + p->worker_bytes;
    size_t at = skip;
    while (at < p->n && at < skip + CHARACTER_REST_MAX && ((unsigned char)text[at] & 0xc0) == 0x80)
        at++;
    return at < p->n && ((unsigned char)text[at] & 0xc0) == 0x80 ? skip : at;
}

/* Evicts the first `n` remaining bytes of a piece, which is the oldest piece of its task. If these
 * bytes end inside a character, evicts the whole character. */
static void drop(struct mr_tasklog *l, struct piece *p, size_t n)
{
    n = boundary(p, p->skip + n) - p->skip;
    struct task *t = p->task;
    struct mr_tasklog_job *j = p->job;
    t->bytes -= n;
    j->dropped += n;
    p->lost += n;
    p->lost_end = p->at + p->skip + n;
    p->skip += n;
    if (p->skip < p->n) return;
    struct mr_list *next = p->of_task.next;
    mr_list_remove(&p->of_task);
    if (mr_list_is_empty(&t->pieces)) {
        task_free(j, t); /* the job's count of dropped bytes includes those of the task */
    } else {
        struct piece *q = MR_LIST_ITEM(next, struct piece, of_task);
        q->lost += q->attempt == p->attempt ? p->lost + p->gone : 0;
        q->lost_end = MR_MAX(q->lost_end, p->lost_end);
    }
    l->bytes -= weight(p);
    j->bytes -= weight(p);
    mr_list_remove(&p->of_all);
    mr_list_remove(&p->of_job);
    if (j->found == p) j->found = NULL;
    mr_release(p);
}

static struct piece *oldest(struct mr_list *head, size_t offset)
{
    return (struct piece *)(void *)((char *)head->next - offset);
}

static void make_room(struct mr_tasklog *l, struct mr_tasklog_job *j, struct task *t)
{
    while (t->bytes > l->bounds.task_bytes) {
        struct piece *p = oldest(&t->pieces, offsetof(struct piece, of_task));
        drop(l, p, MR_MIN(p->n - p->skip, t->bytes - l->bounds.task_bytes));
    }
    while (j->bytes > l->bounds.job_bytes) {
        struct piece *p = oldest(&j->pieces, offsetof(struct piece, of_job));
        drop(l, p, p->n - p->skip);
    }
    while (l->bytes > l->bounds.bytes) {
        struct piece *p = oldest(&l->pieces, offsetof(struct piece, of_all));
        drop(l, p, p->n - p->skip);
    }
}

void mr_tasklog_add(struct mr_tasklog *l, mr_job_id job, uint32_t index, uint32_t attempt,
    struct mr_str worker, struct mr_str text, uint64_t lost)
{
    if (!text.n) return;
    struct mr_tasklog_job *j = job_add(l, job.v);
    struct task *t = task_add(j, index);
    struct piece *p = mr_alloc(sizeof *p + worker.n + text.n);
    p->job = j;
    p->task = t;
    p->attempt = attempt;
    p->at = j->position;
    p->n = text.n;
    p->worker_bytes = worker.n;
    p->gone = lost;
    t->attempt = attempt;
    if (worker.n) memcpy(p->bytes, worker.p, worker.n);
    memcpy(p->bytes + worker.n, text.p, text.n);
    mr_list_add_tail(&l->pieces, &p->of_all);
    mr_list_add_tail(&j->pieces, &p->of_job);
    mr_list_add_tail(&t->pieces, &p->of_task);
    j->position += text.n;
    t->bytes += text.n;
    j->bytes += weight(p);
    l->bytes += weight(p);
    make_room(l, j, t);
}

bool mr_tasklog_has(const struct mr_tasklog *l, mr_job_id job, uint32_t index, uint32_t attempt)
{
    const struct mr_tasklog_job *j = job_find(l, job.v);
    const struct task *t = j ? task_find(j, index) : NULL;
    return t && t->attempt == attempt;
}

static struct piece *next_of_job(const struct mr_tasklog_job *j, const struct piece *p)
{
    struct mr_list *next = p->of_job.next;
    return next == &j->pieces ? NULL : MR_LIST_ITEM(next, struct piece, of_job);
}

/* Returns the oldest piece with bytes after `from`; NULL: none. If the piece that was found last
 * begins at or before `from`, the search goes forward from that piece, which suits a reader of all
 * output. Else the search goes back from the newest piece, which suits a reader of new output. */
static struct piece *piece_behind(const struct mr_tasklog_job *j, uint64_t from)
{
    if (mr_list_is_empty(&j->pieces) || j->position <= from) return NULL;
    struct piece *p = MR_LIST_ITEM(j->pieces.prev, struct piece, of_job);
    if (j->found && j->found->at <= from) {
        for (p = j->found; p && p->at + p->n <= from;)
            p = next_of_job(j, p);
        return p;
    }
    if (p->at + p->n <= from) return NULL;
    for (struct mr_list *before = p->of_job.prev; before != &j->pieces; before = before->prev) {
        struct piece *q = MR_LIST_ITEM(before, struct piece, of_job);
        if (q->at + q->n <= from) break;
        p = q;
    }
    return p;
}

bool mr_tasklog_next(const struct mr_tasklog *l, mr_job_id job, uint32_t index, uint64_t from,
    struct mr_tasklog_piece *out)
{
    struct mr_tasklog_job *j = job_find(l, job.v);
    struct piece *found = j ? piece_behind(j, from) : NULL;
    while (found && index != UINT32_MAX && found->task->index != index)
        found = next_of_job(j, found);
    if (!found) return false;
    j->found = found;
    size_t seen = from > found->at ? (size_t)(from - found->at) : 0;
    size_t skip = boundary(found, MR_MAX(seen, found->skip));
    uint64_t lost = found->lost_end > from ? MR_MIN(found->lost, found->at + skip - from) : 0;
    *out = (struct mr_tasklog_piece){.index = found->task->index,
        .attempt = found->attempt,
        .at = found->at + skip,
        .lost = lost + (from <= found->at ? found->gone : 0),
        .worker = mr_str_of(found->bytes, found->worker_bytes),
        .text = mr_str_of(found->bytes + found->worker_bytes + skip, found->n - skip)};
    return true;
}

uint64_t mr_tasklog_position(const struct mr_tasklog *l, mr_job_id job)
{
    const struct mr_tasklog_job *j = job_find(l, job.v);
    return j ? j->position : 0;
}

uint64_t mr_tasklog_dropped(const struct mr_tasklog *l, mr_job_id job)
{
    const struct mr_tasklog_job *j = job_find(l, job.v);
    return j ? j->dropped : 0;
}

bool mr_tasklog_tail(
    const struct mr_tasklog *l, mr_job_id job, uint32_t index, struct mr_tasklog_tail *out)
{
    const struct mr_tasklog_job *j = job_find(l, job.v);
    const struct task *t = j ? task_find(j, index) : NULL;
    if (!t || mr_list_is_empty(&t->pieces)) return false;
    *out = (struct mr_tasklog_tail){.attempt = t->attempt};
    MR_LIST_EACH(node, &t->pieces)
    {
        const struct piece *p = MR_LIST_ITEM(node, const struct piece, of_task);
        if (p->attempt != t->attempt) continue;
        out->bytes += p->n - p->skip;
        out->lost += p->lost + p->gone;
        out->worker = mr_str_of(p->bytes, p->worker_bytes);
    }
    return out->bytes > 0;
}

void mr_tasklog_copy(const struct mr_tasklog *l, mr_job_id job, uint32_t index,
    const struct mr_tasklog_tail *tail, char *to)
{
    const struct task *t = task_find(job_find(l, job.v), index);
    MR_LIST_EACH(node, &t->pieces)
    {
        const struct piece *p = MR_LIST_ITEM(node, const struct piece, of_task);
        if (p->attempt != tail->attempt) continue;
        memcpy(to, p->bytes + p->worker_bytes + p->skip, p->n - p->skip);
        to += p->n - p->skip;
    }
}

static void job_free(struct mr_tasklog *l, struct mr_tasklog_job *j)
{
    MR_LIST_EACH(node, &j->pieces)
    {
        struct piece *p = MR_LIST_ITEM(node, struct piece, of_job);
        l->bytes -= weight(p);
        mr_list_remove(&p->of_all);
        mr_release(p);
    }
    for (uint32_t i = 0; i < j->tasks_count; i++)
        mr_release(j->tasks[i]);
    mr_release(j->tasks);
    mr_index_fini(&j->index);
    mr_release(j);
}

void mr_tasklog_forget(struct mr_tasklog *l, mr_job_id job)
{
    uint32_t i = mr_index_find(&l->index, mr_hash_u64(job.v), job_eq, l, &job.v);
    if (i == MR_INDEX_NONE) return;
    (void)mr_index_remove(&l->index, mr_hash_u64(job.v), i);
    job_free(l, l->jobs[i]);
    uint32_t last = --l->jobs_count;
    if (i == last) return;
    (void)mr_index_remove(&l->index, job_hash(l, last), last);
    l->jobs[i] = l->jobs[last];
    mr_index_add(&l->index, job_hash(l, i), i, job_hash, l);
}

void mr_tasklog_fini(struct mr_tasklog *l)
{
    for (uint32_t i = 0; i < l->jobs_count; i++)
        job_free(l, l->jobs[i]);
    mr_release(l->jobs);
    mr_index_fini(&l->index);
}
