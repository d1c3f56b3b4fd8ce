/* Values for the watchers of Result and Results: what can be sent, is sent. */
#pragma once

#include "services/scheduler/shell/watcher.h"

void mr_results_init(
    struct mr_watcher *w, const struct mr_watcher_spec *spec, const struct mr_sched_job_info *info);
void mr_results_fini(struct mr_watcher *w);
void mr_results_ready(struct mr_watcher *w, const uint32_t *nodes, uint32_t count);
/* The value of a node came by itself. True when all is said. */
bool mr_results_bytes(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, uint32_t node, struct mr_str pack);
/* It will not have a value: says so. True when all is said. */
bool mr_results_failed(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, uint32_t node, int code, struct mr_str why);
/* Sends what can be sent; true when all is said. */
bool mr_results_look(struct mr_watcher *w, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, bool timed_out);
