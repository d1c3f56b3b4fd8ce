/* A lock with a condition: for the few structs that two threads share and that no message fits,
 * such as the latest of something. Nobody waits inside for anything but the condition. */
#pragma once

#include "base/time.h"

#include <stdbool.h>

struct mr_monitor;

struct mr_monitor *mr_monitor_new(void);
void mr_monitor_free(struct mr_monitor **m);

void mr_monitor_enter(struct mr_monitor *m);
void mr_monitor_leave(struct mr_monitor *m);
/* Inside: leaves until a notify or `deadline`, then is inside again. May return early for no
 * reason; false: the deadline has passed. */
bool mr_monitor_wait(struct mr_monitor *m, mr_time deadline);
void mr_monitor_notify(struct mr_monitor *m); /* inside or not; wakes all who wait */
