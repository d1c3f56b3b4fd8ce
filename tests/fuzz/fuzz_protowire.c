/* Protobuf's wire format: fields that are read are written again and must read back the same. */
#include "base/assert.h"
#include "base/protowire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void write_again(struct mr_buf *b, const struct mr_protowire_field *f)
{
    if (f->type == MR_PROTOWIRE_VARINT) mr_protowire_add_varint(b, f->number, f->value);
    if (f->type == MR_PROTOWIRE_BYTES) {
        size_t began = mr_protowire_begin(b, f->number);
        mr_buf_add_str(b, f->bytes);
        mr_protowire_end(b, began);
    }
    if (f->type != MR_PROTOWIRE_FIXED32 && f->type != MR_PROTOWIRE_FIXED64) return;
    mr_protowire_tag(b, f->number, (enum mr_protowire_type)f->type);
    if (f->type == MR_PROTOWIRE_FIXED32) mr_protowire_fixed32(b, (uint32_t)f->value);
    if (f->type == MR_PROTOWIRE_FIXED64) mr_protowire_fixed64(b, f->value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mr_protowire_reader r = mr_protowire_read(mr_str_of(data, n));
    struct mr_protowire_field f, g;
    struct mr_buf b;
    mr_buf_init(&b, n);
    int err = mr_protowire_next(&r, &f);
    for (; !err; err = mr_protowire_next(&r, &f))
        write_again(&b, &f);
    mr_assert(err == MR_ENOENT || err == MR_EFORMAT);
    /* The written form is the shortest, so it is never longer than what was read. */
    mr_assert(!mr_buf_status(&b));

    struct mr_protowire_reader first = mr_protowire_read(mr_str_of(data, n));
    struct mr_protowire_reader second = mr_protowire_read(mr_buf_str(&b));
    while (!mr_protowire_next(&second, &g)) {
        err = mr_protowire_next(&first, &f);
        mr_assert(!err);
        mr_assert(f.number == g.number);
        mr_assert(f.type == g.type);
        mr_assert(f.value == g.value);
        mr_assert(mr_str_eq(f.bytes, g.bytes));
    }
    mr_buf_fini(&b);
    return 0;
}
