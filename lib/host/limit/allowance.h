/* A bound on the memory of request bodies that are being read. All requests together may use
 * `bytes_max`. The requests of one user together may use half of `bytes_max`; but a request that is
 * the only one of its user may use all of it. The first `free_bytes` of each request do not count,
 * so small requests pass even when others have used up the allowance. The functions may be called
 * on any thread. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct mr_allowance;

struct mr_allowance_hold { /* the bytes that one request has taken; initialise with zeros */
    uint64_t user;
    uint64_t bytes, counted;
};

struct mr_allowance *mr_allowance_new(uint64_t bytes_max, uint64_t free_bytes);
void mr_allowance_free(struct mr_allowance **q);

/* Takes `bytes` more for a request of `user`. MR_ELIMIT: the allowance is used up, and no bytes are
 * taken; `e` has the error text for the client. */
int mr_allowance_add(struct mr_allowance *q, struct mr_allowance_hold *hold, struct mr_str user,
    uint64_t bytes, struct mr_error *e);
/* Gives back all bytes that the request has taken. */
void mr_allowance_drop(struct mr_allowance *q, struct mr_allowance_hold *hold);
uint64_t mr_allowance_bytes(struct mr_allowance *q); /* returns the bytes that count at present */
