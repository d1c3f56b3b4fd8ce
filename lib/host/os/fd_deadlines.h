/* Deadlines of sockets. One thread calls mr_fd_deadlines_reap, which shuts down the sockets whose
 * deadline has passed. The shutdown wakes the thread that waits on the socket. The owner of a
 * socket sets its deadline on any thread. */
#pragma once

#include "base/time.h"

#include <stddef.h>

struct mr_fd_deadlines;

struct mr_fd_deadlines *mr_fd_deadlines_new(void);
void mr_fd_deadlines_free(struct mr_fd_deadlines **d);

/* Sets or replaces the deadline of a socket, on any thread. MR_NEVER: no deadline. */
void mr_fd_deadlines_set(struct mr_fd_deadlines *d, int fd, mr_time deadline);
/* Removes the deadline of `fd`. The owner calls this function before closing `fd`. After the return
 * this module does not touch the descriptor. */
void mr_fd_deadlines_forget(struct mr_fd_deadlines *d, int fd);

/* Shuts down the sockets whose deadline has passed, and returns their number. Sets `*next` to the
 * earliest deadline that is left, or to MR_NEVER. */
size_t mr_fd_deadlines_reap(struct mr_fd_deadlines *d, mr_time now, mr_time *next);
