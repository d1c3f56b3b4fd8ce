/* The tables of methods of the services Objects and Metrics. This file also has the methods Stat,
 * List and Pin. */
#include "host/config/value.h"
#include "services/objectstore/api/internal.h"

#include "services/objectstore/call/info.h"
#include "services/objectstore/call/lookup.h"
#include "services/objectstore/cluster/locate.h"
#include "services/objectstore/cluster/pull_send.h"

#include <inttypes.h>
#include <stdio.h>

#define PAGE_MAX 1000u
#define PIN_SECONDS_MAX 3600.0
#define PIN_WAIT (30 * MR_SECOND)

static void on_open(struct mr_rpc_call *rpc)
{
    (void)mr_ostore_call_new(rpc);
}

static void on_done(struct mr_rpc_call *rpc, const struct mr_rpc_status *status)
{
    (void)status;
    mr_ostore_call_over(mr_ostore_call_of(rpc));
}

/* ---- Stat, List -------------------------------------------------------------------------------*/

static void stat_done(struct mr_ostore_call *call)
{
    if (call->err)
        mr_ostore_call_fail_unknown(call);
    else
        mr_ostore_call_reply(call, &mr_ostore_call_info(call, &call->ask.infos[0])->base);
}

static void stat_found(struct mr_ostore_call *call)
{
    mr_ostore_call_stat(call, stat_done);
}

static void on_stat(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__StatRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__stat_request__descriptor);
    if (r) mr_ostore_call_find_id(call, "id", r->id, stat_found);
}

static void list_done(struct mr_ostore_call *call)
{
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    Millrace__V1__ListObjectsResponse out = MILLRACE__V1__LIST_OBJECTS_RESPONSE__INIT;
    size_t n = call->ask.infos_count;
    out.objects = mr_ostore_call_take(call, (n + 1) * sizeof(void *));
    for (size_t i = 0; i < n; i++)
        out.objects[out.n_objects++] = mr_ostore_call_info(call, &call->ask.infos[i]);
    char token[32] = "";
    if (n && n == call->ask.n_max)
        snprintf(token, sizeof token, "%" PRIu64, call->ask.infos[n - 1].sequence);
    out.next_page_token = token;
    mr_ostore_call_reply(call, &out.base);
}

static void on_list(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__ListObjectsRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__list_objects_request__descriptor);
    if (!r) return;
    uint64_t after = 0;
    if (r->page_size > PAGE_MAX) {
        mr_ostore_call_fail(
            call, MR_EINVAL, "page_size: %u is not within 0 to %u", r->page_size, PAGE_MAX);
        return;
    }
    if (r->page_token[0] && mr_config_parse_u64(mr_str(r->page_token), &after)) {
        mr_ostore_call_fail(call, MR_EINVAL,
            "page_token: \"%s\" is not the next_page_token of an earlier response", r->page_token);
        return;
    }
    call->ask.after = after;
    call->ask.n_max = r->page_size ? r->page_size : 100;
    mr_ostore_call_ask(call, MR_ASK_PAGE, list_done);
}

/* ---- Pin --------------------------------------------------------------------------------------*/

static void pin_done(struct mr_ostore_call *call)
{
    if (call->err) {
        mr_ostore_call_fail_error(call);
        return;
    }
    /* The lease takes the view, and so the pin, from the call. */
    double seconds = *(const double *)call->more;
    mr_lease_add(call->sv, &call->view, (mr_duration)(seconds * 1e9));
    mr_ostore_call_stat(call, stat_done);
}

static void pin_known(struct mr_ostore_call *call)
{
    if (call->err)
        mr_ostore_call_fail_unknown(call);
    else
        mr_ostore_call_get(call, NULL, PIN_WAIT, pin_done);
}

static void pin_found(struct mr_ostore_call *call)
{
    mr_ostore_call_stat(call, pin_known);
}

static void on_pin(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    const Millrace__V1__PinRequest *r =
        mr_ostore_call_request(call, m, &millrace__v1__pin_request__descriptor);
    if (!r) return;
    if (!(r->seconds >= 0 && r->seconds <= PIN_SECONDS_MAX)) {
        mr_ostore_call_fail(
            call, MR_EINVAL, "seconds: %g is not between 0 and %g", r->seconds, PIN_SECONDS_MAX);
        return;
    }
    double *seconds = mr_ostore_call_take(call, sizeof *seconds);
    *seconds = r->seconds;
    call->more = seconds;
    mr_ostore_call_find_id(call, "id", r->id, pin_found);
}

/* ---- the methods ------------------------------------------------------------------------------*/

// clang-format off
#define UNARY(fn) &(const struct mr_rpc_handler){.on_open = on_open, .on_message = fn, .on_done = on_done}
static const struct mr_rpc_method methods[] = {
    {.name = "Put", .client_streaming = true, .handler = &mr_put_handler},
    {.name = "Get", .server_streaming = true, .handler = &mr_get_handler},
    {.name = "Pull", .server_streaming = true, .handler = &mr_pull_handler},
    {.name = "Stat", .handler = UNARY(on_stat)},
    {.name = "List", .handler = UNARY(on_list)},
    {.name = "Delete", .handler = UNARY(mr_on_delete)},
    {.name = "Pin", .handler = UNARY(on_pin)},
    {.name = "Persist", .handler = UNARY(mr_on_persist)},
    {.name = "Name", .handler = UNARY(mr_on_name)},
    {.name = "Resolve", .handler = UNARY(mr_on_resolve)},
    {.name = "Unname", .handler = UNARY(mr_on_unname)},
    {.name = "Names", .handler = UNARY(mr_on_names)},
    {.name = "Renamed", .handler = UNARY(mr_on_renamed)},
    {.name = "Stats", .handler = UNARY(mr_on_stats)},
    {.name = "Where", .handler = UNARY(mr_on_where)},
};
static const struct mr_rpc_method metrics_methods[] = {{.name = "Read", .handler = UNARY(mr_on_metrics)}};
// clang-format on

const struct mr_rpc_service mr_objects_service = {
    .name = "millrace.v1.Objects", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};
const struct mr_rpc_service mr_metrics_service = {.name = "millrace.v1.Metrics",
    .methods = metrics_methods,
    .methods_count = MR_ARRAY_LEN(metrics_methods)};
