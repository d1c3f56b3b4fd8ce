/* A directory has one store at a time. The lock is a flock on DIR/lock. The kernel releases it
 * when the process ends for any reason. So a process that gets the lock knows that the process
 * before it has ended. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct mr_claim;

/* Makes DIR if need be. MR_EEXIST, naming the process that has it, when it is not let go in a
 * moment. */
int mr_claim_take(const char *dir, const char *node, struct mr_claim **out, struct mr_error *e);
void mr_claim_drop(struct mr_claim **c);
/* The same for every store that had this directory, and for no other one. */
uint64_t mr_claim_directory(const struct mr_claim *c);
