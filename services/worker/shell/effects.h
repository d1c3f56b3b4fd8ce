/* Events for the core, and its effects. For the thread that holds the loan lock. */
#pragma once

#include "services/worker/shell/shell.h"

void mr_worker_shell_step(struct mr_worker_shell *sh, const struct mr_worker_event *ev);
/* Ends a turn, as often as the core has something to do at once. */
void mr_worker_shell_turn(struct mr_worker_shell *sh);
void mr_worker_shell_report(struct mr_worker_shell *sh, const struct mr_run_report *r);
/* A turn on an executor's thread, which sends nothing. False: there is something for the network
 * thread to do; effects may wait for it. */
bool mr_worker_shell_delegate_turn(struct mr_worker_shell *sh);
