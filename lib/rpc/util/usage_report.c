#include "rpc/util/usage_report.h"

#include "base/buf.h"
#include "base/protowire.h"
#include "host/clock.h"
#include "host/os/machine.h"
#include "rpc/rpc.h"

#include <unistd.h>

#define METHOD "/millrace.v1.Cluster/ReportUsage"
#define EVERY MR_SECOND
#define IDLE_EVERY (3 * MR_SECOND)
#define TIMEOUT (EVERY - 50 * MR_MS) /* so that at most one call is under way */
/* A process that has used less processor time since its last report is idle. A report itself takes
 * less than this. */
#define IDLE_CPU (5 * MR_MS)

enum { F_KIND = 1, F_NODE, F_PID, F_MEMORY, F_CPU, F_RECEIVED, F_SENT }; /* ReportUsageRequest */

void mr_usage_report_init(struct mr_usage_report *r, const char *kind)
{
    *r = (struct mr_usage_report){.kind = kind};
    (void)gethostname(r->node, sizeof r->node - 1);
}

static void on_reply(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    (void)ctx, (void)status, (void)reply; /* a report that is lost is not sent again */
}

static void send(struct mr_usage_report *r, struct mr_rpc_channel *channel)
{
    struct mr_rpc_traffic traffic = mr_rpc_traffic();
    struct mr_buf b;
    mr_buf_init(&b, 1024);
    mr_protowire_add_bytes(&b, F_KIND, mr_str(r->kind));
    mr_protowire_add_bytes(&b, F_NODE, mr_str(r->node));
    mr_protowire_add_varint(&b, F_PID, (uint64_t)getpid());
    mr_protowire_add_varint(&b, F_MEMORY, mr_machine_resident());
    mr_protowire_add_varint(&b, F_CPU, r->cpu_ns);
    mr_protowire_add_varint(&b, F_RECEIVED, traffic.received);
    mr_protowire_add_varint(&b, F_SENT, traffic.sent);
    const struct mr_rpc_call_options options = {.timeout = TIMEOUT, .one_reply = true};
    (void)mr_rpc_unary(channel, METHOD, mr_buf_str(&b), &options, on_reply, NULL);
    mr_buf_fini(&b);
}

mr_time mr_usage_report_turn(struct mr_usage_report *r, struct mr_rpc_channel *channel, mr_time now)
{
    if (now < r->at) return r->at;
    r->at = mr_time_after(now, EVERY);
    mr_duration cpu_ns = mr_clock_process_cpu();
    bool is_idle = r->reported && cpu_ns - r->cpu_ns < IDLE_CPU;
    if (is_idle && now < mr_time_after(r->reported, IDLE_EVERY)) return r->at;
    r->reported = now;
    r->cpu_ns = cpu_ns;
    send(r, channel);
    return r->at;
}
