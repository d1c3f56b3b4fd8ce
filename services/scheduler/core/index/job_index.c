/* Jobs by id, by request id and by age; ids of jobs that were forgotten lately. */
#include "services/scheduler/core/index/job_index.h"

#include "services/scheduler/core/state/lookup.h"

static bool id_eq(const void *ctx, uint32_t item, const void *key)
{
    return ((const struct mr_sched *)ctx)->jobs[item].id == *(const uint64_t *)key;
}

uint32_t mr_sched__job_find(const struct mr_sched *s, uint64_t id)
{
    if (s->job_list.newest != NONE && s->jobs[s->job_list.newest].id == id)
        return s->job_list.newest; /* most look-ups are for the newest job */
    uint32_t j = mr_index_find(&s->job_list.by_id, mr_hash_u64(id), id_eq, s, &id);
    return j == MR_INDEX_NONE ? NONE : j;
}

uint32_t mr_sched__find(const struct mr_sched *s, uint64_t job, uint32_t index)
{
    return task_at(s, mr_sched__job_find(s, job), index);
}

static bool request_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_sched *s = ctx;
    return mr_str_eq(s->jobs[item].graph->job.request_id, *(const struct mr_str *)key);
}

uint32_t mr_sched__request_find(const struct mr_sched *s, struct mr_str id)
{
    return mr_index_find(&s->job_list.by_request, text_hash(id), request_eq, s, &id);
}

static uint64_t job_hash(const void *ctx, uint32_t item)
{
    return mr_hash_u64(((const struct mr_sched *)ctx)->jobs[item].id);
}

static uint64_t request_hash(const void *ctx, uint32_t item)
{
    return text_hash(((const struct mr_sched *)ctx)->jobs[item].graph->job.request_id);
}

void mr_sched__job_enlist(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    j->older = s->job_list.newest;
    j->newer = NONE;
    if (s->job_list.newest != NONE)
        s->jobs[s->job_list.newest].newer = job;
    else
        s->job_list.oldest = job;
    s->job_list.newest = job;
    mr_index_add(&s->job_list.by_id, mr_hash_u64(j->id), job, job_hash, s);
    struct mr_str request = j->graph->job.request_id;
    if (request.n && mr_sched__request_find(s, request) == NONE)
        mr_index_add(&s->job_list.by_request, text_hash(request), job, request_hash, s);
    s->job_list.count++;
}

/* Takes the job out of the list and the indexes, so that look-ups no longer find it. */
void mr_sched__job_unlist(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    if (!mr_index_remove(&s->job_list.by_id, mr_hash_u64(j->id), job)) return;
    struct mr_str request = j->graph->job.request_id;
    if (request.n) (void)mr_index_remove(&s->job_list.by_request, text_hash(request), job);
    if (j->older != NONE)
        s->jobs[j->older].newer = j->newer;
    else
        s->job_list.oldest = j->newer;
    if (j->newer != NONE)
        s->jobs[j->newer].older = j->older;
    else
        s->job_list.newest = j->older;
    s->job_list.count--;
}

uint64_t mr_sched__job_forgotten(const struct mr_sched *s, mr_job_id job)
{
    uint64_t kept = MR_MIN(s->job_list.forgotten_count, (uint64_t)FORGOTTEN_MAX);
    for (uint64_t i = s->job_list.forgotten_count; i > s->job_list.forgotten_count - kept; i--)
        if (s->job_list.forgotten[(i - 1) % FORGOTTEN_MAX].id == job.v)
            return s->job_list.forgotten[(i - 1) % FORGOTTEN_MAX].wall;
    return 0;
}
