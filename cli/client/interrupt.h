/* Ctrl-C while a command waits for the job that it has submitted. The first Ctrl-C prints the job's
 * id, the second one cancels the job, the third one exits at once with code 130, even if the
 * cluster has not answered the cancel. SIGTERM and SIGHUP exit at once; the job goes on. */
#pragma once

#include "cli/client/client.h"

struct mr_interrupts;

/* Starts to handle the signals. `c` and `id` are lent until mr_interrupts_close, because the signal
 * thread reads them. */
struct mr_interrupts *mr_interrupts_open(const struct mr_client *c, const char *id);
/* Restores the default actions of the signals. */
void mr_interrupts_close(struct mr_interrupts **interrupts);
