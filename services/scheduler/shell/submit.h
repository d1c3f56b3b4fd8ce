/* Calls that change the core's state: Submit in its forms, Cancel, Retry, Forget. The core replies
 * when Redis has the change in the journal. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/submit/parser.h"

void mr_submit_reply(struct mr_shell *sh, const struct mr_sched_note *n, struct mr_str text);
void mr_submit_parsed(struct mr_shell *sh, struct mr_parser_result *done);

/* Calls whose body arrives too slowly, or whose reply comes too late, are failed. */
mr_time mr_submit_deadline(const struct mr_shell *sh);
void mr_submit_tick(struct mr_shell *sh, mr_time now);
void mr_submit_stop(struct mr_shell *sh); /* fails the calls that wait for Redis */

extern const struct mr_rpc_handler mr_submit_handler;
extern const struct mr_rpc_handler mr_submit_graph_handler;
extern const struct mr_rpc_handler mr_submit_stream_handler;
extern const struct mr_rpc_handler mr_instantiate_handler;
extern const struct mr_rpc_handler mr_change_handler; /* Cancel, Retry, Forget */
