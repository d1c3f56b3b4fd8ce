/* Bytes that the worker's core keeps: arguments, inline values, texts. The bytes are in
 * reference-counted blobs. The pool takes blobs, in size classes, from reserved address space, so
 * no blob is allocated on the heap. This file does not know what the bytes mean. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

#define MR_POOL_CLASSES 48

struct mr_blob {
    struct mr_blob *next_free;
    uint32_t refs;
    uint32_t bytes;
    uint32_t size_class;
    uint32_t reserved;
};

struct mr_worker__blob_pool {
    struct mr_arena arena;
    struct mr_blob *free[MR_POOL_CLASSES];
    /* sum of the sizes of blobs that are alive, each rounded up to its size class */
    uint64_t bytes;
    uint64_t bytes_max;
};

void mr_worker__blob_pool_init(struct mr_worker__blob_pool *p, uint64_t bytes_max);
void mr_worker__blob_pool_fini(struct mr_worker__blob_pool *p);

/* Returns a blob with one reference and uninitialised bytes; NULL: the pool is full. */
struct mr_blob *mr_worker__blob_new(struct mr_worker__blob_pool *p, size_t bytes);
struct mr_blob *mr_worker__blob_copy(struct mr_worker__blob_pool *p, struct mr_str bytes);
void mr_worker__blob_put(struct mr_worker__blob_pool *p, struct mr_blob **blob); /* NULL is fine */

static inline void *mr_worker__blob_at(struct mr_blob *b)
{
    return b + 1;
}

static inline struct mr_str mr_worker__blob_str(struct mr_blob *b)
{
    return b ? mr_str_of(b + 1, b->bytes) : (struct mr_str){NULL, 0};
}

static inline struct mr_blob *mr_worker__blob_ref(struct mr_blob *b)
{
    if (b) b->refs++;
    return b;
}
