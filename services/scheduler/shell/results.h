/* Sends values to the calls of Result and Results. The functions that return bool: true when the
 * call has its last answer. */
#pragma once

#include "services/scheduler/shell/watcher.h"

void mr_results_init(
    struct mr_watcher *w, const struct mr_watcher_spec *spec, const struct mr_sched_job_info *info);
void mr_results_fini(struct mr_watcher *w);
void mr_results_ready(struct mr_watcher *w, const uint32_t *nodes, uint32_t count);
/* The core sends the bytes of this node's value. */
bool mr_results_bytes(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, uint32_t node, struct mr_str pack);
/* This node will have no value: the call gets an error or a row with one. */
bool mr_results_failed(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, uint32_t node, int code, struct mr_str why);
/* Sends all that can be sent now. */
bool mr_results_look(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, bool timed_out);
