/* The inside of the JSON parser: slices of a text whose entries are plain - tasks of numbers, texts
 * and references to keys, values that are numbers - read side by side into columns, then added to
 * the builder in their order. */
#pragma once

#include "graph/json/entries.h"

struct mr_json_plain;

/* Nothing of the text needs parameters. */
struct mr_json_plain *mr_json_plain_new(const struct mr_json *j);
void mr_json_plain_free(struct mr_json_plain **p);
uint32_t mr_json_plain_room(const struct mr_json_plain *p); /* slices at a time */
/* Reads so many slices, whose keys stand in the builder. `has_all`: so do those of all others;
 * otherwise a text or reference that is no key yet is not plain. */
void mr_json_plain_read(
    struct mr_json_plain *p, const struct mr_json_piece *pieces, uint32_t count, bool has_all);
/* The same before all keys are there, while one worker does `other` first. */
void mr_json_plain_read_beside(struct mr_json_plain *p, const struct mr_json_piece *pieces,
    uint32_t count, void (*other)(void *ctx), void *ctx);
/* The op for which one of them is not plain: no task before had it. False: it was not that. */
bool mr_json_plain_misses(const struct mr_json_plain *p, uint32_t slice, struct mr_str *op);
/* Defines the nodes of one of them. `*taken` is false if it is not plain: then nothing was done. */
int mr_json_plain_add(struct mr_json_plain *p, uint32_t slice, bool *taken);
