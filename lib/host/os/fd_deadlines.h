/* Deadlines of sockets. A socket that is past its deadline is shut down, and that wakes its owner.
 * Owners set deadlines on their own threads; one thread reaps. */
#pragma once

#include "base/time.h"

#include <stddef.h>

struct mr_fd_deadlines;

struct mr_fd_deadlines *mr_fd_deadlines_new(void);
void mr_fd_deadlines_free(struct mr_fd_deadlines **d);

/* Owner, any thread. MR_NEVER: no deadline. Replaces the deadline that was set. */
void mr_fd_deadlines_set(struct mr_fd_deadlines *d, int fd, mr_time deadline);
/* Before the owner closes `fd`: nothing touches it after the return. */
void mr_fd_deadlines_forget(struct mr_fd_deadlines *d, int fd);

/* Shuts down the sockets that are past their deadlines; returns how many. `*next`: when to call it
 * again, or MR_NEVER. */
size_t mr_fd_deadlines_reap(struct mr_fd_deadlines *d, mr_time now, mr_time *next);
