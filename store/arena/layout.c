/* The head of an extent and its checksum. */
#include "store/arena/layout.h"

#include <xxhash.h>

void mr_extent_head_fill(struct mr_extent_head *h, mr_object_id id, uint64_t bytes, mr_job_id job,
    uint32_t task, uint32_t attempt)
{
    *h = (struct mr_extent_head){
        .magic = MR_EXTENT_MAGIC,
        .maker = id.maker,
        .number = id.number,
        .bytes = bytes,
        .job = job.v,
        .task = task,
        .attempt = attempt,
    };
    h->check = XXH3_64bits(h, offsetof(struct mr_extent_head, check));
}

bool mr_extent_head_is_valid(const struct mr_extent_head *h)
{
    return h->magic == MR_EXTENT_MAGIC &&
           h->check == XXH3_64bits(h, offsetof(struct mr_extent_head, check));
}
