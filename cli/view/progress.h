/* The progress of a job that is being followed and, when no task has ended for a second, what the
 * job waits for. Reads the gateway's answers and sends no requests. */
#pragma once

#include "base/buf.h"
#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

struct mr_progress {
    mr_time since; /* time at which following began */
    mr_time moved; /* time at which a task last ended or `state` last changed */
    uint64_t over; /* number of tasks that have ended */
    char state[32];
};

void mr_progress_init(struct mr_progress *p, mr_time now);
/* Updates `p` from `job`, the newest description of the job that the gateway has sent. */
void mr_progress_take(struct mr_progress *p, yyjson_val *job, mr_time now);
/* True: no task has ended for a second, so the caller should ask the gateway what the job waits
 * for. */
bool mr_progress_is_idle(const struct mr_progress *p, mr_time now);

/* Appends one line of at most `columns` columns, such as "running [#####.....] 47/48 tasks, 1
 * running, 12.3 s; persisting 3.5 GiB". `wall_ns` is the time of day. */
void mr_progress_line(const struct mr_progress *p, yyjson_val *job, mr_time now, uint64_t wall_ns,
    unsigned columns, struct mr_buf *out);
/* Appends the progress as several lines for a screen. */
void mr_progress_screen(const struct mr_progress *p, yyjson_val *job, mr_time now, uint64_t wall_ns,
    unsigned columns, struct mr_buf *out);
