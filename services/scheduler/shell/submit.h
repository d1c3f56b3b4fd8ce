/* Calls that change something and wait for the core's reply: Submit in its three forms, Cancel,
 * Retry, Forget. Each takes a ticket, which comes back with the reply. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/submit/parser.h"

void mr_submit_reply(struct mr_shell *sh, const struct mr_sched_note *n, struct mr_str text);
void mr_submit_parsed(struct mr_shell *sh, struct mr_parser_result *done);

/* Callers who wait for a reply that waits for the journal. */
mr_time mr_submit_deadline(const struct mr_shell *sh);
void mr_submit_tick(struct mr_shell *sh, mr_time now);
void mr_submit_stop(struct mr_shell *sh); /* who still waits for Redis is told so */

extern const struct mr_rpc_handler mr_submit_handler;
extern const struct mr_rpc_handler mr_submit_graph_handler;
extern const struct mr_rpc_handler mr_submit_stream_handler;
extern const struct mr_rpc_handler mr_instantiate_handler;
extern const struct mr_rpc_handler mr_change_handler; /* Cancel, Retry, Forget */
