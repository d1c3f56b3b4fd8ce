/* The inside of the JSON parser: slices of a text whose entries are plain - tasks of numbers, texts
 * and references to keys, values that are numbers - read side by side into columns, then added to
 * the builder in their order. */
#pragma once

#include "graph/json_impl.h"

struct mr_json_plain;

/* The keys of all entries stand in the builder, and nothing of `text` needs parameters. */
struct mr_json_plain *mr_json_plain_new(const struct mr_json *j, struct mr_str text);
void mr_json_plain_free(struct mr_json_plain **p);
uint32_t mr_json_plain_room(const struct mr_json_plain *p); /* slices at a time */
/* Reads so many slices, the first of which has the nodes from `first` on. */
void mr_json_plain_read(
    struct mr_json_plain *p, const struct mr_json_slice *slices, uint32_t count, uint32_t first);
/* Defines the nodes of one of them. `*taken` is false if it is not plain: then nothing was done. */
int mr_json_plain_add(struct mr_json_plain *p, uint32_t slice, bool *taken);
