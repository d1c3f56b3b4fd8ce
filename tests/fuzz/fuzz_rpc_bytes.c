/* Fuzzes the parsers that lib/rpc itself has. The first byte of the input chooses what the other
 * bytes are: status details, a set of descriptors, or a request for reflection. */
#include "base/assert.h"
#include "base/limits.h"
#include "proto/methods.h"
#include "rpc/server/reflection_answer.h"
#include "rpc/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_status(struct mr_str bytes)
{
    for (int code = 0; code <= 17; code++) {
        struct mr_rpc_status s = {code, MR_STR("words"), bytes};
        struct mr_error e;
        int err = mr_rpc_status_error(&s, &e);
        mr_assert(!err == !code);
    }
}

static void read_descriptors(struct mr_str bytes)
{
    struct mr_descriptors d;
    mr_descriptors_init(&d);
    struct mr_error e;
    (void)mr_descriptors_add(&d, bytes, &e);
    for (uint32_t i = 0; i < d.symbols_count; i++) {
        mr_assert(d.symbols[i].file < d.files_count);
        uint32_t file = mr_descriptors_symbol_file(&d, mr_str(d.symbols[i].name));
        mr_assert(file != MR_INDEX_NONE || strlen(d.symbols[i].name) == 0);
    }
    mr_descriptors_fini(&d);
}

static void ask(struct mr_str bytes)
{
    static struct mr_descriptors d;
    if (!d.files_count) {
        mr_descriptors_init(&d);
        int err = mr_descriptors_add(&d, mr_proto_descriptor_set(), NULL);
        mr_assert(!err);
    }
    static const struct mr_str services[] = {MR_STR_INIT("a.B")};
    struct mr_buf out;
    mr_buf_init(&out, MR_MESSAGE_BYTES_MAX);
    (void)mr_reflection_answer(&d, services, 1, bytes, &out);
    mr_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    struct mr_str bytes = mr_str_of(data + 1, n - 1);
    if (data[0] % 3 == 0) read_status(bytes);
    if (data[0] % 3 == 1) read_descriptors(bytes);
    if (data[0] % 3 == 2) ask(bytes);
    return 0;
}
