/* Events for the core, and its effects. Called by the thread that holds the loan lock (delegate.c).
 * A turn is one pass of that thread's loop; the event TURN ends it. */
#pragma once

#include "services/worker/shell/shell.h"

void mr_worker_shell_step(struct mr_worker_shell *sh, const struct mr_worker_event *ev);
/* Ends a turn: steps the core with TURN and carries out the effects. Repeats this while the core
 * has more to do at once. */
void mr_worker_shell_turn(struct mr_worker_shell *sh);
void mr_worker_shell_report(struct mr_worker_shell *sh, const struct mr_run_report *r);
/* Ends a turn on a delegate's thread, which sends nothing. False: nothing was carried out, because
 * an effect is for the network thread alone; all effects wait for that thread. */
bool mr_worker_shell_delegate_turn(struct mr_worker_shell *sh);
