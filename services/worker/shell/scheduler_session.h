/* The stream to the scheduler. For the network thread. */
#pragma once

#include "services/worker/shell/shell.h"

void mr_worker_link_open(struct mr_worker_shell *sh);
void mr_worker_link_close(struct mr_worker_shell *sh);
bool mr_worker_link_may_send(const struct mr_worker_shell *sh); /* nothing waits in the stream */
/* Sends a message of the core, or, where `up` is NULL, only what tasks have written. */
void mr_worker_link_send(struct mr_worker_shell *sh, const struct mr_ws_up *up);
void mr_worker_link_free(struct mr_worker_shell *sh);
/* Output of tasks, which the next messages carry: of a finished item, and of those that run. */
void mr_worker_link_log(struct mr_worker_shell *sh, const struct mr_strand_item *item);
void mr_worker_link_logs_of_running(struct mr_worker_shell *sh);
