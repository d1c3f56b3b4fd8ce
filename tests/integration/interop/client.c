/* The interop test's client on lib/rpc. Runs every case against one server: ours, or one of another
 * gRPC implementation.
 *     mr-interop-client ADDRESS
 * Prints one line for each case. Exits with status 1 if a case failed. */
#include "base/alloc.h"
#include "host/clock.h"
#include "interop.pb-c.h"
#include "rpc/util/pb.h"
#include "rpc/status.h"
#include "rpc/util/sync.h"

#include <stdio.h>

#define TEST "/millrace.interop.TestService/"
#define LARGE (3 << 20)
#define TIMEOUT (20 * MR_SECOND)

static struct mr_rpc_client *client;
static const char *failure; /* why the running case has failed; NULL: it has not failed */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition) && !failure) failure = #condition;                                        \
    } while (0)

static const struct mr_rpc_call_options with_timeout = {.timeout = TIMEOUT, .wait_for_ready = true};
static uint8_t zeros[LARGE];

static struct mr_buf packed(const ProtobufCMessage *m)
{
    struct mr_buf b;
    mr_buf_init(&b, MR_MESSAGE_BYTES_MAX);
    mr_pb_pack(m, &b);
    return b;
}

static struct mr_buf simple_request(
    int32_t response_bytes, size_t payload_bytes, Millrace__Interop__WantedStatus *status)
{
    Millrace__Interop__SimpleRequest r = MILLRACE__INTEROP__SIMPLE_REQUEST__INIT;
    r.response_bytes = response_bytes;
    r.payload = (ProtobufCBinaryData){payload_bytes, zeros};
    r.status = status;
    return packed(&r.base);
}

static int unary(
    const char *method, struct mr_buf *request, struct mr_buf *reply, struct mr_error *e)
{
    if (reply) mr_buf_init(reply, MR_MESSAGE_BYTES_MAX);
    struct mr_str bytes = request ? mr_buf_str(request) : MR_STR("");
    int err = mr_rpc_call_sync(client, method, bytes, &with_timeout, reply, e);
    if (request) mr_buf_fini(request);
    return err;
}

static void empty_unary(void)
{
    struct mr_buf reply;
    CHECK(unary(TEST "EmptyCall", NULL, &reply, NULL) == MR_OK);
    CHECK(reply.n == 0);
    mr_buf_fini(&reply);
}

static void large_unary(void)
{
    struct mr_buf reply;
    struct mr_buf request = simple_request(LARGE, LARGE, NULL);
    CHECK(unary(TEST "UnaryCall", &request, &reply, NULL) == MR_OK);
    CHECK(reply.n > LARGE && reply.n < LARGE + 16);
    mr_buf_fini(&reply);
}

static void client_streaming(void)
{
    static const size_t sizes[] = {27182, 8, 1828, 45904, 0};
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "StreamingInputCall", &with_timeout);
    for (size_t i = 0; i < MR_ARRAY_LEN(sizes); i++) {
        Millrace__Interop__StreamingInputRequest r =
            MILLRACE__INTEROP__STREAMING_INPUT_REQUEST__INIT;
        r.payload = (ProtobufCBinaryData){sizes[i], zeros};
        struct mr_buf b = packed(&r.base);
        CHECK(mr_rpc_stream_send(s, mr_buf_str(&b)) == MR_OK);
        mr_buf_fini(&b);
    }
    CHECK(mr_rpc_stream_half_close(s) == MR_OK);
    struct mr_rpc_message *m = NULL;
    CHECK(mr_rpc_stream_read(s, MR_NEVER, &m, NULL) == MR_OK);
    struct mr_pb_arena a;
    mr_pb_arena_init(&a, 65536);
    const Millrace__Interop__StreamingInputResponse *r =
        m ? mr_pb_unpack(&millrace__interop__streaming_input_response__descriptor,
                mr_rpc_message_str(m), &a, NULL)
          : NULL;
    CHECK(r && r->payload_bytes == 74922 && r->messages == 5);
    mr_pb_arena_fini(&a);
    mr_rpc_message_free(&m);
    CHECK(mr_rpc_stream_read(s, MR_NEVER, &m, NULL) == MR_ENOENT);
    mr_rpc_stream_close(&s);
}

static void send_output_request(struct mr_rpc_stream *s, const int32_t *sizes, size_t n,
    Millrace__Interop__WantedStatus *status)
{
    Millrace__Interop__ResponseParameters parameters[8];
    Millrace__Interop__ResponseParameters *list[8];
    for (size_t i = 0; i < n; i++) {
        parameters[i] =
            (Millrace__Interop__ResponseParameters)MILLRACE__INTEROP__RESPONSE_PARAMETERS__INIT;
        parameters[i].bytes = sizes[i];
        list[i] = &parameters[i];
    }
    Millrace__Interop__StreamingOutputRequest r = MILLRACE__INTEROP__STREAMING_OUTPUT_REQUEST__INIT;
    r.n_responses = n;
    r.responses = list;
    r.status = status;
    struct mr_buf b = packed(&r.base);
    CHECK(mr_rpc_stream_send(s, mr_buf_str(&b)) == MR_OK);
    mr_buf_fini(&b);
}

/* Reads one message, and checks that it has a payload of `bytes`. */
static void expect(struct mr_rpc_stream *s, int32_t bytes)
{
    struct mr_rpc_message *m = NULL;
    CHECK(mr_rpc_stream_read(s, mr_clock_now() + TIMEOUT, &m, NULL) == MR_OK);
    if (!m) return;
    struct mr_pb_arena a;
    mr_pb_arena_init(&a, MR_MESSAGE_BYTES_MAX);
    const Millrace__Interop__StreamingOutputResponse *r = mr_pb_unpack(
        &millrace__interop__streaming_output_response__descriptor, mr_rpc_message_str(m), &a, NULL);
    CHECK(r && r->payload.len == (size_t)bytes);
    mr_pb_arena_fini(&a);
    mr_rpc_message_free(&m);
}

static void expect_end(struct mr_rpc_stream *s, int code)
{
    struct mr_rpc_message *m = NULL;
    CHECK(mr_rpc_stream_read(s, mr_clock_now() + TIMEOUT, &m, NULL) == code);
    mr_rpc_message_free(&m);
}

static const int32_t sizes[] = {31415, 0, 9, 2653, LARGE};

static void server_streaming(void)
{
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "StreamingOutputCall", &with_timeout);
    send_output_request(s, sizes, MR_ARRAY_LEN(sizes), NULL);
    CHECK(mr_rpc_stream_half_close(s) == MR_OK);
    for (size_t i = 0; i < MR_ARRAY_LEN(sizes); i++)
        expect(s, sizes[i]);
    expect_end(s, MR_ENOENT);
    mr_rpc_stream_close(&s);
}

static void ping_pong(void)
{
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "FullDuplexCall", &with_timeout);
    for (size_t i = 0; i < MR_ARRAY_LEN(sizes); i++) {
        send_output_request(s, &sizes[i], 1, NULL);
        expect(s, sizes[i]);
    }
    CHECK(mr_rpc_stream_half_close(s) == MR_OK);
    expect_end(s, MR_ENOENT);
    mr_rpc_stream_close(&s);
}

static void empty_stream(void)
{
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "FullDuplexCall", &with_timeout);
    CHECK(mr_rpc_stream_half_close(s) == MR_OK);
    expect_end(s, MR_ENOENT);
    mr_rpc_stream_close(&s);
}

static void status_code_and_message(void)
{
    static char words[] = "\t\nwhitespace\r\nand \xe2\x98\xba and \xf0\x9f\x98\x88\t\n";
    Millrace__Interop__WantedStatus wanted = MILLRACE__INTEROP__WANTED_STATUS__INIT;
    wanted.code = 9;
    wanted.message = words;
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "FullDuplexCall", &with_timeout);
    send_output_request(s, sizes, 1, &wanted);
    expect(s, sizes[0]);
    expect_end(s, MR_ESTATE);
    CHECK(mr_str_eq(mr_rpc_stream_status(s)->message, mr_str(words)));
    mr_rpc_stream_close(&s);
}

static void status_with_details(void)
{
    Millrace__Interop__WantedStatus wanted = MILLRACE__INTEROP__WANTED_STATUS__INIT;
    wanted.code = 3;
    wanted.message = (char *)(uintptr_t) "bad";
    wanted.details = true;
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "FullDuplexCall", &with_timeout);
    send_output_request(s, NULL, 0, &wanted);
    expect_end(s, MR_EINVAL);
    struct mr_str details = mr_rpc_stream_status(s)->details;
    CHECK(details.n && memmem(details.p, details.n, "INTEROP", 7));
    mr_rpc_stream_close(&s);
}

static void unimplemented(void)
{
    CHECK(unary(TEST "UnimplementedCall", NULL, NULL, NULL) == MR_EUNIMPL);
    CHECK(unary("/millrace.interop.UnimplementedService/UnimplementedCall", NULL, NULL, NULL) ==
          MR_EUNIMPL);
}

static void cancel_after_first_response(void)
{
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "FullDuplexCall", &with_timeout);
    send_output_request(s, sizes, 1, NULL);
    expect(s, sizes[0]);
    mr_rpc_stream_cancel(s);
    expect_end(s, MR_ECANCELED);
    mr_rpc_stream_close(&s);
}

static void cancel_after_begin(void)
{
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "StreamingInputCall", &with_timeout);
    mr_rpc_stream_cancel(s);
    expect_end(s, MR_ECANCELED);
    mr_rpc_stream_close(&s);
}

static void deadline(void)
{
    struct mr_rpc_call_options soon = {.timeout = 20 * MR_MS};
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "FullDuplexCall", &soon);
    expect_end(s, MR_ETIMEOUT);
    CHECK(mr_rpc_stream_status(s)->code == 4);
    mr_rpc_stream_close(&s);
}

static void custom_metadata(void)
{
    struct mr_rpc_metadata metadata[] = {
        {"x-interop-echo", MR_STR("text")}, {"x-interop-echo-bin", MR_STR("\xab\x00\xff")}};
    struct mr_rpc_call_options o = with_timeout;
    o.metadata = metadata;
    o.metadata_count = 2;
    struct mr_rpc_stream *s = mr_rpc_stream_open(client, TEST "FullDuplexCall", &o);
    CHECK(mr_rpc_stream_half_close(s) == MR_OK);
    expect_end(s, MR_ENOENT);
    struct mr_str v;
    CHECK(mr_rpc_stream_metadata(s, "x-interop-echo", &v) && mr_str_eq(v, MR_STR("text")));
    CHECK(mr_rpc_stream_metadata(s, "x-interop-echo-bin", &v) &&
          mr_str_eq(v, MR_STR("\xab\x00\xff")));
    mr_rpc_stream_close(&s);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
#define C(name) {#name, name}
        C(empty_unary),
        C(large_unary),
        C(client_streaming),
        C(server_streaming),
        C(ping_pong),
        C(empty_stream),
        C(status_code_and_message),
        C(status_with_details),
        C(unimplemented),
        C(cancel_after_begin),
        C(cancel_after_first_response),
        C(deadline),
        C(custom_metadata),
    };
    if (argc != 2) return 2;
    client = mr_rpc_client_open(argv[1], NULL);
    int failed = 0;
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        failure = NULL;
        cases[i].run();
        (void)printf("%s %s%s%s\n", failure ? "FAIL" : "ok", cases[i].name, failure ? ": " : "",
            failure ? failure : "");
        failed += failure != NULL;
    }
    mr_rpc_client_close(&client);
    return failed ? 1 : 0;
}
