/* What the whole cluster knows of objects, in Redis: names, and the places of objects that others
 * than their maker may ask for. Any process may read and write it; what it returns is outside
 * bytes and is checked. Answers come on the connection's thread, each callback exactly once. */
#pragma once

#include "base/err.h"
#include "base/id.h"

struct mr_redis;
struct mr_directory;

struct mr_name_record {
    struct mr_str name;
    mr_object_id object;
    bool has_definition;
    unsigned char definition[16]; /* hash of what computed it */
    uint64_t nbytes;
    struct mr_str summary;
    struct mr_str node;    /* that has it */
    struct mr_str address; /* gRPC address of that node's store */
    uint64_t created_ns;   /* wall clock */
    bool durable;
};

struct mr_place_record {
    mr_object_id object;
    uint64_t nbytes;
    struct mr_str node;
    struct mr_str address;
    bool durable;
};

/* The connection is borrowed; `prefix` NULL: MR_META_PREFIX. */
struct mr_directory *mr_directory_new(struct mr_redis *redis, const char *prefix);
void mr_directory_free(struct mr_directory **d);

/* err: MR_OK, MR_ENOENT, MR_EEXIST, MR_EAWAY, MR_EFORMAT. Records are on loan for the call. */
typedef void (*mr_name_fn)(void *ctx, int err, const struct mr_name_record *record);
typedef void (*mr_names_fn)(
    void *ctx, int err, const struct mr_name_record *records, size_t count, bool more);
typedef void (*mr_place_fn)(void *ctx, int err, const struct mr_place_record *record);
typedef void (*mr_done_fn)(void *ctx, int err);
/* A page of places; `next` is the cursor of the page after it, "0" when there is none. */
typedef void (*mr_places_fn)(
    void *ctx, int err, const struct mr_place_record *records, size_t count, struct mr_str next);

/* MR_EEXIST, with the record that is there, when the name is another object's and `replace` is not
 * set; MR_OK with what is there now. */
void mr_directory_name(struct mr_directory *d, const struct mr_name_record *record, bool replace,
    mr_name_fn fn, void *ctx);
void mr_directory_resolve(struct mr_directory *d, struct mr_str name, mr_name_fn fn, void *ctx);
/* MR_OK with the record that was there. `only` (none: any): the name goes if it is that object's,
 * else MR_ENOENT. */
void mr_directory_unname(
    struct mr_directory *d, struct mr_str name, mr_object_id only, mr_name_fn fn, void *ctx);
/* Names after `after` (empty: from the first) that begin with `prefix`, in the order of their
 * bytes. */
void mr_directory_names(struct mr_directory *d, struct mr_str prefix, struct mr_str after,
    uint32_t count_max, mr_names_fn fn, void *ctx);

void mr_directory_place(
    struct mr_directory *d, const struct mr_place_record *record, mr_done_fn fn, void *ctx);
/* Takes the entry away if it says `node`: another node may have told of a copy since. */
void mr_directory_unplace(
    struct mr_directory *d, mr_object_id object, struct mr_str node, mr_done_fn fn, void *ctx);
/* All places, a page a call; the first cursor is "0". What comes or goes meanwhile may be told,
 * once or more, or not. */
void mr_directory_places(struct mr_directory *d, struct mr_str cursor, mr_places_fn fn, void *ctx);
void mr_directory_find(struct mr_directory *d, mr_object_id object, mr_place_fn fn, void *ctx);

/* Several at once, waiting: `fn` is called for each name, in their order, on this thread; with
 * MR_ENOENT or MR_EFORMAT where there is no record. An error is the connection's. */
int mr_directory_resolve_sync(struct mr_directory *d, const struct mr_str *names, size_t count,
    mr_name_fn fn, void *ctx, struct mr_error *e);
