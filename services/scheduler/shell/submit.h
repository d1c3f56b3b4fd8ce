/* Calls that change the core's state: Submit in its forms, Cancel, Retry, Forget. The core replies
 * when Redis has the change in the journal. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/submit/parser.h"

void mr_submit_reply(struct mr_shell *sh, const struct mr_sched_note *n, struct mr_str text);
/* Returns the name of the caller whose submission has this ticket, lent until the next call; "":
 * the call has ended. */
struct mr_str mr_submit_client(struct mr_shell *sh, uint64_t ticket);
void mr_submit_parsed(struct mr_shell *sh, struct mr_parser_result *done);

/* mr_submit_tick fails the calls whose body arrives too slowly and those whose reply comes too
 * late. mr_submit_deadline returns the time of the next such failure. */
mr_time mr_submit_deadline(const struct mr_shell *sh);
void mr_submit_tick(struct mr_shell *sh, mr_time now);
/* Fails the calls that wait for Redis. */
void mr_submit_stop(struct mr_shell *sh);

extern const struct mr_rpc_handler mr_submit_handler;
extern const struct mr_rpc_handler mr_submit_graph_handler;
extern const struct mr_rpc_handler mr_submit_stream_handler;
extern const struct mr_rpc_handler mr_instantiate_handler;
extern const struct mr_rpc_handler mr_change_handler; /* Cancel, Retry, Forget */
