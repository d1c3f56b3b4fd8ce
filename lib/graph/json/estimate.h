/* Estimates the size of the graph that a JSON document describes, with "for", "each" and "${…}"
 * expanded, and checks limits early. An entry is a member of a JSON object "tasks" or "dsk". */
#pragma once

#include "graph/json/internal.h"

struct mr_json_estimate;

/* Makes an estimate. The parameters must have values already, and no entry has been read yet. */
struct mr_json_estimate *mr_json_estimate_new(struct mr_json *j);
void mr_json_estimate_free(struct mr_json_estimate **x);

/* Adds entries of the body of a loop with `rounds` rounds, or entries outside of loops (`rounds` is
 * 1). MR_ELIMIT: all entries so far make more tasks, keys or arguments than the builder accepts;
 * the error names the key. Other errors are left to the reader of the entries. */
int mr_json_estimate_entries(struct mr_json_estimate *x, yyjson_val *entries, uint64_t rounds);
int mr_json_estimate_targets(struct mr_json_estimate *x, yyjson_val *targets);
