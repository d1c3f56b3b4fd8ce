/* Measures how fast a graph is read from JSON, and the parts of that work.
 *     bench_graph [tasks] [rounds] [letters of the parts to run: abcdt]
 * Prints, for each shape and notation, the size of the text, the time of the best and of the median
 * round, and the ns per task and the tasks/s of the median round. */
#include "base/alloc.h"
#include "graph/build/builder_state.h"
#include "graph/bytes/bytes.h"
#include "graph/template/template.h"
#include "graph/order.h"
#include "host/pool/thread_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <yyjson.h>

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool find_op(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    static const struct mr_graph_param two[] = {{MR_STR_INIT("a"), true}, {MR_STR_INIT("b"), true}};
    (void)ctx;
    *out = (struct mr_graph_op_info){two, 2, false, false};
    if (mr_str_eq(op, MR_STR("inc"))) out->params_count = 1;
    return out->params_count == 1 || mr_str_eq(op, MR_STR("add"));
}

static const struct mr_graph_catalogue catalogue = {find_op, NULL, NULL};

enum notation { CANONICAL, DSK };

/* Writes `n` tasks with keys of 12 bytes. Each is `inc` of a literal or, with `add` and from the
 * third task on, the sum of two earlier tasks. */
static void write_graph(struct mr_buf *b, uint32_t n, bool add, enum notation notation)
{
    mr_buf_printf(b, "{\"%s\": {", notation == DSK ? "dsk" : "tasks");
    for (uint32_t i = 0; i < n; i++) {
        if (i) mr_buf_add_text(b, ",\n");
        mr_buf_printf(b, "\"task-%07u\": ", i);
        uint32_t p = i / 2, q = i > 100 ? i - 100 : 0;
        if ((!add || i < 2) && notation == DSK)
            mr_buf_printf(b, "[\"inc\", %u]", i);
        else if (!add || i < 2)
            mr_buf_printf(b, "{\"op\": \"inc\", \"args\": [%u]}", i);
        else if (notation == DSK)
            mr_buf_printf(b, "[\"add\", \"task-%07u\", \"task-%07u\"]", p, q);
        else
            mr_buf_printf(b,
                "{\"op\": \"add\", \"args\": [{\"ref\": \"task-%07u\"}, {\"ref\": \"task-%07u\"}]}",
                p, q);
    }
    mr_buf_add_text(b, "}}");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void row(const char *what, double *seconds, unsigned rounds, uint32_t n)
{
    qsort(seconds, rounds, sizeof *seconds, by_value);
    double best = seconds[0], median = seconds[rounds / 2];
    printf("  %-28s best %7.1f ms  median %7.1f ms  %6.0f ns/task  %10.0f tasks/s\n", what,
        best * 1e3, median * 1e3, median / n * 1e9, n / median);
}

static void must(int err, const struct mr_error *e)
{
    if (!err) return;
    (void)fprintf(stderr, "bench_graph: %s\n", e->text);
    exit(1);
}

static struct mr_thread_pool *threads;

static void run_parallel(
    void *ctx, void (*work)(void *arg, uint32_t item, uint32_t worker), void *arg, uint32_t count)
{
    mr_thread_pool_run(ctx, work, arg, count);
}

enum { PARSE, TOTAL, PARALLEL, ORDER, WRITE, READ, FREE, KINDS };
static const char *const kinds[KINDS] = {"JSON to DOM (yyjson)", "JSON to graph, all of it",
    "the same by four threads", "cull and order alone", "graph to bytes", "bytes to graph", "free"};

/* Orders the nodes of a finished graph once more with mr_order_make, which builders call. Returns
 * the time of this call. */
static double time_order(const struct mr_graph *g)
{
    uint32_t *count = mr_alloc_array(g->nodes_count, sizeof *count);
    for (uint32_t v = 0; v < g->nodes_count; v++)
        count[v] = g->input_at[v + 1] - g->input_at[v];
    struct mr_order_graph in = {g->nodes_count, g->input_at, count, g->inputs,
        g->input_at[g->nodes_count], g->targets, g->targets_count};
    struct mr_order out;
    double t = now_s();
    if (!mr_order_make(&in, &out)) exit(1);
    t = now_s() - t;
    mr_order_fini(&out);
    mr_release(count);
    return t;
}

/* Returns the most memory that a process has while it reads the text, the text included. */
static double peak_bytes(struct mr_buf *text)
{
    pid_t child = fork();
    if (child < 0) exit(1);
    if (child == 0) {
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        must(mr_graph_from_json_buf(text, &catalogue, NULL, &g, &e), &e);
        _exit(0);
    }
    int status = 0;
    struct rusage used;
    if (wait4(child, &status, 0, &used) != child || status) exit(1);
    return (double)used.ru_maxrss * 1024;
}

static void bench(const char *name, uint32_t n, unsigned rounds, bool add, enum notation notation)
{
    struct mr_buf text, bytes;
    mr_buf_init(&text, (size_t)1 << 32);
    mr_buf_init(&bytes, (size_t)1 << 32);
    write_graph(&text, n, add, notation);
    double *seconds[KINDS];
    for (int k = 0; k < KINDS; k++)
        seconds[k] = mr_alloc_array(rounds, sizeof **seconds);
    struct mr_error e = {0};
    size_t held = 0;
    double peak = peak_bytes(&text);
    for (unsigned r = 0; r < rounds; r++) {
        double t = now_s();
        yyjson_doc_free(yyjson_read((const char *)text.p, text.n, 0));
        seconds[PARSE][r] = now_s() - t;
        struct mr_graph *g = NULL, *again = NULL;
        t = now_s();
        must(mr_graph_from_json(mr_buf_str(&text), &catalogue, &g, &e), &e);
        seconds[TOTAL][r] = now_s() - t;
        held = mr_graph_bytes_held(g);
        const struct mr_graph_parallel parallel = {
            mr_thread_pool_workers(threads), run_parallel, threads};
        struct mr_buf copy;
        mr_buf_init(&copy, text.n);
        mr_buf_add(&copy, text.p, text.n);
        t = now_s();
        must(mr_graph_from_json_buf(&copy, &catalogue, &parallel, &again, &e), &e);
        seconds[PARALLEL][r] = now_s() - t;
        mr_graph_free(&again);
        seconds[ORDER][r] = time_order(g);
        mr_buf_clear(&bytes);
        t = now_s();
        must(mr_graph_to_bytes(g, &bytes, &e), &e);
        seconds[WRITE][r] = now_s() - t;
        t = now_s();
        must(mr_graph_from_bytes(mr_buf_str(&bytes), &again, &e), &e);
        seconds[READ][r] = now_s() - t;
        t = now_s();
        mr_graph_free(&g);
        seconds[FREE][r] = now_s() - t;
        mr_graph_free(&again);
    }
    printf("%s: %u tasks, JSON %.1f MB, in memory %.1f B/task, at the peak %.1f, bytes %.1f\n",
        name, n, (double)text.n * 1e-6, (double)held / n, peak / n, (double)bytes.n / n);
    for (int k = 0; k < KINDS; k++) {
        row(kinds[k], seconds[k], rounds, n);
        mr_release(seconds[k]);
    }
    mr_buf_fini(&text);
    mr_buf_fini(&bytes);
}

/* Measures how fast graphs are made from a template. The template's parameter is an argument of
 * every task. With `is_read`, the parameter is also the key of one more task. Then each graph is
 * built from the parsed JSON, because the template's cache cannot serve it. */
static void bench_template(uint32_t n, unsigned rounds, bool is_read)
{
    struct mr_buf text, bytes;
    struct mr_json_template *t = NULL;
    struct mr_error e = {0};
    mr_buf_init(&text, (size_t)1 << 32);
    mr_buf_init(&bytes, (size_t)1 << 32);
    mr_buf_add_text(&text, "{\"params\": {\"a\": 0}, \"tasks\": {");
    for (uint32_t i = 0; i < n; i++)
        mr_buf_printf(&text, "%s\"task-%07u\": {\"op\": \"add\", \"args\": [%u, \"${a}\"]}",
            i ? ",\n" : "", i, i);
    if (is_read) mr_buf_add_text(&text, ",\"${a}\": {\"op\": \"inc\", \"args\": [1]}");
    mr_buf_add_text(&text, "}}");
    must(mr_json_template_new(mr_buf_str(&text), &t, &e), &e);
    double *made = mr_alloc_array(rounds, sizeof *made);
    double *packed = mr_alloc_array(rounds, sizeof *packed);
    /* The first two graphs are built from the parsed JSON, which fills the cache. */
    for (unsigned r = 0; r < rounds + 2; r++) {
        char given[64];
        struct mr_graph *g = NULL;
        (void)snprintf(given, sizeof given, "{\"params\": {\"a\": %u}}", 100000 + r);
        double at = now_s();
        must(mr_json_template_graph(t, mr_str(given), &catalogue, &g, NULL, &e), &e);
        double was_made = now_s();
        mr_buf_clear(&bytes);
        must(mr_graph_to_bytes(g, &bytes, &e), &e);
        if (r > 1) made[r - 2] = was_made - at;
        if (r > 1) packed[r - 2] = now_s() - was_made;
        mr_graph_free(&g);
    }
    printf("template, %s: %u tasks\n", is_read ? "read each time" : "kept", n);
    row("an instance", made, rounds, n);
    row("its bytes", packed, rounds, n);
    mr_release(made);
    mr_release(packed);
    mr_json_template_free(&t);
    mr_buf_fini(&text);
    mr_buf_fini(&bytes);
}

int main(int argc, char **argv)
{
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
    if (n < 4 || n > 9999999 || rounds < 1 || rounds > 1000) {
        (void)fprintf(stderr, "usage: bench_graph [tasks 4..9999999] [rounds 1..1000] [abcdt]\n");
        return 2;
    }
    threads = mr_thread_pool_new(4);
    const char *only = argc > 3 ? argv[3] : "abcdt";
    if (strchr(only, 'a')) bench("canonical, independent", n, rounds, false, CANONICAL);
    if (strchr(only, 'b')) bench("dsk, independent", n, rounds, false, DSK);
    if (strchr(only, 'c')) bench("canonical, two inputs each", n, rounds, true, CANONICAL);
    if (strchr(only, 'd')) bench("dsk, two inputs each", n, rounds, true, DSK);
    mr_thread_pool_free(&threads);
    for (int k = 0; k < 2 && strchr(only, 't'); k++)
        bench_template(n, rounds, k == 0);
    return 0;
}
