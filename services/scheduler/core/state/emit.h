/* Effects of the step that runs: batches for workers and stores, notes for the shell. For the
 * core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

struct mr_sched_batch *mr_sc_batch(struct mr_sched *s, uint32_t worker);
struct mr_sched_batch *mr_sc_batch_more(struct mr_sched *s, uint32_t worker); /* to write `more` */
struct mr_sched_store_batch *mr_sc_store_batch(struct mr_sched *s, uint32_t store);
struct mr_sched_note *mr_sc_note(struct mr_sched *s, enum mr_sched_note_type type);
void mr_sc_note_text(struct mr_sched *s, struct mr_sched_note *n, const char *text);
void mr_sc_reply(struct mr_sched *s, uint64_t ticket, mr_job_id job, int code, const char *text);
