/* Measures how fast a timeline is written as a file for trace viewers (cli/export).
 *     bench_export [spans] [slots]
 * Writes each of the two formats without a graph, and then with a graph of at most 1,000,000 tasks.
 * After each of the four runs, prints spans per second, bytes per span, and the program's peak
 * memory so far. The spans are made up: one chain of tasks on each slot. The bytes are counted and
 * dropped. */
#include "base/alloc.h"
#include "base/err.h"
#include "cli/export/export.h"
#include "host/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define BEGIN 1700000000000000000u
#define RUN 10000 /* ns that a task runs */
#define NODES_MAX 1000000u

static int count(void *ctx, struct mr_str bytes)
{
    *(uint64_t *)ctx += bytes.n;
    return MR_OK;
}

static struct mr_export_span span_of(uint32_t i, uint32_t slots, char key[32], char worker[32])
{
    uint64_t started = BEGIN + (uint64_t)(i / slots) * (RUN + 300) + i % slots;
    int key_n = snprintf(key, 32, "part/%07" PRIu32, i);
    int worker_n = snprintf(worker, 32, "worker-%" PRIu32, i % slots / 8);
    return (struct mr_export_span){.key = {key, (size_t)key_n},
        .op = i % 3 ? MR_STR("array.matmul") : MR_STR("array.add"),
        .worker = {worker, (size_t)worker_n},
        .outcome = MR_STR("SPAN_OUTCOME_OK"),
        .held = MR_STR("SPAN_HELD_UNSPECIFIED"),
        .node = i,
        .slot = i % slots % 8,
        .attempt = 1,
        .ready = started - 200,
        .started = started,
        .finished = started + RUN,
        .cpu_ns = RUN - 100,
        .nbytes = 4096};
}

struct graph { /* task i needs task i - `slots` */
    struct mr_export_edges edges;
    uint32_t *input_at, *inputs, *dependent_at, *dependents;
    unsigned char *is_target;
};

static void graph_make(struct graph *g, uint32_t nodes, uint32_t slots)
{
    g->input_at = mr_alloc_array(nodes + 1, sizeof(uint32_t));
    g->inputs = mr_alloc_array(nodes, sizeof(uint32_t));
    g->dependent_at = mr_alloc_array(nodes + 1, sizeof(uint32_t));
    g->dependents = mr_alloc_array(nodes, sizeof(uint32_t));
    g->is_target = mr_alloc(nodes);
    for (uint32_t i = 0; i < nodes; i++) {
        bool has_input = i >= slots, has_dependent = i + slots < nodes;
        g->input_at[i + 1] = g->input_at[i] + (has_input ? 1 : 0);
        g->dependent_at[i + 1] = g->dependent_at[i] + (has_dependent ? 1 : 0);
        if (has_input) g->inputs[g->input_at[i]] = i - slots;
        if (has_dependent) g->dependents[g->dependent_at[i]] = i + slots;
    }
    g->edges = (struct mr_export_edges){
        nodes, g->input_at, g->inputs, g->dependent_at, g->dependents, g->is_target};
}

static void graph_fini(struct graph *g)
{
    mr_release(g->input_at);
    mr_release(g->inputs);
    mr_release(g->dependent_at);
    mr_release(g->dependents);
    mr_release(g->is_target);
}

static void run(const char *name, const struct mr_export_format *format, uint32_t spans,
    uint32_t slots, const struct mr_export_edges *edges)
{
    uint64_t bytes = 0;
    const struct mr_export_config config = {.format = format,
        .about = {MR_STR("j1-1"), BEGIN - RUN},
        .edges = edges,
        .write = count,
        .ctx = &bytes};
    struct rusage used;
    mr_time begun = mr_clock_now();
    struct mr_export *x = mr_export_open(&config);
    for (uint32_t i = 0; i < spans; i++) {
        char key[32], worker[32];
        struct mr_export_span span = span_of(i, slots, key, worker);
        (void)mr_export_span(x, &span);
    }
    (void)mr_export_close(&x);
    double took = (double)(mr_clock_now() - begun) / 1e9;
    (void)getrusage(RUSAGE_SELF, &used);
    (void)printf("%-24s %9.0f spans/s %6.1f bytes a span, peak memory %5.1f MiB, %" PRIu32
                 " spans\n",
        name, spans / took, (double)bytes / spans, (double)used.ru_maxrss / 1024, spans);
}

int main(int argc, char **argv)
{
    uint32_t spans = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000000;
    uint32_t slots = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 64;
    uint32_t nodes = MR_MIN(spans, NODES_MAX);
    struct graph g = {0};
    run("chrome", &mr_export_chrome, spans, slots, NULL);
    run("perfetto", &mr_export_perfetto, spans, slots, NULL);
    graph_make(&g, nodes, slots);
    run("chrome, with arrows", &mr_export_chrome, nodes, slots, &g.edges);
    run("perfetto, with arrows", &mr_export_perfetto, nodes, slots, &g.edges);
    graph_fini(&g);
    return 0;
}
