/* The cluster's directory of objects in Redis: names of objects, and the stores that have a copy of
 * an object (places). Any process may read and write it. Everything read from Redis is untrusted
 * and checked. Each callback is called exactly once: on the thread of the connection to Redis, or
 * with MR_EAWAY on the caller's thread, before the return, if the command cannot be sent. */
#pragma once

#include "base/err.h"
#include "base/id.h"

struct mr_redis;
struct mr_directory;

struct mr_name_record {
    struct mr_str name;
    mr_object_id object;
    bool has_definition;
    unsigned char definition[16]; /* the hash of the definition of the task that made the object */
    uint64_t nbytes;
    struct mr_str summary;
    struct mr_str node;    /* the node that has the object */
    struct mr_str address; /* gRPC address of this node's store */
    uint64_t created_ns;   /* ns since 1970 */
    bool durable;
};

struct mr_place_record {
    mr_object_id object;
    uint64_t nbytes;
    struct mr_str node;
    struct mr_str address;
    bool durable;
};

/* Makes a directory. `redis` is borrowed. If `prefix` is NULL, keys begin with MR_META_PREFIX. */
struct mr_directory *mr_directory_new(struct mr_redis *redis, const char *prefix);
void mr_directory_free(struct mr_directory **d);

/* Receives the answer to a request: MR_OK, MR_ENOENT, MR_EEXIST, MR_EAWAY, MR_EFORMAT, or
 * MR_ECANCELED if the connection was closed. `record` is borrowed for the call. */
typedef void (*mr_name_fn)(void *ctx, int err, const struct mr_name_record *record);
typedef void (*mr_names_fn)(
    void *ctx, int err, const struct mr_name_record *records, size_t count, bool more);
typedef void (*mr_place_fn)(void *ctx, int err, const struct mr_place_record *record);
typedef void (*mr_done_fn)(void *ctx, int err);
/* Receives a page of places. `next` is the cursor of the next page; "0": this page is the last
 * one. */
typedef void (*mr_places_fn)(
    void *ctx, int err, const struct mr_place_record *records, size_t count, struct mr_str next);

/* Gives an object a name. MR_EEXIST: the name belongs to another object and `replace` is false; the
 * callback gets that object's record. MR_OK: the callback gets the new record. */
void mr_directory_name(struct mr_directory *d, const struct mr_name_record *record, bool replace,
    mr_name_fn fn, void *ctx);
void mr_directory_resolve(struct mr_directory *d, struct mr_str name, mr_name_fn fn, void *ctx);
/* Removes a name and answers with its record. If `only` is an id, the name is removed only if it
 * belongs to this object. MR_ENOENT: there is no such name, or it belongs to another object. */
void mr_directory_unname(
    struct mr_directory *d, struct mr_str name, mr_object_id only, mr_name_fn fn, void *ctx);
/* Lists names after `after` ("": from the first name) that begin with `prefix`, sorted by bytes. */
void mr_directory_names(struct mr_directory *d, struct mr_str prefix, struct mr_str after,
    uint32_t count_max, mr_names_fn fn, void *ctx);

void mr_directory_place(
    struct mr_directory *d, const struct mr_place_record *record, mr_done_fn fn, void *ctx);
/* Removes the place of an object if the place names `node`. The place may name another node by now,
 * because that node has a copy of its own. */
void mr_directory_unplace(
    struct mr_directory *d, mr_object_id object, struct mr_str node, mr_done_fn fn, void *ctx);
/* Lists all places, one page a call; the first cursor is "0". A place that is added or removed
 * during the listing may appear not at all, once or twice. */
void mr_directory_places(struct mr_directory *d, struct mr_str cursor, mr_places_fn fn, void *ctx);
void mr_directory_find(struct mr_directory *d, mr_object_id object, mr_place_fn fn, void *ctx);

/* Looks up several names and waits. Calls `fn` on this thread for each name in order, with
 * MR_ENOENT or MR_EFORMAT for a name without a usable record. A returned error is an error of the
 * connection. */
int mr_directory_resolve_sync(struct mr_directory *d, const struct mr_str *names, size_t count,
    mr_name_fn fn, void *ctx, struct mr_error *e);
