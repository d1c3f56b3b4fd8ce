/* Makes one unary call to each service, then one call to each worker that listens on a port: the
 * answer to Cluster.Workers has the workers' addresses. A service that does not answer has
 * millrace_up 0 and no other series. */
#include "gateway/bridge/scrape.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/protowire.h"
#include "gateway/metrics/worker_metrics.h"
#include "gateway/metrics/prometheus.h"
#include "rpc/util/pb.h"

#define PAGE_SIZE_FIELD 1 /* number of the field WorkersRequest.page_size */
#define TIMEOUT (2 * MR_SECOND)
#define LABELS_BYTES_MAX ((size_t)8 << 10)
#define OWN_BYTES_MAX ((size_t)8 << 20)
#define REPLY_BYTES_MAX ((size_t)64 << 20)

struct scrape {
    struct mr_exchange *x;
    struct mr_backends *backends;
    struct mr_prometheus *all;
    size_t waiting;
    void (*done)(struct mr_exchange *x);
};

enum part_kind { PART_METRICS, PART_INFO, PART_WORKERS };

struct part {
    struct scrape *scrape;
    enum part_kind kind;
    char *labels;
};

static void finish_if_last(struct scrape *s)
{
    if (--s->waiting) return;
    mr_prometheus_write(s->all, &s->x->text);
    mr_prometheus_free(&s->all);
    s->done(s->x);
    mr_release(s);
}

static void add_up(struct scrape *s, const char *labels, bool up)
{
    static const struct mr_prometheus_family family = {
        "millrace_up", "gauge", "Whether the service answered."};
    mr_prometheus_add_value(s->all, &family, labels, up);
}

/* True: the service has answered. An error as the answer counts, too. */
static bool is_up(const struct mr_rpc_status *status)
{
    return status->code != mr_err_grpc(MR_EAWAY) && status->code != mr_err_grpc(MR_ETIMEOUT);
}

static void add_metrics(struct part *p, struct mr_str reply)
{
    struct mr_protowire_reader r = mr_protowire_read(reply);
    struct mr_protowire_field f;
    while (!mr_protowire_next(&r, &f))
        if (f.number == 1 && f.type == MR_PROTOWIRE_BYTES)
            mr_prometheus_add(p->scrape->all, f.bytes, p->labels);
}

static void ask(struct scrape *s, struct mr_rpc_channel *channel, enum part_kind kind,
    const Millrace__V1__WorkerInfo *worker);

static void ask_workers(struct scrape *s, const Millrace__V1__WorkersResponse *all)
{
    const char **addresses = mr_alloc_array(all->n_workers, sizeof *addresses);
    for (size_t i = 0; i < all->n_workers; i++)
        addresses[i] = all->workers[i]->address;
    mr_backends_set_workers(s->backends, addresses, all->n_workers);
    mr_release(addresses);
    for (size_t i = 0; i < all->n_workers; i++) {
        struct mr_rpc_channel *channel = mr_backends_worker(s->backends, all->workers[i]->address);
        if (channel) ask(s, channel, PART_METRICS, all->workers[i]);
    }
}

static char *labels_of(const char *address, const Millrace__V1__WorkerInfo *worker)
{
    struct mr_buf b;
    mr_buf_init(&b, LABELS_BYTES_MAX);
    mr_prometheus_label(&b, "instance", address);
    if (worker) mr_prometheus_label(&b, "worker", worker->name);
    if (worker) mr_prometheus_label(&b, "node", worker->node);
    mr_buf_add_byte(&b, 0);
    char *labels = mr_copy_text((const char *)b.p);
    mr_buf_fini(&b);
    return labels;
}

static void add_workers(struct scrape *s, const Millrace__V1__WorkersResponse *all)
{
    const char *scheduler = mr_rpc_channel_address(mr_backends_at(s->backends, 0));
    for (size_t i = 0; i < all->n_workers; i++) {
        char *labels = labels_of(scheduler, all->workers[i]);
        mr_worker_metrics_add_worker(s->all, all->workers[i], labels);
        mr_release(labels);
    }
}

/* Adds the metrics in the scheduler's answer to a call of Cluster.Info or Cluster.Workers. */
static void add_cluster(struct part *p, struct mr_str reply)
{
    struct mr_pb_arena arena;
    mr_pb_arena_init(&arena, REPLY_BYTES_MAX);
    const ProtobufCMessageDescriptor *type = p->kind == PART_INFO
                                                 ? &millrace__v1__info_response__descriptor
                                                 : &millrace__v1__workers_response__descriptor;
    const void *m = mr_pb_unpack(type, reply, &arena, NULL);
    if (m && p->kind == PART_INFO) mr_worker_metrics_add_cluster(p->scrape->all, m, p->labels);
    if (m && p->kind == PART_WORKERS) {
        add_workers(p->scrape, m);
        ask_workers(p->scrape, m);
    }
    mr_pb_arena_fini(&arena);
}

static void on_reply(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct part *p = ctx;
    if (p->kind == PART_METRICS) add_up(p->scrape, p->labels, is_up(status));
    if (reply && p->kind == PART_METRICS)
        add_metrics(p, mr_rpc_message_str(reply));
    else if (reply)
        add_cluster(p, mr_rpc_message_str(reply));
    finish_if_last(p->scrape);
    mr_release(p->labels);
    mr_release(p);
}

/* Starts the call that `kind` names. `worker` NULL: the channel leads to another kind of
 * service. */
static void ask(struct scrape *s, struct mr_rpc_channel *channel, enum part_kind kind,
    const Millrace__V1__WorkerInfo *worker)
{
    static const enum mr_method_id methods[] = {
        [PART_METRICS] = MR_METHOD_METRICS_READ,
        [PART_INFO] = MR_METHOD_CLUSTER_INFO,
        [PART_WORKERS] = MR_METHOD_CLUSTER_WORKERS,
    };
    struct part *p = mr_alloc(sizeof *p);
    *p = (struct part){s, kind, labels_of(mr_rpc_channel_address(channel), worker)};
    struct mr_rpc_call_options options = {.timeout = TIMEOUT, .one_reply = true};
    struct mr_buf request;
    mr_buf_init(&request, 16);
    if (kind == PART_WORKERS) mr_protowire_add_varint(&request, PAGE_SIZE_FIELD, MR_WORKERS_MAX);
    s->waiting++;
    (void)mr_rpc_unary(
        channel, mr_proto_method(methods[kind])->path, mr_buf_str(&request), &options, on_reply, p);
    mr_buf_fini(&request);
}

static bool is_repeated(const struct mr_backends *b, size_t at)
{
    const char *address = mr_rpc_channel_address(mr_backends_at(b, at));
    for (size_t i = 0; i < at; i++)
        if (!strcmp(mr_rpc_channel_address(mr_backends_at(b, i)), address)) return true;
    return false;
}

void mr_scrape_start(struct mr_backends *b, struct mr_stats *own, struct mr_exchange *x,
    void (*done)(struct mr_exchange *x))
{
    struct scrape *s = mr_alloc(sizeof *s);
    *s = (struct scrape){x, b, mr_prometheus_new(), 0, done};
    struct mr_buf text;
    mr_buf_init(&text, OWN_BYTES_MAX);
    mr_stats_write(own, &text);
    mr_prometheus_add(s->all, mr_buf_str(&text), "instance=\"gateway\"");
    mr_buf_fini(&text);

    size_t count = mr_backends_count(b);
    for (size_t i = 0; i < count; i++)
        if (!is_repeated(b, i)) /* scheduler and trainer may share an address */
            ask(s, mr_backends_at(b, i), PART_METRICS, NULL);
    ask(s, mr_backends_at(b, 0), PART_INFO, NULL);
    ask(s, mr_backends_at(b, 0), PART_WORKERS, NULL);
}
