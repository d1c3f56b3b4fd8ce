/* Writes the events of the cluster (store/meta/trace/events.h): when workers and jobs came and
 * went. Used on the writer's thread (trace_writer.h). The newest SEGMENTS_MAX segments are kept. */
#pragma once

#include "store/meta/trace/events.h"
#include "store/meta/trace/log.h"

struct mr_trace_events;

/* Begins with an event BEGAN at `wall_ns`. `log` is borrowed. */
struct mr_trace_events *mr_trace_events_new(struct mr_trace_log *log, uint64_t wall_ns);
void mr_trace_events_free(struct mr_trace_events **t);
/* Takes an event; its texts are copied. The times of events need not be in order. */
void mr_trace_events_take(
    struct mr_trace_events *t, mr_time now, const struct mr_trace_event *event);
/* Writes the events that wait, however young they are. */
void mr_trace_events_flush(struct mr_trace_events *t);
/* Returns when mr_trace_events_tick is due; MR_NEVER: no event waits. */
mr_time mr_trace_events_deadline(const struct mr_trace_events *t);
void mr_trace_events_tick(struct mr_trace_events *t, mr_time now);
