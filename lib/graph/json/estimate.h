/* A bound check before entries are read: how much "for", "each" and "${…}" make of a document. */
#pragma once

#include "graph/json/internal.h"

struct mr_json_estimate;

/* Called when the parameters have values, before the first entry is read. */
struct mr_json_estimate *mr_json_estimate_new(struct mr_json *j);
void mr_json_estimate_free(struct mr_json_estimate **x);

/* Adds entries; `rounds` are those of their loop, else 1. MR_ELIMIT, with the key at fault: all
 * that was added makes more tasks, keys or arguments than the builder may take. Other errors are
 * left to the reader. */
int mr_json_estimate_entries(struct mr_json_estimate *x, yyjson_val *entries, uint64_t rounds);
int mr_json_estimate_targets(struct mr_json_estimate *x, yyjson_val *targets);
