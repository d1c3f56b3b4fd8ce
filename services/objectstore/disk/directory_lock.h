/* The lock on --dir: a directory belongs to one store at a time. The lock is a flock on DIR/lock,
 * which the kernel releases when the process ends for any reason. So a store that gets the lock
 * knows that the directory's previous store has ended. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct mr_claim;

/* Takes the lock, after making DIR if it does not exist. Waits up to 2 s. MR_EEXIST: another
 * process has the lock, and the error names that process. */
int mr_claim_take(const char *dir, const char *node, struct mr_claim **out, struct mr_error *e);
void mr_claim_drop(struct mr_claim **c);
/* Returns a number that identifies the locked directory. Every process that locks the directory
 * gets the same number. 0: `c` is NULL. */
uint64_t mr_claim_directory(const struct mr_claim *c);
