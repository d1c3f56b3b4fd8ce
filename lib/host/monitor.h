/* A monitor: a mutex with a condition variable. A monitor protects one of the few structs that
 * threads share, for example a struct that keeps only the newest value. Elsewhere threads exchange
 * messages through queues. A thread inside a monitor waits for nothing but the condition. */
#pragma once

#include "base/time.h"

#include <stdbool.h>

struct mr_monitor;

struct mr_monitor *mr_monitor_new(void);
void mr_monitor_free(struct mr_monitor **m);

void mr_monitor_enter(struct mr_monitor *m);
void mr_monitor_leave(struct mr_monitor *m);
/* To be called inside the monitor: releases the lock, sleeps until a notify or until `deadline`,
 * and takes the lock again. False: the deadline has passed. True: there was a notify, or the wait
 * ended early without a reason. */
bool mr_monitor_wait(struct mr_monitor *m, mr_time deadline);
/* Wakes all waiting threads. May be called inside the monitor or outside. */
void mr_monitor_notify(struct mr_monitor *m);
