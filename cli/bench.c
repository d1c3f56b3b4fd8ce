/* `millrace bench`: measures a cluster as a client sees it, over gRPC at the scheduler's address,
 * and with --http through the gateway, too. Each figure is the median of the rounds, with minimum
 * and maximum; only the time of one task is given as p50 and p99. Every value that comes back is
 * checked. For a single task over HTTP, only the state of the job is checked. */
#include "base/alloc.h"
#include "base/limits.h"
#include "base/pack.h"
#include "base/unconst.h"
#include "cli/internal.h"
#include "cli/client/paths.h"
#include "host/clock.h"
#include "rpc/util/pb.h"
#include "rpc/util/sync.h"
#include "rpc/tls.h"

#include <millrace/v1/jobs.pb-c.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_NODES 32768
#define ROUNDS_MAX 101
#define KEY_BYTES 12

struct config {
    struct mr_client_options client;
    const char *scheduler;
    uint64_t tasks;
    uint64_t chain;
    uint64_t latency;
    uint64_t rounds;
    bool http;
};

static const struct mr_option options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "scheduler",
        .type = MR_OPTION_TEXT,
        .value = "ADDR",
        .help = "gRPC address (default: of the cluster that `up` last started)",
        .at = offsetof(struct config, scheduler)},
    {.name = "tasks",
        .letter = 'n',
        .type = MR_OPTION_U64,
        .value = "N",
        .init = "100000",
        .help = "empty tasks, each a target; 0: skip",
        .at = offsetof(struct config, tasks),
        .max = MR_TASKS_MAX},
    {.name = "chain",
        .type = MR_OPTION_U64,
        .value = "N",
        .init = "1000",
        .help = "dependent tasks; 0: skip",
        .at = offsetof(struct config, chain),
        .max = MR_TASKS_MAX},
    {.name = "latency",
        .type = MR_OPTION_U64,
        .value = "N",
        .init = "1000",
        .help = "jobs of one task, one after another; 0: skip",
        .at = offsetof(struct config, latency),
        .max = 10000000},
    {.name = "rounds",
        .type = MR_OPTION_U64,
        .value = "N",
        .init = "5",
        .help = "rounds of each measurement; the median is shown",
        .at = offsetof(struct config, rounds),
        .min = 1,
        .max = ROUNDS_MAX},
    {.name = "http",
        .type = MR_OPTION_BOOL,
        .help = "measure through the gateway, too",
        .at = offsetof(struct config, http)},
};

const struct mr_config_spec mr_bench_spec = {.program = "millrace bench",
    .summary = "Measures the cluster as a client sees it.",
    .examples = "  millrace bench\n  millrace bench --tasks 1000000 --rounds 5 --json\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options)};

struct bench {
    struct mr_rpc_client *rpc;
    struct mr_client http;
    struct mr_pb_arena arena;
    bool json;
    size_t printed;
};

/* The form of a submission: its tasks are independent, or each task is an input of the next one. */
struct shape {
    uint32_t tasks;
    bool chained;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(
    struct bench *b, const char *name, const char *unit, double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    double median = values[count / 2];
    if (b->json)
        (void)printf(
            "%s\n  {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g, \"rounds\": %zu}",
            b->printed ? "," : "", name, unit, median, values[0], values[count - 1], count);
    else
        (void)printf("%-44s %14.2f %-12s (%.2f to %.2f)\n", name, median, unit, values[0],
            values[count - 1]);
    b->printed++;
    (void)fflush(stdout);
}

/* ---- one submission over gRPC ---------------------------------------------------------------- */

struct columns {
    unsigned char *keys;
    uint32_t *key_bytes, *op, *args_bytes, *inputs_count, *inputs;
    struct mr_buf args;
};

static void columns_init(struct columns *c)
{
    c->keys = mr_alloc((size_t)CHUNK_NODES * KEY_BYTES);
    c->key_bytes = mr_alloc_array(CHUNK_NODES, sizeof(uint32_t));
    c->op = mr_alloc_array(CHUNK_NODES, sizeof(uint32_t));
    c->args_bytes = mr_alloc_array(CHUNK_NODES, sizeof(uint32_t));
    c->inputs_count = mr_alloc_array(CHUNK_NODES, sizeof(uint32_t));
    c->inputs = mr_alloc_array(CHUNK_NODES, sizeof(uint32_t));
    mr_buf_init(&c->args, (size_t)CHUNK_NODES * 16);
}

static void columns_fini(struct columns *c)
{
    mr_release(c->keys);
    mr_release(c->key_bytes);
    mr_release(c->op);
    mr_release(c->args_bytes);
    mr_release(c->inputs_count);
    mr_release(c->inputs);
    mr_buf_fini(&c->args);
}

static void write_key(unsigned char key[KEY_BYTES], uint32_t node)
{
    memcpy(key, "task", 4);
    for (unsigned i = KEY_BYTES - 1; i >= 4; i--, node /= 10)
        key[i] = (unsigned char)('0' + node % 10);
}

/* Fills columns with the nodes first … first+n-1. Each node applies `inc` to a literal, or to the
 * value of the node before it. */
static void columns_fill(struct columns *c, const struct shape *shape, uint32_t first, uint32_t n,
    Millrace__V1__SubmitColumns *m)
{
    mr_buf_clear(&c->args);
    m->n_inputs = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t node = first + i;
        bool linked = shape->chained && node;
        size_t before = c->args.n;
        write_key(c->keys + (size_t)i * KEY_BYTES, node);
        c->key_bytes[i] = KEY_BYTES;
        c->op[i] = 1;
        mr_pack_list(&c->args, 1);
        if (linked)
            mr_pack_input(&c->args, 0);
        else
            mr_pack_uint(&c->args, node);
        c->args_bytes[i] = (uint32_t)(c->args.n - before);
        c->inputs_count[i] = linked;
        if (linked) c->inputs[m->n_inputs++] = node - 1;
    }
    m->keys = (ProtobufCBinaryData){.len = (size_t)n * KEY_BYTES, .data = c->keys};
    m->args = (ProtobufCBinaryData){.len = c->args.n, .data = c->args.p};
    m->key_bytes = c->key_bytes;
    m->op = c->op;
    m->args_bytes = c->args_bytes;
    m->inputs_count = c->inputs_count;
    m->inputs = c->inputs;
    m->n_key_bytes = m->n_op = m->n_args_bytes = m->n_inputs_count = n;
}

static int send_columns(struct mr_rpc_stream *s, const struct shape *shape)
{
    struct columns c;
    struct mr_buf bytes;
    char *inc = mr_copy_text("inc");
    int err = MR_OK;
    columns_init(&c);
    mr_buf_init(&bytes, MR_MESSAGE_BYTES_MAX);
    for (uint32_t first = 0; first < shape->tasks && !err; first += CHUNK_NODES) {
        Millrace__V1__SubmitColumns m = MILLRACE__V1__SUBMIT_COLUMNS__INIT;
        uint32_t n = MR_MIN((uint32_t)CHUNK_NODES, shape->tasks - first);
        uint32_t last = shape->tasks - 1;
        columns_fill(&c, shape, first, n, &m);
        if (!first) {
            m.n_ops = 1;
            m.ops = &inc;
        }
        m.all_targets = !shape->chained;
        if (shape->chained && first + n == shape->tasks) {
            m.n_targets = 1;
            m.targets = &last;
        }
        mr_buf_clear(&bytes);
        mr_pb_pack(&m.base, &bytes);
        err = mr_rpc_stream_send(s, mr_buf_str(&bytes));
    }
    mr_buf_fini(&bytes);
    columns_fini(&c);
    mr_release(inc);
    return err ? err : mr_rpc_stream_half_close(s);
}

static int submit(struct bench *b, const struct shape *shape, char id[64], struct mr_error *e)
{
    struct mr_rpc_stream *s = mr_rpc_stream_open(b->rpc, "/millrace.v1.Jobs/SubmitStream", NULL);
    struct mr_rpc_message *reply = NULL;
    (void)send_columns(s, shape); /* the error is ignored here: reading the answer returns it */
    int err = mr_rpc_stream_read(s, MR_NEVER, &reply, e);
    if (!err) {
        mr_pb_arena_clear(&b->arena);
        const Millrace__V1__SubmitResponse *m = mr_pb_unpack(
            &millrace__v1__submit_response__descriptor, mr_rpc_message_str(reply), &b->arena, e);
        if (m)
            (void)snprintf(id, 64, "%s", m->id);
        else
            err = MR_EFORMAT;
    }
    mr_rpc_message_free(&reply);
    mr_rpc_stream_close(&s);
    return err;
}

/* Checks the values of a message, and adds their number to `*seen`. The value of the key with
 * number n has to be n + 1, whether the tasks are independent or form a chain. */
static int check_item(const Millrace__V1__ResultItem *m, const struct shape *shape, uint64_t *seen,
    struct mr_error *e)
{
    size_t at = 0;
    if (m->n_errors)
        return mr_fail(
            e, MR_EINTERNAL, "%s: %s", m->keys[m->errors[0]->row], m->errors[0]->message);
    for (size_t i = 0; i < m->n_keys; i++) {
        struct mr_pack_item item;
        struct mr_pack_reader r = mr_pack_read(mr_str_of(m->packs.data + at, m->pack_bytes[i]));
        uint64_t number = strtoull(m->keys[i] + 4, NULL, 10);
        at += m->pack_bytes[i];
        if (mr_pack_next(&r, &item) || item.type != MR_PACK_INT || item.i != (int64_t)number + 1)
            return mr_fail(e, MR_EINTERNAL, "%s has a wrong value", m->keys[i]);
    }
    *seen += m->n_keys;
    (void)shape;
    return MR_OK;
}

static int collect(struct bench *b, const struct shape *shape, const char *id, struct mr_error *e)
{
    struct mr_buf bytes;
    Millrace__V1__ResultsRequest q = MILLRACE__V1__RESULTS_REQUEST__INIT;
    struct mr_rpc_stream *s = mr_rpc_stream_open(b->rpc, "/millrace.v1.Jobs/Results", NULL);
    uint64_t seen = 0;
    int err = MR_OK;
    q.id = mr_unconst(id);
    q.wait_s = 600;
    mr_buf_init(&bytes, 4096);
    mr_pb_pack(&q.base, &bytes);
    (void)mr_rpc_stream_send(s, mr_buf_str(&bytes));
    (void)mr_rpc_stream_half_close(s);
    mr_buf_fini(&bytes);
    while (!err) {
        struct mr_rpc_message *message = NULL;
        err = mr_rpc_stream_read(s, MR_NEVER, &message, e);
        if (err) break;
        mr_pb_arena_clear(&b->arena);
        const Millrace__V1__ResultItem *m = mr_pb_unpack(
            &millrace__v1__result_item__descriptor, mr_rpc_message_str(message), &b->arena, e);
        err = m ? check_item(m, shape, &seen, e) : MR_EFORMAT;
        mr_rpc_message_free(&message);
    }
    mr_rpc_stream_close(&s);
    uint64_t expected = shape->chained ? 1 : shape->tasks;
    if (err != MR_ENOENT) return err;
    return seen == expected ? MR_OK
                            : mr_fail(e, MR_EINTERNAL, "%" PRIu64 " values came back, not %" PRIu64,
                                  seen, expected);
}

static int forget(struct bench *b, const char *id, struct mr_error *e)
{
    struct mr_buf bytes;
    Millrace__V1__ForgetJobRequest q = MILLRACE__V1__FORGET_JOB_REQUEST__INIT;
    q.id = mr_unconst(id);
    mr_buf_init(&bytes, 4096);
    mr_pb_pack(&q.base, &bytes);
    int err =
        mr_rpc_call_sync(b->rpc, "/millrace.v1.Jobs/Forget", mr_buf_str(&bytes), NULL, NULL, e);
    mr_buf_fini(&bytes);
    return err;
}

static int round_trip(struct bench *b, const struct shape *shape, double *accepted_s,
    double *total_s, struct mr_error *e)
{
    char id[64] = "";
    mr_time begun = mr_clock_now();
    int err = submit(b, shape, id, e);
    *accepted_s = (double)(mr_clock_now() - begun) / 1e9;
    if (!err) err = collect(b, shape, id, e);
    *total_s = (double)(mr_clock_now() - begun) / 1e9;
    return err ? err : forget(b, id, e);
}

static int bench_empty(struct bench *b, const struct config *k, struct mr_error *e)
{
    const struct shape shape = {.tasks = (uint32_t)k->tasks};
    double rate[ROUNDS_MAX];
    double accepted[ROUNDS_MAX];
    char name[80];
    for (uint64_t i = 0; i < k->rounds; i++) {
        double total = 0;
        int err = round_trip(b, &shape, &accepted[i], &total, e);
        if (err) return err;
        rate[i] = (double)k->tasks / total;
    }
    (void)snprintf(name, sizeof name, "empty tasks, %" PRIu64 ", submit to last result", k->tasks);
    report(b, name, "tasks/s", rate, k->rounds);
    (void)snprintf(name, sizeof name, "graph of %" PRIu64 " accepted", k->tasks);
    report(b, name, "s", accepted, k->rounds);
    return MR_OK;
}

static int bench_chain(struct bench *b, const struct config *k, struct mr_error *e)
{
    const struct shape shape = {.tasks = (uint32_t)k->chain, .chained = true};
    double each[ROUNDS_MAX];
    char name[80];
    for (uint64_t i = 0; i < k->rounds; i++) {
        double accepted = 0;
        double total = 0;
        int err = round_trip(b, &shape, &accepted, &total, e);
        if (err) return err;
        each[i] = total * 1e6 / (double)k->chain;
    }
    (void)snprintf(name, sizeof name, "chain of %" PRIu64 " dependent tasks", k->chain);
    report(b, name, "us/task", each, k->rounds);
    return MR_OK;
}

/* ---- one task after the other ---------------------------------------------------------------- */

static int one_task(struct bench *b, uint64_t i, struct mr_error *e)
{
    struct mr_buf bytes;
    struct mr_buf reply;
    char body[128];
    Google__Api__HttpBody http = GOOGLE__API__HTTP_BODY__INIT;
    Millrace__V1__SubmitRequest q = MILLRACE__V1__SUBMIT_REQUEST__INIT;
    int n = snprintf(body, sizeof body,
        "{\"tasks\":{\"x\":{\"op\":\"inc\",\"args\":[%" PRIu64 "]}},\"targets\":[\"x\"]}", i);
    http.data = (ProtobufCBinaryData){.len = (size_t)n, .data = (unsigned char *)body};
    q.body = &http;
    q.wait_s = 60;
    q.want_values = true;
    mr_buf_init(&bytes, 4096);
    mr_buf_init(&reply, 65536);
    mr_pb_pack(&q.base, &bytes);
    int err =
        mr_rpc_call_sync(b->rpc, "/millrace.v1.Jobs/Submit", mr_buf_str(&bytes), NULL, &reply, e);
    if (!err) {
        struct mr_pack_item item = {0};
        mr_pb_arena_clear(&b->arena);
        const Millrace__V1__SubmitResponse *m = mr_pb_unpack(
            &millrace__v1__submit_response__descriptor, mr_buf_str(&reply), &b->arena, e);
        bool good = m && m->n_values == 1;
        if (good) {
            struct mr_pack_reader r =
                mr_pack_read(mr_str_of(m->values[0]->pack.data, m->values[0]->pack.len));
            good = mr_pack_next(&r, &item) == MR_OK && item.type == MR_PACK_INT &&
                   item.i == (int64_t)i + 1;
        }
        if (!good) err = mr_fail(e, MR_EINTERNAL, "a one-task job came back without its value");
    }
    mr_buf_fini(&bytes);
    mr_buf_fini(&reply);
    return err;
}

static int http_task(struct bench *b, uint64_t i, struct mr_error *e)
{
    char body[128];
    yyjson_doc *doc = NULL;
    int n = snprintf(body, sizeof body,
        "{\"tasks\":{\"x\":{\"op\":\"inc\",\"args\":[%" PRIu64 "]}},\"targets\":[\"x\"]}", i);
    int err = mr_client_call(&b->http, "POST", mr_str_of(body, (size_t)n), &doc, e,
        "/v1/jobs?wait_s=60&want_values=true");
    if (!err && strcmp(mr_json_get_text(yyjson_obj_get(yyjson_doc_get_root(doc), "job"), "state"),
                    "JOB_DONE") != 0)
        err = mr_fail(e, MR_EINTERNAL, "a one-task job over HTTP was not done");
    yyjson_doc_free(doc);
    return err;
}

static int bench_latency(struct bench *b, uint64_t count, const char *way,
    int (*one)(struct bench *, uint64_t, struct mr_error *), struct mr_error *e)
{
    double *us = mr_alloc_array(count, sizeof *us);
    char name[80];
    int err = MR_OK;
    for (uint64_t i = 0; i < count && !err; i++) {
        mr_time begun = mr_clock_now();
        err = one(b, i, e);
        us[i] = (double)(mr_clock_now() - begun) / 1e3;
    }
    if (!err) {
        qsort(us, count, sizeof *us, by_value);
        (void)snprintf(name, sizeof name, "one task over %s, p50", way);
        report(b, name, "us", &us[count / 2], 1);
        (void)snprintf(name, sizeof name, "one task over %s, p99", way);
        report(b, name, "us", &us[count * 99 / 100], 1);
    }
    mr_release(us);
    return err;
}

/* Measures empty tasks with one JSON body and one JSON answer. */
static int http_empty_once(struct bench *b, uint64_t tasks, double *total_s, struct mr_error *e)
{
    struct mr_buf body;
    yyjson_doc *doc = NULL;
    yyjson_doc *values = NULL;
    mr_buf_init(&body, MR_JOB_BODY_BYTES_MAX);
    mr_time begun = mr_clock_now();
    mr_buf_add_text(&body, "{\"tasks\":{");
    for (uint64_t i = 0; i < tasks; i++)
        mr_buf_printf(&body, "%s\"task%08" PRIu64 "\":{\"op\":\"inc\",\"args\":[%" PRIu64 "]}",
            i ? "," : "", i, i);
    mr_buf_add_text(&body, "}}");
    int err = mr_client_call(&b->http, "POST", mr_buf_str(&body), &doc, e, "/v1/jobs");
    mr_buf_fini(&body);
    MR_AUTO(mr_free_ptr)
    char *id = mr_http_escape(mr_str(mr_json_get_text(yyjson_doc_get_root(doc), "id")));
    if (!err)
        err = mr_client_call(
            &b->http, "GET", (struct mr_str){0}, &values, e, "/v1/jobs/%s/results?wait_s=600", id);
    yyjson_val *results = yyjson_obj_get(yyjson_doc_get_root(values), "results");
    size_t at = 0;
    size_t max = 0;
    yyjson_val *key = NULL;
    yyjson_val *value = NULL;
    yyjson_obj_foreach(results, at, max, key, value)
    {
        if (!err && yyjson_get_uint(value) != strtoull(yyjson_get_str(key) + 4, NULL, 10) + 1)
            err = mr_fail(e, MR_EINTERNAL, "%s has a wrong value", yyjson_get_str(key));
    }
    if (!err && yyjson_obj_size(results) != tasks)
        err = mr_fail(e, MR_EINTERNAL, "%zu values came back", yyjson_obj_size(results));
    *total_s = (double)(mr_clock_now() - begun) / 1e9;
    yyjson_doc_free(doc);
    yyjson_doc_free(values);
    return err ? err
               : mr_client_call(&b->http, "DELETE", (struct mr_str){0}, NULL, e, "/v1/jobs/%s", id);
}

static int bench_http(struct bench *b, const struct config *k, struct mr_error *e)
{
    double rate[ROUNDS_MAX];
    char name[80];
    for (uint64_t i = 0; i < k->rounds && k->tasks; i++) {
        double total = 0;
        int err = http_empty_once(b, k->tasks, &total, e);
        if (err) return err;
        rate[i] = (double)k->tasks / total;
    }
    (void)snprintf(name, sizeof name, "empty tasks over HTTP/JSON, %" PRIu64, k->tasks);
    if (k->tasks) report(b, name, "tasks/s", rate, k->rounds);
    return k->latency ? bench_latency(b, k->latency, "HTTP", http_task, e) : MR_OK;
}

static int run(const struct config *k, struct mr_error *e)
{
    struct bench b = {.json = k->client.json};
    struct mr_last_cluster last = {0};
    int err = k->scheduler ? MR_OK : mr_last_cluster_read(&last, e);
    if (!err && k->http) err = mr_client_open(&k->client, &b.http, e);
    if (err) return err;
    MR_AUTO(mr_rpc_tls_free) struct mr_rpc_tls *tls = NULL;
    const struct mr_rpc_tls_options trusted = {.files = {.ca = k->client.tls_ca}};
    if (mr_certificate_is_given(k->client.tls_ca)) err = mr_rpc_tls_open(&trusted, &tls, e);
    if (err) return err;
    const struct mr_rpc_channel_options channel = {.bearer = k->client.token, .tls = tls};
    mr_pb_arena_init(&b.arena, (size_t)1 << 30);
    b.rpc = mr_rpc_client_open(k->scheduler ? k->scheduler : last.scheduler, &channel);
    if (b.json) (void)printf("[");
    err = k->latency ? bench_latency(
                           &b, MR_MIN(k->latency, (uint64_t)100), "gRPC, warming up", one_task, e)
                     : MR_OK;
    if (!err && k->latency) err = bench_latency(&b, k->latency, "gRPC", one_task, e);
    if (!err && k->chain) err = bench_chain(&b, k, e);
    if (!err && k->tasks) err = bench_empty(&b, k, e);
    if (!err && k->http) err = bench_http(&b, k, e);
    if (b.json) (void)printf("\n]\n");
    mr_rpc_client_close(&b.rpc);
    mr_pb_arena_fini(&b.arena);
    mr_client_fini(&b.http);
    mr_last_cluster_fini(&last);
    return err;
}

int mr_command_bench(int argc, char **argv)
{
    struct config k = {0};
    struct mr_error e = {0};
    mr_config_load(&mr_bench_spec, argc, argv, &k, NULL);
    int err = run(&k, &e);
    return err ? mr_client_fail("bench", &e) : MR_EXIT_OK;
}
