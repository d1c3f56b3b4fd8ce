/* Executors that act in the place of the sleeping network thread. */
#pragma once

#include "services/worker/shell/shell.h"

/* Returns the time until which the network thread may sleep. Also sets how many tasks have to be
 * reported to wake it earlier. */
mr_time mr_worker_shell_sleep_deadline(struct mr_worker_shell *sh, mr_time deadline);
void mr_worker_shell_allow_delegates(struct mr_worker_shell *sh, bool on);
/* Takes an executor's report, on the executor's thread. `ctx` is the shell. */
void mr_worker_shell_on_report(void *ctx, const struct mr_run_report *r);
