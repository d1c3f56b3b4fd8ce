/* Reads messages. One function reads the fields of every kind of message; then each kind picks its
 * own fields. */
#include "train/params/wire.h"

#include "base/protowire.h"

#include <string.h>

#define NUMBERS 10u /* fields with a number below this are kept as integers */

struct fields {
    char *session; /* memory of MR_SESSION_MAX bytes for field 1; NULL: field 1 is an integer */
    uint32_t data_number;
    uint64_t number[NUMBERS];
    bool has[NUMBERS];
    struct mr_str data;
};

static int fields_read(
    struct mr_str bytes, struct fields *out, const char *what, struct mr_error *e)
{
    struct mr_protowire_reader r = mr_protowire_read(bytes);
    struct mr_protowire_field f;
    int err;
    while (!(err = mr_protowire_next(&r, &f))) {
        if (f.number == 1 && f.type == MR_PROTOWIRE_BYTES && out->session &&
            f.bytes.n < MR_SESSION_MAX) {
            memset(out->session, 0, MR_SESSION_MAX);
            if (f.bytes.n) memcpy(out->session, f.bytes.p, f.bytes.n);
        } else if (f.number == out->data_number && f.type == MR_PROTOWIRE_BYTES) {
            out->data = f.bytes;
        } else if (f.number < NUMBERS && f.type == MR_PROTOWIRE_VARINT) {
            out->number[f.number] = f.value;
            out->has[f.number] = true;
        }
    }
    return err == MR_ENOENT ? MR_OK : mr_fail(e, MR_EFORMAT, "a malformed %s", what);
}

int mr_gradient_chunk_read(struct mr_str bytes, struct mr_gradient_chunk *out, struct mr_error *e)
{
    *out = (struct mr_gradient_chunk){0};
    struct fields f = {.session = out->session, .data_number = 10};
    int err = fields_read(bytes, &f, "GradientChunk", e);
    if (err) return err;
    out->shard = (uint32_t)f.number[2];
    out->worker = (uint32_t)f.number[3];
    out->incarnation = f.number[4];
    out->step = f.number[5];
    out->base_version = f.number[6];
    out->restore_epoch = (uint32_t)f.number[7];
    out->count = f.number[8];
    out->examples = (uint32_t)f.number[9];
    out->data = f.data;
    return MR_OK;
}

int mr_parameter_chunk_read(struct mr_str bytes, struct mr_parameter_chunk *out, struct mr_error *e)
{
    struct fields f = {.data_number = 4};
    int err = fields_read(bytes, &f, "ParameterChunk", e);
    if (err) return err;
    *out = (struct mr_parameter_chunk){.has_version = f.has[1],
        .has_count = f.has[3],
        .version = f.number[1],
        .count = f.number[3],
        .data = f.data};
    return MR_OK;
}

int mr_ring_message_read(struct mr_str bytes, struct mr_ring_message *out, struct mr_error *e)
{
    *out = (struct mr_ring_message){0};
    struct fields f = {.session = out->session, .data_number = 7};
    int err = fields_read(bytes, &f, "RingBlock", e);
    if (err) return err;
    out->rank_from = (uint32_t)f.number[2];
    out->generation = (uint32_t)f.number[3];
    out->step = f.number[4];
    out->round = (uint32_t)f.number[5];
    out->count = f.number[6];
    out->data = f.data;
    out->contributors = (uint32_t)MR_MIN(f.number[8], (uint64_t)MR_RANKS_MAX + 1);
    return MR_OK;
}
