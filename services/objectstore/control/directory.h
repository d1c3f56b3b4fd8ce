/* Names of objects, and the nodes of objects that other stores have. With Redis they are in Redis.
 * Without it they are in the memory of this store, and durable ones also in a file beside the
 * objects. Both kinds have the same questions and answers. Answers come on any thread, each
 * exactly once. */
#pragma once

#include "base/err.h"
#include "store/meta/directory.h"

struct mr_names;

struct mr_names_config {
    const char *dir;   /* NULL: none */
    const char *redis; /* NULL: none */
    const char *password;
    void (*here)(void *ctx); /* on any thread: Redis is there, or there again */
    void *ctx;
};
int mr_names_open(const struct mr_names_config *config, struct mr_names **out, struct mr_error *e);
void mr_names_close(struct mr_names **names);

/* As mr_directory_name and its like. */
void mr_names_set(struct mr_names *n, const struct mr_name_record *record, bool replace,
    mr_name_fn fn, void *ctx);
void mr_names_resolve(struct mr_names *n, struct mr_str name, mr_name_fn fn, void *ctx);
void mr_names_remove(
    struct mr_names *n, struct mr_str name, mr_object_id only, mr_name_fn fn, void *ctx);
void mr_names_list(struct mr_names *n, struct mr_str prefix, struct mr_str after,
    uint32_t count_max, mr_names_fn fn, void *ctx);

/* Places: without Redis there are no other nodes, and nothing is found. */
void mr_names_place(
    struct mr_names *n, const struct mr_place_record *record, mr_done_fn fn, void *ctx);
void mr_names_unplace(
    struct mr_names *n, mr_object_id id, struct mr_str node, mr_done_fn fn, void *ctx);
void mr_names_places(struct mr_names *n, struct mr_str cursor, mr_places_fn fn, void *ctx);
void mr_names_find(struct mr_names *n, mr_object_id id, mr_place_fn fn, void *ctx);

/* Remembers the name behind a holder's key, for messages about holders. gRPC thread. */
void mr_names_note(struct mr_names *n, uint64_t key, struct mr_str name);
const char *mr_names_by_key(const struct mr_names *n, uint64_t key); /* NULL: not known */
