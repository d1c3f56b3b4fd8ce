/* Memory for what is being read from outside: a bound in all, and half of it for the requests of
 * one user together. Each request has a hold of its own, whose first bytes do not count, so that
 * small requests pass however much others send; and one request alone may take all there is. Any
 * thread. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct mr_allowance;

struct mr_allowance_hold { /* of one request; zeros at first */
    uint64_t user;
    uint64_t bytes, counted;
};

struct mr_allowance *mr_allowance_new(uint64_t bytes_max, uint64_t free_bytes);
void mr_allowance_free(struct mr_allowance **q);

/* So many more are to be read. MR_ELIMIT, with the sentence for who sent them: nothing is taken. */
int mr_allowance_add(struct mr_allowance *q, struct mr_allowance_hold *hold, struct mr_str user,
    uint64_t bytes, struct mr_error *e);
void mr_allowance_drop(
    struct mr_allowance *q, struct mr_allowance_hold *hold); /* they were read, or are gone */
uint64_t mr_allowance_bytes(struct mr_allowance *q);         /* that count now */
