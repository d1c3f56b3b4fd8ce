/* How much "for", "each" and "${…}" ask for, before any of it is made. */
#pragma once

#include "graph/json/internal.h"

struct mr_json_estimate;

/* When the parameters are bound, and before the first entry is read. */
struct mr_json_estimate *mr_json_estimate_new(struct mr_json *j);
void mr_json_estimate_free(struct mr_json_estimate **x);

/* Adds entries, of a loop of so many rounds (else 1). MR_ELIMIT, with the key at fault, when all
 * that was added asks for more tasks, keys or arguments than the builder may take. What is wrong
 * otherwise is left for the reader to say. */
int mr_json_estimate_entries(struct mr_json_estimate *x, yyjson_val *entries, uint64_t rounds);
int mr_json_estimate_targets(struct mr_json_estimate *x, yyjson_val *targets);
