/* Jobs by id, by request id and by age; those that were forgotten lately. */
#include "services/scheduler/core/index/job_index.h"

#include "services/scheduler/core/state/lookup.h"

static bool id_eq(const void *ctx, uint32_t item, const void *key)
{
    return ((const struct mr_sched *)ctx)->jobs[item].id == *(const uint64_t *)key;
}

uint32_t mr_sc_job_find(const struct mr_sched *s, uint64_t id)
{
    if (s->newest != NONE && s->jobs[s->newest].id == id) return s->newest; /* mostly asked for */
    uint32_t j = mr_index_find(&s->job_index, mr_hash_u64(id), id_eq, s, &id);
    return j == MR_INDEX_NONE ? NONE : j;
}

uint32_t mr_sc_find(const struct mr_sched *s, uint64_t job, uint32_t index)
{
    return task_at(s, mr_sc_job_find(s, job), index);
}

static bool request_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_sched *s = ctx;
    return mr_str_eq(s->jobs[item].graph->job.request_id, *(const struct mr_str *)key);
}

uint32_t mr_sc_request_find(const struct mr_sched *s, struct mr_str id)
{
    return mr_index_find(&s->request_index, text_hash(id), request_eq, s, &id);
}

static uint64_t job_hash(const void *ctx, uint32_t item)
{
    return mr_hash_u64(((const struct mr_sched *)ctx)->jobs[item].id);
}

static uint64_t request_hash(const void *ctx, uint32_t item)
{
    return text_hash(((const struct mr_sched *)ctx)->jobs[item].graph->job.request_id);
}

void mr_sc_job_enlist(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    j->older = s->newest;
    j->newer = NONE;
    if (s->newest != NONE)
        s->jobs[s->newest].newer = job;
    else
        s->oldest = job;
    s->newest = job;
    mr_index_add(&s->job_index, mr_hash_u64(j->id), job, job_hash, s);
    struct mr_str request = j->graph->job.request_id;
    if (request.n && mr_sc_request_find(s, request) == NONE)
        mr_index_add(&s->request_index, text_hash(request), job, request_hash, s);
    s->jobs_count++;
}

/* Nobody finds it by its id any more. */
void mr_sc_job_unlist(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    if (!mr_index_remove(&s->job_index, mr_hash_u64(j->id), job)) return;
    struct mr_str request = j->graph->job.request_id;
    if (request.n) (void)mr_index_remove(&s->request_index, text_hash(request), job);
    if (j->older != NONE)
        s->jobs[j->older].newer = j->newer;
    else
        s->oldest = j->newer;
    if (j->newer != NONE)
        s->jobs[j->newer].older = j->older;
    else
        s->newest = j->older;
    s->jobs_count--;
}

uint64_t mr_sc_job_forgotten(const struct mr_sched *s, mr_job_id job)
{
    uint64_t kept = MR_MIN(s->forgotten_count, (uint64_t)FORGOTTEN_MAX);
    for (uint64_t i = s->forgotten_count; i > s->forgotten_count - kept; i--)
        if (s->forgotten[(i - 1) % FORGOTTEN_MAX].id == job.v)
            return s->forgotten[(i - 1) % FORGOTTEN_MAX].wall;
    return 0;
}
