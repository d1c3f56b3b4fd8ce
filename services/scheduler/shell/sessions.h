/* The streams of workers and object stores. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_sessions *mr_sessions_new(struct mr_shell *sh);
void mr_sessions_free(struct mr_sessions **s);
/* Sends the batches that are dirty and may leave; true: there are tasks among them. */
bool mr_sessions_flush(struct mr_shell *sh);
mr_time mr_sessions_deadline(const struct mr_shell *sh); /* flush by then */
void mr_sessions_note(struct mr_shell *sh, const struct mr_sched_note *n, struct mr_str text);

extern const struct mr_rpc_service mr_worker_session_service;
extern const struct mr_rpc_service mr_store_session_service;

struct mr_session_facts { /* what the core does not keep, for Workers and Info */
    uint32_t pid;
    const char *address; /* of the worker's own port; "": none */
    const char *const *runtimes;
    size_t runtimes_count;
    const struct mr_sched_resource *resources;
    size_t resources_count;
};
/* On loan until the next turn; false: that worker has no stream now. */
bool mr_sessions_facts(const struct mr_shell *sh, uint32_t slot, struct mr_session_facts *out);

#define MR_PERSISTING_MAX 64 /* jobs, of a store */
struct mr_store_facts {
    uint64_t memory_bytes, used_bytes, spilled_bytes, objects;
    char disk_full[256]; /* the folder; "": there is space */
    struct {
        uint64_t job, bytes;
    } persisting[MR_PERSISTING_MAX];
    size_t persisting_count;
};
/* Of values of this job: what stores said they are to persist and have not written. */
uint64_t mr_sessions_persisting(const struct mr_shell *sh, mr_job_id job);
bool mr_sessions_store_facts(const struct mr_shell *sh, uint32_t store, struct mr_store_facts *out);

/* session_wire.c: between messages and the core's columns. Arrays are in the scratch arena. */
int mr_wire_refs(struct mr_shell *sh, const Millrace__V1__TaskRefs *m, struct mr_sched_refs *out,
    struct mr_error *e);
int mr_wire_register(struct mr_shell *sh, const Millrace__V1__Register *m,
    struct mr_sched_register *out, struct mr_error *e);
int mr_wire_message(struct mr_shell *sh, const Millrace__V1__WorkerMessage *m,
    struct mr_sched_message *out, struct mr_error *e);

/* Numbers that a session has given to ops and stores, so that names travel once. */
struct mr_wire_tables {
    uint32_t *op;         /* by the core's number; 0: not yet */
    uint32_t *store;      /* likewise */
    uint32_t stores_seen; /* the core's count of changes when all stores were told last */
    uint32_t ops_room, stores_room;
    uint32_t ops_count, stores_count;
};
void mr_wire_tables_fini(struct mr_wire_tables *t);
/* The batch as a message in the scratch arena; the batch is lent until it is sent. */
Millrace__V1__SchedulerMessage *mr_wire_batch(
    struct mr_shell *sh, const struct mr_sched_batch *b, struct mr_wire_tables *t);
