/* Unpacks the protobuf messages of all public methods. The first byte chooses the method, the
 * second its request or its response. An accepted message is packed again and must read back the
 * same. */
#include "base/assert.h"
#include "proto/methods.h"
#include "rpc/util/pb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MEMORY_MAX ((size_t)4 << 20)

static void round_trip(const ProtobufCMessageDescriptor *type, struct mr_str bytes)
{
    struct mr_pb_arena a, b;
    mr_pb_arena_init(&a, MEMORY_MAX);
    mr_pb_arena_init(&b, 4 * MEMORY_MAX);
    struct mr_error e;
    const ProtobufCMessage *m = mr_pb_unpack(type, bytes, &a, &e);
    if (m) {
        struct mr_buf once, twice;
        mr_buf_init(&once, 4 * MEMORY_MAX);
        mr_buf_init(&twice, 4 * MEMORY_MAX);
        mr_pb_pack(m, &once);
        const ProtobufCMessage *again = mr_pb_unpack(type, mr_buf_str(&once), &b, &e);
        mr_assert(again);
        mr_pb_pack(again, &twice);
        mr_assert(mr_str_eq(mr_buf_str(&once), mr_buf_str(&twice)));
        mr_buf_fini(&once);
        mr_buf_fini(&twice);
    }
    mr_pb_arena_fini(&a);
    mr_pb_arena_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2) return 0;
    const struct mr_proto_method *method =
        mr_proto_method((enum mr_method_id)(data[0] % MR_METHOD_COUNT));
    round_trip(data[1] % 2 ? method->response : method->request, mr_str_of(data + 2, n - 2));
    return 0;
}
