/* What a job that is being followed does now, and, when nothing has moved for some seconds, what it
 * waits for. Knows the answers of Jobs; asks nobody. */
#pragma once

#include "base/buf.h"
#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

struct mr_progress {
    mr_time since; /* of the job, on our clock */
    mr_time moved; /* when a task last ended */
    uint64_t over; /* tasks */
    char state[32];
};

void mr_progress_init(struct mr_progress *p, mr_time now);
/* The newest Job there is. */
void mr_progress_take(struct mr_progress *p, yyjson_val *job, mr_time now);
/* Nothing has ended for a second: it is worth asking what it waits for. */
bool mr_progress_is_quiet(const struct mr_progress *p, mr_time now);

/* "running   [#####.....] 47/48 tasks, 1 running, 12.3 s; persists 3.5 GiB": one line of at most
 * `columns`. `wall_ns` is the time of day. */
void mr_progress_line(const struct mr_progress *p, yyjson_val *job, mr_time now, uint64_t wall_ns,
    unsigned columns, struct mr_buf *out);
/* The same as several lines. */
void mr_progress_picture(const struct mr_progress *p, yyjson_val *job, mr_time now,
    uint64_t wall_ns, unsigned columns, struct mr_buf *out);
