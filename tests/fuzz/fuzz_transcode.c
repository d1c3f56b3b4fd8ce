/* The gateway translates between JSON and protobuf. The first line of the fuzzer's input is the
 * path of a method. The rest of the input is a JSON body for the method's request or, after "<",
 * the wire bytes of the method's response. Accepted JSON becomes a message whose own JSON is
 * accepted again and gives the same message. */
#include "base/assert.h"
#include "gateway/http/collect.h"
#include "gateway/json/json_in.h"
#include "gateway/json/json_out.h"
#include "rpc/util/pb.h"

#define BYTES_MAX ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void request(const ProtobufCMessageDescriptor *type, struct mr_str json)
{
    struct mr_buf wire, text, again;
    struct mr_error e;
    struct mr_pb_arena arena;
    mr_buf_init(&wire, BYTES_MAX);
    mr_buf_init(&text, BYTES_MAX);
    mr_buf_init(&again, BYTES_MAX);
    mr_pb_arena_init(&arena, BYTES_MAX);
    if (mr_json_to_wire(type, json, NULL, 0, &wire, &e)) {
        mr_assert(e.text[0]);
    } else {
        ProtobufCMessage *m = mr_pb_unpack(type, mr_buf_str(&wire), &arena, &e);
        mr_assert(m);
        mr_assert(!mr_json_from_message(m, &text));
        mr_assert(!mr_json_to_wire(type, mr_buf_str(&text), NULL, 0, &again, &e));
        size_t n = text.n;
        m = mr_pb_unpack(type, mr_buf_str(&again), &arena, &e);
        mr_assert(m);
        mr_assert(!mr_json_from_message(m, &text));
        mr_assert(text.n == 2 * n);
        mr_assert(!memcmp(text.p, text.p + n, n));
    }
    mr_pb_arena_fini(&arena);
    mr_buf_fini(&wire);
    mr_buf_fini(&text);
    mr_buf_fini(&again);
}

static void response(const ProtobufCMessageDescriptor *type, struct mr_str wire)
{
    struct mr_buf text;
    struct mr_pb_arena arena;
    mr_buf_init(&text, BYTES_MAX);
    mr_pb_arena_init(&arena, BYTES_MAX);
    ProtobufCMessage *m = mr_pb_unpack(type, wire, &arena, NULL);
    if (m) (void)mr_json_from_message(m, &text);
    if (m && type == &millrace__v1__result_item__descriptor)
        mr_collect_one((const Millrace__V1__ResultItem *)(const void *)m, &text);
    mr_pb_arena_fini(&arena);
    mr_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned char *line = size ? memchr(data, '\n', size) : NULL;
    if (!line || size > 65536) return 0;
    bool is_response = data[0] == '<';
    const unsigned char *path = data + is_response;
    if (path > line) return 0;
    const struct mr_proto_method *m = mr_proto_method_find(mr_str_of(path, (size_t)(line - path)));
    if (!m) return 0;
    struct mr_str rest = mr_str_of(line + 1, size - (size_t)(line - data) - 1);
    if (is_response)
        response(m->response, rest);
    else
        request(m->request, rest);
    return 0;
}
