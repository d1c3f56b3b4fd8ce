/* Facts that workers and object stores send and the core does not keep, for the methods that show
 * workers and stores to clients. */
#pragma once

#include "session/up.h"

#include <millrace/v1/session.pb-c.h>

struct mr_session_facts { /* of a worker */
    uint32_t pid;
    uint32_t processors; /* that the process may use; 0: not known */
    mr_time began;       /* when the process began, by the worker's clock; 0: not known */
    const char *address; /* of the worker's own port; "": none */
    const char *const *runtimes;
    size_t runtimes_count;
    const struct mr_ws_resource *resources;
    size_t resources_count;
    char *texts; /* memory of the texts of the other members */
};

void mr_session_facts_init(struct mr_session_facts *f, const struct mr_ws_register *r); /* copies */
void mr_session_facts_fini(struct mr_session_facts *f);

#define MR_PERSISTING_MAX 64 /* limit of jobs whose values a store still has to persist */
struct mr_store_facts {
    uint64_t memory_bytes, used_bytes, spilled_bytes, objects;
    char disk_full[256]; /* the folder whose disk has no space left; "": there is space */
    struct {
        uint64_t job, bytes;
    } persisting[MR_PERSISTING_MAX];
    size_t persisting_count;
};

void mr_store_facts_heard(struct mr_store_facts *f, const Millrace__V1__StoreHeartbeat *m);
uint64_t mr_store_facts_persisting(const struct mr_store_facts *f, mr_job_id job); /* bytes */
