/* Sends values to the calls of Result and Results. Those functions that return bool return true
 * when the call has got its last answer. */
#pragma once

#include "services/scheduler/shell/watcher.h"

void mr_results_init(
    struct mr_watcher *w, const struct mr_watcher_spec *spec, const struct mr_sched_job_info *info);
void mr_results_fini(struct mr_watcher *w);
void mr_results_ready(struct mr_watcher *w, const uint32_t *nodes, uint32_t count);
/* Called when the core delivers the bytes (`pack`) of a node's value: sends them to the call. */
bool mr_results_bytes(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, uint32_t node, struct mr_str pack);
/* Called when a node will have no value: the call gets an error, or a row with an error. */
bool mr_results_failed(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, uint32_t node, int code, struct mr_str why);
/* Sends the call all that can be sent now. `timed_out`: the wait is over, so rows without a value
 * are sent, too. */
bool mr_results_look(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, bool timed_out);
