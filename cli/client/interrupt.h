/* Ctrl-C while a command waits for a job of its own: the job's id is said, the second Ctrl-C
 * cancels the job, the third leaves at once (exit code 130), also while the cluster has not
 * answered the second. SIGTERM and SIGHUP leave at once; the job goes on. */
#pragma once

#include "cli/client/client.h"

struct mr_interrupts;

/* `c` and `id` are lent until mr_interrupts_close; a thread of its own reads them. */
struct mr_interrupts *mr_interrupts_open(const struct mr_client *c, const char *id);
void mr_interrupts_close(struct mr_interrupts **interrupts); /* signals act as before */
