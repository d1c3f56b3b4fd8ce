/* The cache of small values. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Frees the blocks of a value that is about to be freed itself. */
void mr_sched__value_uncache(struct block_cache *c, const struct value *v);
void mr_sched__value_set_inline(struct mr_sched *s, struct value *v, struct mr_str bytes);
void mr_sched__value_append(const struct block_cache *c, const struct value *v, struct mr_buf *out);
/* Returns the bytes of a small value, lent until the next call: from its record, or copied to the
 * scratch buffer. */
struct mr_str mr_sched__value_bytes(struct mr_sched *s, const struct value *v);
