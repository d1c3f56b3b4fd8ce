/* Writes records for the journal. What a record says is announced to clients only when Redis has
 * acknowledged the record; until then the announcement waits here. The open record collects values
 * of one job until the turn (pass of the shell's loop) ends. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__promise(struct mr_sched *s, const struct pending *p);
void mr_sched__journal_job(struct mr_sched *s, uint32_t job, const struct mr_sched_submit *sub);
void mr_sched__journal_state(struct mr_sched *s, uint32_t job);
void mr_sched__journal_erred(struct mr_sched *s, uint32_t task, const struct failure *st);
void mr_sched__journal_loop(struct mr_sched *s, uint32_t job, uint32_t loop);
void mr_sched__journal_forgotten(struct mr_sched *s, uint64_t id);
void mr_sched__journal_epoch(struct mr_sched *s);
void mr_sched__journal_store(struct mr_sched *s, uint32_t store);
uint64_t mr_sched__journal_worker(struct mr_sched *s, uint32_t slot, bool is_lost);
void mr_sched__journal_flush(struct mr_sched *s);
/* Adds the task's value to the open record. The value is not announced. */
void mr_sched__journal_part(struct mr_sched *s, uint32_t task);
void mr_sched__journal_parts(struct mr_sched *s, uint32_t task);
/* Adds the value of `task`, and all values that this value refers to, to the open record. If `task`
 * is a target, its value is announced as soon as Redis has acknowledged the record. */
void mr_sched__journal_value(struct mr_sched *s, uint32_t task);
void mr_sched__note_ready(struct mr_sched *s, uint32_t task);
void mr_sched__journal_tell(struct mr_sched *s);
void mr_sched__journal_acked(struct mr_sched *s, uint64_t sequence);
