/* Blocks of events and of samples: the head of a block of spans (internal.h) with another kind, and
 * one message in the wire format of protobuf for each event or sample. */
#include "store/meta/trace/internal.h"

#include "base/protowire.h"

void mr_trace__records_begin(struct mr_buf *block, uint32_t kind, mr_job_id segment)
{
    const struct head h = {.magic = MAGIC,
        .kind = kind,
        .job = segment.v,
        .finished_min = UINT64_MAX,
        .index_min = UINT32_MAX};
    mr_buf_clear(block);
    mr_buf_add(block, &h, sizeof h);
}

size_t mr_trace__record_begin(struct mr_buf *block)
{
    return mr_protowire_begin(block, F_RECORD);
}

void mr_trace__record_end(struct mr_buf *block, size_t began, uint64_t at)
{
    struct head h;
    mr_protowire_end(block, began);
    memcpy(&h, block->p, sizeof h);
    h.count++;
    h.finished_min = MR_MIN(h.finished_min, at);
    h.finished_max = MR_MAX(h.finished_max, at);
    h.bytes = (uint32_t)(block->n - sizeof h);
    if (!block->failed) memcpy(block->p, &h, sizeof h);
}

int mr_trace__records_decode(
    struct mr_str block, uint32_t kind, int (*one)(void *ctx, struct mr_str record), void *ctx)
{
    struct head h;
    if (block.n < sizeof h) return MR_EFORMAT;
    memcpy(&h, block.p, sizeof h);
    if (h.magic != MAGIC || h.bytes != block.n - sizeof h) return MR_EFORMAT;
    if (h.kind != kind) return MR_OK;
    struct mr_protowire_reader r =
        mr_protowire_read(mr_str_of(block.p + sizeof h, block.n - sizeof h));
    struct mr_protowire_field f;
    int err;
    while (!(err = mr_protowire_next(&r, &f)))
        if (f.number == F_RECORD && f.type == MR_PROTOWIRE_BYTES) {
            err = one(ctx, f.bytes);
            if (err) return err;
        }
    return err == MR_ENOENT ? MR_OK : MR_EFORMAT;
}
