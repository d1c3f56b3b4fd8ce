/* `millrace ready`: tells whether a service, or the cluster, is ready, for health checks of
 * containers and scripts. Unlike other commands it also speaks gRPC (grpc.health.v1), for the ports
 * of the services. */
#include "base/alloc.h"
#include "base/protowire.h"
#include "cli/internal.h"
#include "rpc/rpc.h"
#include "rpc/util/sync.h"
#include "rpc/tls.h"

#include <string.h>

#define SERVING 1 /* a value of grpc.health.v1.HealthCheckResponse.ServingStatus */

struct ready_config {
    struct mr_client_options client;
    mr_duration timeout;
};

static const struct mr_option ready_options[] = {
    MR_CLIENT_OPTIONS, {.name = "timeout",
                           .letter = 't',
                           .type = MR_OPTION_DURATION,
                           .value = "TIME",
                           .init = "5s",
                           .help = "wait for an answer for this long",
                           .at = offsetof(struct ready_config, timeout),
                           .min = 1000000,
                           .max = 3600000000000}};

const struct mr_config_spec mr_ready_spec = {.program = "millrace ready",
    .summary =
        "Asks a service whether it is ready, or without ADDRESS the gateway whether a job could run.\n"
        "The exit code is 0 for yes, 1 for no, and 3 if there is no answer.",
    .usage = "[flags] [ADDRESS]",
    .examples = "  millrace ready                                   # the gateway's /healthz\n"
                "  millrace ready unix:/run/millrace/scheduler.sock\n"
                "  millrace ready http://localhost:8470\n"
                "  millrace ready --tls-ca ca.pem 10.0.0.5:8471\n",
    .options = ready_options,
    .options_count = MR_ARRAY_LEN(ready_options),
    .rest_max = 1};

static int read_status(struct mr_str reply, const char *address, struct mr_error *e)
{
    uint64_t status = 0;
    struct mr_protowire_reader r = mr_protowire_read(reply);
    struct mr_protowire_field f;
    while (!mr_protowire_next(&r, &f))
        if (f.number == 1 && f.type == MR_PROTOWIRE_VARINT) status = f.value;
    if (status == SERVING) return MR_OK;
    return mr_fail(e, MR_ESTATE, "%s answers that it is not ready", address);
}

static int ask_service(const struct ready_config *k, const char *address, struct mr_error *e)
{
    const struct mr_rpc_call_options call = {.timeout = k->timeout};
    const struct mr_certificate_files tls = {.ca = k->client.tls_ca};
    struct mr_buf reply;
    mr_buf_init(&reply, 1024);
    int err = mr_rpc_tls_use(&tls, e);
    if (err) return err;
    struct mr_rpc_client *client = mr_rpc_client_open(address, NULL);
    err = mr_rpc_call_sync(
        client, "/grpc.health.v1.Health/Check", mr_str_of("", 0), &call, &reply, e);
    mr_rpc_client_close(&client);
    if (!err) err = read_status(mr_buf_str(&reply), address, e);
    mr_buf_fini(&reply);
    return err;
}

/* Asks the gateway. The request has no secrets, so the gateway's certificate is not verified. */
static int ask_gateway(const struct ready_config *k, struct mr_error *e)
{
    struct mr_client c = {0};
    struct mr_buf body;
    int status = 0;
    mr_buf_init(&body, 65536);
    int err = mr_client_open(&k->client, &c, e);
    if (!err) {
        MR_AUTO(mr_free_ptr) char *url = mr_format("%s/healthz", c.url);
        err = mr_http_get(url, k->timeout, &body, &status, e);
    }
    if (!err && status != 200)
        err = mr_fail(e, MR_ESTATE, "%s: %.*s", c.url, MR_STR_ARG(mr_buf_str(&body)));
    mr_client_fini(&c);
    mr_buf_fini(&body);
    return err;
}

int mr_command_ready(int argc, char **argv)
{
    struct ready_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    mr_config_load(&mr_ready_spec, argc, argv, &k, &rest);
    const char *address = rest.count ? rest.items[0] : NULL;
    bool is_url = address && (!strncmp(address, "http://", 7) || !strncmp(address, "https://", 8));
    if (is_url) k.client.url = address;
    int err = address && !is_url ? ask_service(&k, address, &e) : ask_gateway(&k, &e);
    if (!err && k.client.json) (void)printf("{\"ready\": true}\n");
    if (!err && !k.client.json) (void)printf("ready\n");
    int code = err ? mr_client_fail("ready", &e) : MR_EXIT_OK;
    mr_texts_fini(&rest);
    return code;
}
