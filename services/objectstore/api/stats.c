/* The method Stats, and the method Read of the service Metrics, which answers in the text format of
 * Prometheus. */
#include "services/objectstore/api/internal.h"

#include "base/unconst.h"

#include <millrace/v1/metrics.pb-c.h>

#include <inttypes.h>

static void stats_done(struct mr_ostore_call *call)
{
    const struct mr_store_stats *s = &call->ask.stats;
    Millrace__V1__StatsResponse out = MILLRACE__V1__STATS_RESPONSE__INIT;
    out.node = mr_unconst(call->sv->config.node);
    out.id = call->sv->sh->welcome.node;
    out.memory_bytes = s->memory_bytes_max;
    out.committed_bytes = s->memory_bytes;
    out.used_bytes = s->object_bytes;
    out.spilled_bytes = s->spilled_bytes;
    out.persisted_bytes = s->persisted_bytes;
    out.objects = s->objects;
    out.clients = s->clients;
    out.segments = s->segments;
    out.puts = call->sv->puts;
    out.gets = call->sv->gets;
    out.pulls = s->pulls;
    out.pulled_bytes = s->pulled_bytes;
    out.spills = s->spills;
    out.restores = s->restores;
    out.freed_unclaimed = s->orphans_freed;
    out.pinned_bytes = s->pinned_bytes;
    out.objects_max = s->objects_max;
    out.seals_refused = s->seals_refused;
    out.written_bytes = s->written_bytes;
    out.read_bytes = s->read_bytes;
    out.disk_full = call->ask.disk.is_full;
    out.write_failures = call->ask.disk.write_failures;
    mr_ostore_call_reply(call, &out.base);
}

void mr_on_stats(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    if (mr_ostore_call_request(call, m, &millrace__v1__stats_request__descriptor))
        mr_ostore_call_ask(call, MR_ASK_STATS, stats_done);
}

static void series(
    struct mr_buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
    mr_buf_printf(
        b, "# HELP millrace_store_%s %s\n# TYPE millrace_store_%s %s\n", name, help, name, type);
    mr_buf_printf(b, "millrace_store_%s %" PRIu64 "\n", name, v);
}

static void metrics_done(struct mr_ostore_call *call)
{
    const struct mr_store_stats *s = &call->ask.stats;
    struct mr_buf b;
    mr_buf_init(&b, (size_t)1 << 20);
    mr_stats_write(call->sv->stats, &b);
    series(&b, "memory_bytes", "gauge", "Budget of shared memory.", s->memory_bytes_max);
    series(&b, "committed_bytes", "gauge", "Memory of all segments.", s->memory_bytes);
    series(&b, "used_bytes", "gauge", "Bytes of objects in memory.", s->object_bytes);
    series(&b, "spilled_bytes", "gauge", "Bytes of objects on disk only.", s->spilled_bytes);
    series(&b, "persisted_bytes", "gauge", "Bytes of persisted objects.", s->persisted_bytes);
    series(
        &b, "pinned_bytes", "gauge", "Bytes of objects that a reader has pinned.", s->pinned_bytes);
    series(&b, "objects_max", "gauge", "The most objects that the store keeps (--objects).",
        s->objects_max);
    series(&b, "seals_refused_total", "counter",
        "New objects that were lost because the store had the most it keeps.", s->seals_refused);
    series(&b, "objects", "gauge", "Objects, in memory or on disk.", s->objects);
    series(&b, "clients", "gauge", "Local clients.", s->clients);
    series(&b, "segments", "gauge", "Segments of shared memory.", s->segments);
    series(&b, "puts_total", "counter", "Uploads.", call->sv->puts);
    series(&b, "gets_total", "counter", "Downloads.", call->sv->gets);
    series(&b, "pulls_total", "counter", "Objects copied from other stores.", s->pulls);
    series(&b, "pulled_bytes_total", "counter", "Bytes copied from other stores.", s->pulled_bytes);
    series(&b, "spills_total", "counter", "Objects that left memory for the disk.", s->spills);
    series(
        &b, "restores_total", "counter", "Objects restored from the disk to memory.", s->restores);
    series(&b, "written_bytes_total", "counter", "Bytes of objects written to the disk.",
        s->written_bytes);
    series(&b, "read_bytes_total", "counter", "Bytes of objects restored from the disk.",
        s->read_bytes);
    series(&b, "disk_full", "gauge", "1: the last write found no space left on the disk.",
        call->ask.disk.is_full);
    series(&b, "write_failures_total", "counter", "Writes to the disk that failed.",
        call->ask.disk.write_failures);
    series(&b, "orphans_total", "counter",
        "Objects freed because no job claimed them, and unused copies.", s->orphans_freed);
    mr_buf_add_byte(&b, 0);
    Millrace__V1__ReadMetricsResponse out = MILLRACE__V1__READ_METRICS_RESPONSE__INIT;
    out.text = (char *)b.p;
    mr_ostore_call_reply(call, &out.base);
    mr_buf_fini(&b);
}

void mr_on_metrics(struct mr_rpc_call *rpc, struct mr_rpc_message *m)
{
    struct mr_ostore_call *call = mr_ostore_call_of(rpc);
    if (mr_ostore_call_request(call, m, &millrace__v1__read_metrics_request__descriptor))
        mr_ostore_call_ask(call, MR_ASK_STATS, metrics_done);
}
