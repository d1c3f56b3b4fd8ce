/* Placement classes: the tasks of one class may run on the same workers. For the core's own files
 * only. */
#pragma once

#include "services/scheduler/core/state/state.h"

uint32_t mr_sched__resource(struct mr_sched *s, struct mr_str name); /* NONE: the table is full */
int mr_sched__class_of(struct mr_sched *s, uint32_t op, const struct mr_task_options *o,
    uint32_t *class, struct mr_error *e);
void mr_sched__class_drop(struct mr_sched *s, uint32_t class);
void mr_sched__park(struct mr_sched *s, uint32_t task);
void mr_sched__unpark(struct mr_sched *s, uint32_t task);
