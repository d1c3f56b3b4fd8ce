/* The offload thread takes jobs from an inbox and runs them one by one. */
#include "services/objectstore/cluster/offload.h"

#include "base/alloc.h"
#include "host/inbox.h"
#include "host/thread.h"

struct mr_offload {
    struct mr_inbox *jobs;
    struct mr_thread *thread;
};

struct job {
    void (*run)(void *p, void *q);
    void *p;
    void *q;
};

static void run(void *ctx)
{
    struct mr_offload *h = ctx;
    struct job job;
    for (;;) {
        if (mr_inbox_wait(h->jobs, MR_NEVER, &job, 1))
            job.run(job.p, job.q);
        else if (mr_inbox_is_closed(h->jobs))
            return;
    }
}

struct mr_offload *mr_offload_open(const char *name)
{
    struct mr_offload *h = mr_alloc(sizeof *h);
    h->jobs = mr_inbox_new(MR_OFFLOAD_JOBS_MAX, sizeof(struct job));
    h->thread = mr_thread_start(name, run, h);
    return h;
}

void mr_offload_close(struct mr_offload **ph)
{
    struct mr_offload *h = MR_STEAL(*ph);
    if (!h) return;
    mr_inbox_close(h->jobs);
    mr_inbox_wake(h->jobs);
    mr_thread_join(&h->thread);
    mr_inbox_free(&h->jobs);
    mr_release(h);
}

int mr_offload_do(struct mr_offload *h, void (*run_job)(void *p, void *q), void *p, void *q)
{
    struct job job = {run_job, p, q};
    return h ? mr_inbox_push(h->jobs, &job) : MR_ESTATE;
}
