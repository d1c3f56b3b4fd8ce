/* How long sockets of others are waited for: each has a deadline, and who passes it is shut down,
 * which wakes whoever owns the socket. Owners tell from their own threads; one thread reaps. */
#pragma once

#include "base/time.h"

#include <stddef.h>

struct mr_fd_deadlines;

struct mr_fd_deadlines *mr_fd_deadlines_new(void);
void mr_fd_deadlines_free(struct mr_fd_deadlines **d);

/* Owner, any thread: from now until `deadline`; MR_NEVER lets it be. Replaces what was set. */
void mr_fd_deadlines_set(struct mr_fd_deadlines *d, int fd, mr_time deadline);
/* Before the owner closes `fd`: it will not be touched after the return. */
void mr_fd_deadlines_forget(struct mr_fd_deadlines *d, int fd);

/* Shuts down what is over its deadline; returns how many. `*next` is when to come again, or
 * MR_NEVER. */
size_t mr_fd_deadlines_reap(struct mr_fd_deadlines *d, mr_time now, mr_time *next);
