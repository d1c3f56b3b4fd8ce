/* The stream to the scheduler. All functions run on the network thread. mr_worker_link_log also
 * runs on the thread of an executor that acts for the network thread (delegate.c). */
#pragma once

#include "services/worker/shell/shell.h"

void mr_worker_link_open(struct mr_worker_shell *sh);
void mr_worker_link_close(struct mr_worker_shell *sh);
/* True: there is a stream, and no bytes wait to be sent. */
bool mr_worker_link_may_send(const struct mr_worker_shell *sh);
/* Sends a message of the core, or, where `up` is NULL, only what tasks have written. */
void mr_worker_link_send(struct mr_worker_shell *sh, const struct mr_ws_up *up);
void mr_worker_link_free(struct mr_worker_shell *sh);
/* Adds the output of a finished task to the next message. */
void mr_worker_link_log(struct mr_worker_shell *sh, const struct mr_strand_item *item);
/* Sends what running tasks have written since the last call. While there is no stream, the output
 * waits. */
void mr_worker_link_logs_of_running(struct mr_worker_shell *sh);
