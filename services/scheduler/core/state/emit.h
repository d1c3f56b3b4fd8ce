/* Writes effects of the running step: batches for workers and stores, notes for the shell. For the
 * core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

struct mr_sched_batch *mr_sched__batch(struct mr_sched *s, uint32_t worker);
/* Sets has_more in the worker's batch and returns the batch. The caller writes a section that only
 * few batches have. */
struct mr_sched_batch *mr_sched__batch_more(struct mr_sched *s, uint32_t worker);
struct mr_sched_store_batch *mr_sched__store_batch(struct mr_sched *s, uint32_t store);
struct mr_sched_note *mr_sched__note(struct mr_sched *s, enum mr_sched_note_type type);
void mr_sched__note_text(struct mr_sched *s, struct mr_sched_note *n, const char *text);
void mr_sched__reply(
    struct mr_sched *s, uint64_t ticket, mr_job_id job, int code, const char *text);
