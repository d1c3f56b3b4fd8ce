/* A directory has one store at a time. Its lock is a flock on DIR/lock, which the system lets go
 * when the process dies, however it dies: whoever gets it may take the one before for dead. */
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
