/* The directory of the store: names of objects, and places. A place says that a node has an object.
 * With Redis, names and places are shared by the cluster (store/meta/directory.h). Without Redis
 * there are no other nodes: names are in the memory of this store, durable names also in the file
 * DIR/names, and no place is found. The functions and answers are the same with and without Redis.
 * A callback runs exactly once, on any thread. */
#pragma once

#include "base/err.h"
#include "store/meta/directory.h"

struct mr_names;

struct mr_names_config {
    const char *dir;   /* NULL: names are not kept on disk */
    const char *redis; /* NULL: no Redis */
    const char *password;
    /* called on any thread when Redis is connected, also when it is connected again */
    void (*here)(void *ctx);
    void *ctx;
};
int mr_names_open(const struct mr_names_config *config, struct mr_names **out, struct mr_error *e);
void mr_names_close(struct mr_names **names);

/* The functions of names do what mr_directory_name, _resolve, _unname and _names do. Without Redis,
 * only the gRPC thread may call them, and the callback runs before the function returns. */
void mr_names_set(struct mr_names *n, const struct mr_name_record *record, bool replace,
    mr_name_fn fn, void *ctx);
void mr_names_resolve(struct mr_names *n, struct mr_str name, mr_name_fn fn, void *ctx);
void mr_names_remove(
    struct mr_names *n, struct mr_str name, mr_object_id only, mr_name_fn fn, void *ctx);
void mr_names_list(struct mr_names *n, struct mr_str prefix, struct mr_str after,
    uint32_t count_max, mr_names_fn fn, void *ctx);

/* The functions of places do what mr_directory_place, _unplace, _places and _find do. Any thread
 * may call them. */
void mr_names_place(
    struct mr_names *n, const struct mr_place_record *record, mr_done_fn fn, void *ctx);
void mr_names_unplace(
    struct mr_names *n, mr_object_id id, struct mr_str node, mr_done_fn fn, void *ctx);
void mr_names_places(struct mr_names *n, struct mr_str cursor, mr_places_fn fn, void *ctx);
void mr_names_find(struct mr_names *n, mr_object_id id, mr_place_fn fn, void *ctx);

/* Remembers a name that holds an object, for messages to users. The core does not have the text of
 * the name, only `key`, its hash. Called on the gRPC thread, as is mr_names_by_key. */
void mr_names_note(struct mr_names *n, uint64_t key, struct mr_str name);
/* Returns the name with this key; NULL: no such name was noted, or another name took its slot. */
const char *mr_names_by_key(const struct mr_names *n, uint64_t key);
