/* In a control group with little memory, slabs and segments are made smaller. Otherwise a client
 * whose objects have many sizes would reserve the whole limit for partly used slabs. */
#include "store/arena/client_limit.h"

#include "base/assert.h"
#include "store/arena/client_link.h"

#define SLAB_BYTES_MIN (2 * MR_SMALL_BYTES_MAX)

int mr_store_limit(struct mr_store *st, const struct mr_store_limit *limit, struct mr_error *e)
{
    if (!limit->memory_bytes || !limit->group) return MR_OK;
    uint64_t most = mr_store_written_max(limit->memory_bytes, limit->own_bytes);
    uint64_t slab = st->welcome.slab_bytes;
    while (slab > most / 64 && slab / 2 >= SLAB_BYTES_MIN)
        slab /= 2;
    pthread_mutex_lock(&st->space_lock);
    mr_assert(!st->space.segments_count);
    mr_space_fini(&st->space);
    mr_space_init(&st->space, slab);
    uint64_t eighth = mr_align_up(most / 8, MR_ARENA_PAGE);
    st->welcome.slab_bytes = slab;
    st->welcome.segment_bytes = MR_MIN(st->welcome.segment_bytes, MR_MAX(eighth, 2 * slab));
    pthread_mutex_unlock(&st->space_lock);
    const struct mr_ctl_limit m = {limit->memory_bytes, limit->own_bytes, limit->group};
    int err = mr_ctl_send(st->socket, MR_CTL_LIMIT, 0, &m, NULL, 0, -1);
    return err ? mr_store_dead_error(e) : MR_OK;
}
