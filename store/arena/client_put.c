/* Copies bytes into a new object. A single processor copies at a fraction of the memory's
 * bandwidth, so a thread pool copies large objects. The work is cut into small pieces: a thread
 * that gets no processor delays one piece only. */
#include "store/arena/client_link.h"

#include "base/limits.h"
#include "host/pool/thread_pool.h"

#include <string.h>

/* Objects up to this size are copied by one thread, because waking another thread costs as much as
 * copying a MiB. */
#define ALONE_BYTES ((uint64_t)4 << 20)
#define PIECE_BYTES ((uint64_t)1 << 20)

struct copying {
    unsigned char *to;
    const unsigned char *from;
    uint64_t bytes;
};

static void copy_piece(void *ctx, uint32_t piece, uint32_t worker)
{
    const struct copying *c = ctx;
    uint64_t at = piece * PIECE_BYTES;
    (void)worker;
    memcpy(c->to + at, c->from + at, (size_t)MR_MIN(c->bytes - at, PIECE_BYTES));
}

static void copy_together(struct mr_store *st, struct copying *c)
{
    uint32_t pieces = (uint32_t)((c->bytes + PIECE_BYTES - 1) / PIECE_BYTES);
    pthread_mutex_lock(&st->pool_lock);
    if (!st->pool) st->pool = mr_thread_pool_new(mr_thread_pool_workers_here(MR_PUT_THREADS));
    mr_thread_pool_run(st->pool, copy_piece, c, pieces);
    pthread_mutex_unlock(&st->pool_lock);
}

int mr_store_put(struct mr_store *st, const void *bytes, uint64_t n,
    const struct mr_store_owner *owner, mr_duration timeout, mr_object_id *id, struct mr_error *e)
{
    struct mr_store_draft draft;
    int err = mr_store_create(st, n, timeout, &draft, e);
    if (err) return err;
    struct copying all = {draft.p, bytes, n};
    if (n > ALONE_BYTES)
        copy_together(st, &all);
    else if (n)
        memcpy(draft.p, bytes, (size_t)n);
    mr_object_id made = draft.id;
    err = mr_store_seal(st, &draft, owner, NULL, e);
    if (!err) *id = made;
    return err;
}
