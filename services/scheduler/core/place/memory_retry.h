/* Tasks that found no room in memory: what the core's other files call of place/memory_retry.c. */
#pragma once

#include "services/scheduler/core/task/internal.h"

void mr_sc_room_add(struct mr_sched *s, uint32_t task);
void mr_sc_room_dispatch(struct mr_sched *s);
void mr_sc_room_runs(struct mr_sched *s, uint32_t task); /* it is running from now on */
/* A worker was told to stop an attempt; it said that one which was not its any more has ended. In
 * between, what it has in memory is there. */
uint32_t mr_sc_room_mark(uint64_t job, uint32_t index, uint32_t attempt);
void mr_sc_room_stops(struct mr_sched *s, uint32_t worker, uint32_t mark);
void mr_sc_room_stopped(struct mr_sched *s, uint32_t worker, uint32_t mark);
/* A worker's lease has run out; one has joined. */
void mr_sc_room_lost(struct mr_sched *s, uint32_t worker);
void mr_sc_room_joined(struct mr_sched *s, uint32_t worker);
/* A worker had no room for it, says `why`: fails, or is to come again. It is not sent any more. */
void mr_sc_room_none(struct mr_sched *s, uint32_t task, uint32_t worker, struct mr_str why);
void mr_sc_room_explain(const struct mr_sched *s, uint32_t task, struct mr_buf *out);
