/* Helpers for error texts: where the error is, and the known word nearest to an unknown one. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define MR_NEAREST_HINT_MAX 160

struct mr_nearest {
    struct mr_str want;
    struct mr_str best; /* the nearest word so far; lent by the caller of mr_nearest_offer */
    unsigned distance;
    uint32_t offers;
};

void mr_nearest_init(struct mr_nearest *n, struct mr_str want);
void mr_nearest_offer(struct mr_nearest *n, struct mr_str word);

/* Writes ` (did you mean "inc"?)`, or nothing if no word was near. Returns `out`. */
const char *mr_nearest_hint(const struct mr_nearest *n, char out[MR_NEAREST_HINT_MAX]);

/* For error texts: `"key \"%.*s\"", MR_SHOWN(key)` shows at most 120 bytes of the key. */
#define MR_SHOWN(s) (int)MR_MIN((s).n, (size_t)120), ((s).p ? (s).p : "")

/* Puts `what "name": ` before the error text in `e`. Returns `err`. */
int mr_fail_within(struct mr_error *e, int err, const char *what, struct mr_str name);
