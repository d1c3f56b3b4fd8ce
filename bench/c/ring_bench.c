/* Measures how long an all-reduce between nodes takes. Each rank is a process with a network
 * thread, like a worker's process; the ranks form a ring over gRPC on this machine. Prints how long
 * the steps of rank 0 took and what a step cost rank 0: processor time, context switches, bytes
 * sent, and the share of the time that rank 0 waited.
 *
 *     ring_bench [--numbers 79512] [--ranks 2] [--steps 2000] [--work US] [--tcp]
 *                [--tls CERT KEY CA]
 *
 * 79512 numbers of type float32 (318 kB) are about as many as the model of examples/mnist.json has.
 * --work: each rank computes for this number of microseconds between steps. --tls needs --tcp;
 * without --tcp, ranks meet over UNIX sockets, as with `up --nodes 2`. */
#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/thread.h"
#include "rpc/loop.h"
#include "rpc/server.h"
#include "rpc/tls.h"
#include "train/service/service.h"
#include "train/allreduce/allreduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define RANKS_MAX 8u
#define WARM_STEPS 50u
#define ADDRESS_BYTES 96
#define LONG (mr_time_after(mr_clock_now(), 60 * MR_SECOND))

struct plan {
    uint64_t numbers, steps, work_us;
    uint32_t ranks;
    bool is_tcp;
    struct mr_certificate_files tls;
    char dir[32];
};

struct told { /* the counts that a rank sends at its end */
    uint64_t switches, forced, cpu_ns, took_ns, wait_ns, bytes;
};

struct net {
    struct mr_rpc_loop *loop;
    struct mr_rpc_server *server;
    struct mr_params_service *service;
    struct mr_thread *thread;
    struct mr_flag stop;
    char address[ADDRESS_BYTES];
};

static void must(int err, const struct mr_error *e)
{
    if (!err) return;
    (void)fprintf(stderr, "ring_bench: %s\n", e->text);
    exit(1);
}

static void net_run(void *ctx)
{
    struct net *n = ctx;
    while (!mr_flag_is_set(&n->stop))
        (void)mr_rpc_loop_run(n->loop, mr_time_after(mr_clock_now(), 50 * MR_MS));
}

static void net_open(struct net *n, const struct plan *p, uint32_t rank)
{
    struct mr_error e;
    const struct mr_rpc_server_options o = {0};
    int port = 0;
    n->loop = mr_rpc_loop_new();
    n->server = mr_rpc_server_new(n->loop, &o);
    n->service = mr_params_service_open(n->server, n->loop);
    (void)snprintf(n->address, sizeof n->address, "unix:%s/%u", p->dir, rank);
    if (p->is_tcp) (void)snprintf(n->address, sizeof n->address, "127.0.0.1:0");
    must(mr_rpc_server_listen(n->server, n->address, &port, &e), &e);
    if (p->is_tcp) (void)snprintf(n->address, sizeof n->address, "127.0.0.1:%d", port);
    mr_rpc_server_start(n->server);
    n->thread = mr_thread_start("net", net_run, n);
}

static void net_close(struct net *n)
{
    mr_flag_set(&n->stop, true);
    mr_thread_join(&n->thread);
    mr_rpc_server_close(&n->server, 100 * MR_MS);
    mr_params_service_close(&n->service);
    mr_rpc_loop_free(&n->loop);
}

static struct mr_reduce *rank_open(
    const struct plan *p, uint32_t rank, char (*addresses)[ADDRESS_BYTES])
{
    struct mr_place places[RANKS_MAX];
    char nodes[RANKS_MAX][16];
    struct mr_error e;
    struct mr_nn_optim optim;
    struct mr_reduce *r = NULL;
    uint64_t first, count;
    must(mr_nn_optim_parse(MR_STR("{\"type\": \"adam\", \"learning_rate\": 0.001}"), &optim, &e),
        &e);
    for (uint32_t i = 0; i < p->ranks; i++) {
        (void)snprintf(nodes[i], sizeof nodes[i], "node-%u", i);
        places[i] = (struct mr_place){.address = addresses[i], .node = nodes[i], .socket = ""};
    }
    mr_transport_slice(p->numbers, p->ranks, rank, &first, &count);
    float *params = mr_alloc_array(count + 1, sizeof *params);
    const struct mr_reduce_options o = {.session = "bench",
        .generation = 1,
        .rank = rank,
        .ranks = p->ranks,
        .places = places,
        .count = p->numbers,
        .trainable_count = p->numbers,
        .optim = &optim,
        .params = params};
    must(mr_reduce_open(&o, LONG, &r, &e), &e);
    mr_release(params);
    return r;
}

static void work(uint64_t us)
{
    mr_time until = mr_time_after(mr_clock_now(), us * MR_US);
    while (us && mr_clock_now() < until) {
    }
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * MR_SECOND + (uint64_t)t.tv_usec * MR_US;
}

static void steps_do(struct mr_reduce *r, const struct plan *p, uint64_t *ns, struct told *told)
{
    struct rusage a, b;
    struct mr_reduce_counts c0, c1;
    struct mr_error e;
    for (uint32_t i = 0; i < WARM_STEPS; i++)
        must(mr_reduce_step(r, LONG, &e), &e);
    (void)getrusage(RUSAGE_SELF, &a);
    mr_reduce_counts(r, &c0);
    uint64_t bytes = atomic_load(&mr_transport_traffic()->grpc_bytes);
    mr_time begun = mr_clock_now();
    for (uint64_t i = 0; i < p->steps; i++) {
        work(p->work_us);
        mr_time t = mr_clock_now();
        must(mr_reduce_step(r, LONG, &e), &e);
        ns[i] = mr_clock_now() - t;
    }
    told->took_ns = mr_clock_now() - begun;
    mr_reduce_counts(r, &c1);
    (void)getrusage(RUSAGE_SELF, &b);
    told->switches = (uint64_t)(b.ru_nvcsw - a.ru_nvcsw);
    told->forced = (uint64_t)(b.ru_nivcsw - a.ru_nivcsw);
    told->cpu_ns = ns_of(b.ru_utime) + ns_of(b.ru_stime) - ns_of(a.ru_utime) - ns_of(a.ru_stime);
    told->wait_ns = c1.wait_ns - c0.wait_ns;
    told->bytes = atomic_load(&mr_transport_traffic()->grpc_bytes) - bytes;
}

static void transfer(int fd, void *p, size_t n, bool writes)
{
    for (size_t at = 0; at < n;) {
        ssize_t k = writes ? write(fd, (char *)p + at, n - at) : read(fd, (char *)p + at, n - at);
        if (k <= 0) exit(1);
        at += (size_t)k;
    }
}

static void rank_run(const struct plan *p, uint32_t rank, int in, int out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    char node[16], addresses[RANKS_MAX][ADDRESS_BYTES];
    (void)snprintf(node, sizeof node, "node-%u", rank);
    const struct mr_transport_options share = {.node = node};
    mr_transport_configure(&share);
    struct net net = {0};
    struct mr_error e;
    must(mr_rpc_tls_use(&p->tls, &e), &e);
    net_open(&net, p, rank);
    transfer(out, net.address, sizeof net.address, true);
    transfer(in, addresses, sizeof addresses, false);
    struct mr_reduce *r = rank_open(p, rank, addresses);
    struct told told = {0};
    uint64_t *ns = mr_alloc_array(p->steps, sizeof *ns);
    steps_do(r, p, ns, &told);
    transfer(out, &told, sizeof told, true);
    transfer(out, ns, p->steps * sizeof *ns, true);
    char all_done;
    transfer(in, &all_done, 1, false);
    mr_reduce_close(&r);
    net_close(&net);
    mr_release(ns);
    exit(0);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const struct plan *p, uint64_t *ns)
{
    size_t n = p->steps;
    qsort(ns, n, sizeof *ns, by_value);
    (void)printf(
        "%u ranks, %.1f kB, %s, %llu us of work: least %.0f, p10 %.0f, p50 %.0f, p90 %.0f, "
        "p99 %.0f, most %.0f us a step\n",
        p->ranks, (double)p->numbers * sizeof(float) / 1e3, p->is_tcp ? "TCP" : "UNIX sockets",
        (unsigned long long)p->work_us, (double)ns[0] / 1e3, (double)ns[n / 10] / 1e3,
        (double)ns[n / 2] / 1e3, (double)ns[n - 1 - n / 10] / 1e3,
        (double)ns[n - 1 - n / 100] / 1e3, (double)ns[n - 1] / 1e3);
}

static void print_told(const struct plan *p, const struct told *t)
{
    double n = (double)p->steps;
    (void)printf(
        "  a rank and a step: %.0f us of processor, %.1f context switches of its own will, "
        "%.1f forced, %.1f kB out; waits %.0f %% of the time\n",
        (double)t->cpu_ns / n / 1e3, (double)t->switches / n, (double)t->forced / n,
        (double)t->bytes / n / 1e3, 100.0 * (double)t->wait_ns / (double)t->took_ns);
}

static uint64_t number(const char *text)
{
    char *end = NULL;
    unsigned long long v = text ? strtoull(text, &end, 10) : 0;
    if (!text || end == text || *end) {
        (void)fprintf(
            stderr, "ring_bench: wanted is a number, see the head of bench/c/ring_bench.c\n");
        exit(2);
    }
    return v;
}

static void options(struct plan *p, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--tls") && i + 3 < argc) {
            p->tls = (struct mr_certificate_files){argv[i + 1], argv[i + 2], argv[i + 3], NULL};
            i += 3;
            continue;
        }
        if (!strcmp(argv[i], "--tcp"))
            p->is_tcp = true;
        else if (!strcmp(argv[i], "--numbers"))
            p->numbers = number(argv[++i]);
        else if (!strcmp(argv[i], "--ranks"))
            p->ranks = (uint32_t)number(argv[++i]);
        else if (!strcmp(argv[i], "--steps"))
            p->steps = number(argv[++i]);
        else if (!strcmp(argv[i], "--work"))
            p->work_us = number(argv[++i]);
        else
            (void)number(NULL);
    }
    if (!p->numbers || !p->steps || !p->ranks || p->ranks > RANKS_MAX) (void)number(NULL);
}

int main(int argc, char **argv)
{
    struct plan p = {.numbers = 79512, .steps = 2000, .ranks = 2, .dir = "/tmp/ring-bench-XXXXXX"};
    options(&p, argc, argv);
    int up[RANKS_MAX][2], down[RANKS_MAX][2];
    char addresses[RANKS_MAX][ADDRESS_BYTES] = {{0}};
    if (!mkdtemp(p.dir)) return 1;
    for (uint32_t i = 0; i < p.ranks; i++) {
        if (pipe(up[i]) || pipe(down[i])) return 1;
        pid_t pid = fork();
        if (pid < 0) return 1;
        if (!pid) rank_run(&p, i, down[i][0], up[i][1]);
        (void)close(up[i][1]);
    }
    for (uint32_t i = 0; i < p.ranks; i++)
        transfer(up[i][0], addresses[i], ADDRESS_BYTES, false);
    for (uint32_t i = 0; i < p.ranks; i++)
        transfer(down[i][1], addresses, sizeof addresses, true);
    uint64_t *ns = mr_alloc_array(p.steps, sizeof *ns);
    struct told told[RANKS_MAX];
    for (uint32_t i = p.ranks; i-- > 0;) { /* rank 0 is last, so that its times stay in `ns` */
        transfer(up[i][0], &told[i], sizeof told[i], false);
        transfer(up[i][0], ns, p.steps * sizeof *ns, false);
    }
    print_times(&p, ns);
    print_told(&p, &told[0]);
    int failed = 0;
    for (uint32_t i = 0; i < p.ranks; i++)
        transfer(down[i][1], (char[]){'!'}, 1, true);
    for (uint32_t i = 0; i < p.ranks; i++) {
        int status = 0;
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) failed = 1;
    }
    (void)rmdir(p.dir);
    mr_release(ns);
    return failed;
}
