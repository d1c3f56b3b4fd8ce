/* millrace.v1.Metrics: encodes ReadMetricsResponse (field 1: text). host/os/stats.h has the
 * counters. */
#include "rpc/util/metrics.h"

#include "base/protowire.h"

#define TEXT_BYTES_MAX ((size_t)8 << 20)

static void on_half_close(struct mr_rpc_call *call)
{
    struct mr_buf text, reply;
    mr_buf_init(&text, TEXT_BYTES_MAX);
    mr_buf_init(&reply, TEXT_BYTES_MAX + 16);
    mr_stats_write(mr_rpc_call_context(call), &text);
    mr_protowire_add_bytes(&reply, 1, mr_buf_str(&text));
    (void)mr_rpc_call_reply(call, mr_buf_str(&reply));
    mr_buf_fini(&text);
    mr_buf_fini(&reply);
}

static const struct mr_rpc_handler handler = {.on_half_close = on_half_close};
static const struct mr_rpc_method methods[] = {{.name = "Read", .handler = &handler}};
static const struct mr_rpc_service service = {
    .name = "millrace.v1.Metrics", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};

void mr_rpc_server_add_metrics(struct mr_rpc_server *server, struct mr_stats *stats)
{
    mr_rpc_server_add_service(server, &service, stats);
}
