#include "services/scheduler/history/peer_facts.h"

#include "base/alloc.h"
#include "base/unconst.h"

#include <stdio.h>

/* Copies a text to `*at`, with a NUL, and moves `*at` behind it. */
static char *keep(char **at, struct mr_str text)
{
    char *to = *at;
    if (text.n) memcpy(to, text.p, text.n);
    to[text.n] = 0;
    *at += text.n + 1;
    return to;
}

void mr_session_facts_init(struct mr_session_facts *f, const struct mr_ws_register *r)
{
    size_t bytes = r->address.n + 1;
    for (uint32_t i = 0; i < r->runtimes_count; i++)
        bytes += r->runtimes[i].n + 1;
    for (uint32_t i = 0; i < r->resources_count; i++)
        bytes += r->resources[i].name.n + 1;
    char *texts = mr_alloc(bytes), *at = texts;
    const char **runtimes = mr_alloc_array(r->runtimes_count, sizeof *runtimes);
    struct mr_ws_resource *resources = mr_alloc_array(r->resources_count, sizeof *resources);
    *f = (struct mr_session_facts){.pid = r->pid,
        .processors = r->processors,
        .began = r->began_ns,
        .address = keep(&at, r->address),
        .runtimes = runtimes,
        .runtimes_count = r->runtimes_count,
        .resources = resources,
        .resources_count = r->resources_count,
        .texts = texts};
    for (uint32_t i = 0; i < r->runtimes_count; i++)
        runtimes[i] = keep(&at, r->runtimes[i]);
    for (uint32_t i = 0; i < r->resources_count; i++)
        resources[i] =
            (struct mr_ws_resource){mr_str(keep(&at, r->resources[i].name)), r->resources[i].micro};
}

void mr_session_facts_fini(struct mr_session_facts *f)
{
    mr_release(f->texts);
    mr_release(mr_unconst(f->runtimes));
    mr_release(mr_unconst(f->resources));
    *f = (struct mr_session_facts){0};
}

void mr_store_facts_heard(struct mr_store_facts *f, const Millrace__V1__StoreHeartbeat *m)
{
    f->used_bytes = m->used_bytes;
    f->spilled_bytes = m->spilled_bytes;
    f->objects = m->objects;
    (void)snprintf(f->disk_full, sizeof f->disk_full, "%s", m->disk_full);
    size_t n = MR_MIN(m->n_persisting_job, m->n_persisting_bytes);
    f->persisting_count = MR_MIN(n, (size_t)MR_PERSISTING_MAX);
    for (size_t i = 0; i < f->persisting_count; i++) {
        f->persisting[i].job = m->persisting_job[i];
        f->persisting[i].bytes = m->persisting_bytes[i];
    }
}

uint64_t mr_store_facts_persisting(const struct mr_store_facts *f, mr_job_id job)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->persisting_count; i++)
        if (f->persisting[i].job == job.v) bytes += f->persisting[i].bytes;
    return bytes;
}
