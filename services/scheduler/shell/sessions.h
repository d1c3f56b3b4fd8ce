/* The streams of workers and object stores. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/history/peer_facts.h"

struct mr_sessions *mr_sessions_new(struct mr_shell *sh);
void mr_sessions_free(struct mr_sessions **s);
void mr_sessions_note(struct mr_shell *sh, const struct mr_sched_note *n, struct mr_str text);

/* Sets `received`, the time when the worker received the task, in the spans of the core's
 * effects. */
void mr_sessions_receipts(struct mr_shell *sh);

extern const struct mr_rpc_service mr_worker_session_service;
extern const struct mr_rpc_service mr_store_session_service;

/* Sets `out` to facts about the worker in a slot. The texts are lent until the next pass of the
 * shell's loop. False: the worker has no stream now. */
bool mr_sessions_facts(const struct mr_shell *sh, uint32_t slot, struct mr_session_facts *out);

/* Returns the bytes of the job's values that object stores still have to persist, as their last
 * heartbeats said. */
uint64_t mr_sessions_persisting(const struct mr_shell *sh, mr_job_id job);
/* Sets `out` to facts about a store. False: the store has no stream now. */
bool mr_sessions_store_facts(const struct mr_shell *sh, uint32_t store, struct mr_store_facts *out);
