/* Tasks that found no room in memory: what the core's other files call of core_room.c. */
#pragma once

#include "services/scheduler/core_do.h"

void mr_sc_room_add(struct mr_sched *s, uint32_t task);
void mr_sc_room_dispatch(struct mr_sched *s);
void mr_sc_room_runs(struct mr_sched *s, uint32_t task); /* it is running from now on */
/* A worker had no room for it, says `why`: fails, or is to come again. It is not sent any more. */
void mr_sc_room_none(struct mr_sched *s, uint32_t task, uint32_t worker, struct mr_str why);
void mr_sc_room_explain(const struct mr_sched *s, uint32_t task, struct mr_buf *out);
