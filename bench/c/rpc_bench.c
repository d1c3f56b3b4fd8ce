/* Measures lib/rpc with a server process and a client process, over a UNIX socket or TCP.
 *     rpc_bench [unix|tcp] [seconds of each part] */
#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "rpc/client.h"
#include "rpc/loop.h"
#include "rpc/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES_MAX 1000000
#define WINDOW 1024 /* limit of messages whose echo has not come back */

static void echo(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    (void)mr_rpc_call_send(call, mr_rpc_message_str(m));
}

static void finish(struct mr_rpc_call *call)
{
    (void)mr_rpc_call_finish_ok(call);
}

static void reply(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    (void)mr_rpc_call_reply(call, mr_rpc_message_str(m));
}

static void sink(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    (void)call;
    (void)m;
}

static const struct mr_rpc_handler echo_handler = {.on_message = echo, .on_half_close = finish};
static const struct mr_rpc_handler reply_handler = {.on_message = reply};
static const struct mr_rpc_handler sink_handler = {.on_message = sink, .on_half_close = finish};
static const struct mr_rpc_method methods[] = {
    {.name = "Echo", .client_streaming = true, .server_streaming = true, .handler = &echo_handler},
    {.name = "Unary", .handler = &reply_handler},
    {.name = "Sink", .client_streaming = true, .server_streaming = true, .handler = &sink_handler},
};
static const struct mr_rpc_service service = {"bench.Bench", methods, MR_ARRAY_LEN(methods)};

static void serve(int out_fd, const char *address)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct mr_rpc_loop *loop = mr_rpc_loop_new();
    struct mr_rpc_server *server = mr_rpc_server_new(loop, NULL);
    mr_rpc_server_add_service(server, &service, NULL);
    int port = 0;
    struct mr_error e;
    int err = mr_rpc_server_listen(server, address, &port, &e);
    mr_assert(!err);
    mr_rpc_server_start(server);
    ssize_t n = write(out_fd, &port, sizeof port);
    mr_assert(n == (ssize_t)sizeof port);
    for (;;)
        (void)mr_rpc_loop_run(loop, MR_NEVER);
}

struct bench {
    struct mr_rpc_loop *loop;
    struct mr_rpc_channel *channel;
    uint64_t messages, bytes, done, writable;
};

static void count(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct bench *b = mr_rpc_call_context(call);
    b->messages++;
    b->bytes += mr_rpc_message_bytes(m);
}

static void over(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct bench *b = mr_rpc_call_context(call);
    b->done++;
    if (status->code) (void)fprintf(stderr, "%.*s\n", MR_STR_ARG(status->message));
    mr_assert(!status->code);
}

static const struct mr_rpc_handler client_handler = {.on_message = count, .on_done = over};

static void end(struct bench *b, struct mr_rpc_call *call)
{
    (void)mr_rpc_call_half_close(call);
    while (!b->done)
        (void)mr_rpc_loop_run(b->loop, MR_NEVER);
    b->done = b->messages = b->bytes = 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *what, uint64_t *ns, size_t n)
{
    qsort(ns, n, sizeof *ns, by_value);
    (void)printf("%-22s p50 %6.1f us   p99 %6.1f us   (%zu)\n", what, (double)ns[n / 2] / 1e3,
        (double)ns[n - 1 - n / 100] / 1e3, n);
}

static void ping_pong(struct bench *b, mr_duration time, uint64_t *ns)
{
    struct mr_rpc_call *call =
        mr_rpc_call_open(b->channel, "/bench.Bench/Echo", &client_handler, b, NULL);
    mr_time until = mr_time_after(mr_clock_now(), time);
    size_t n = 0;
    while (n < SAMPLES_MAX && mr_clock_now() < until) {
        mr_time t = mr_clock_now();
        uint64_t want = b->messages + 1;
        (void)mr_rpc_call_send(call, MR_STR("0123456789abcdef0123456789abcdef"));
        while (b->messages < want)
            (void)mr_rpc_loop_run(b->loop, MR_NEVER);
        ns[n++] = mr_clock_now() - t;
    }
    end(b, call);
    print_times("stream ping-pong", ns, n);
}

static void unary(struct bench *b, mr_duration time, uint64_t *ns)
{
    mr_time until = mr_time_after(mr_clock_now(), time);
    size_t n = 0;
    struct mr_rpc_call_options o = {.one_reply = true};
    while (n < SAMPLES_MAX && mr_clock_now() < until) {
        mr_time t = mr_clock_now();
        struct mr_rpc_call *call =
            mr_rpc_call_open(b->channel, "/bench.Bench/Unary", &client_handler, b, &o);
        (void)mr_rpc_call_send(call, MR_STR("0123456789abcdef0123456789abcdef"));
        end(b, call);
        ns[n++] = mr_clock_now() - t;
    }
    print_times("unary", ns, n);
}

static void stream(
    struct bench *b, const char *what, const char *method, size_t bytes, mr_duration time)
{
    static char chunk[1 << 20];
    bool echoes = method[13] == 'E';
    struct mr_rpc_call *call = mr_rpc_call_open(b->channel, method, &client_handler, b, NULL);
    mr_time start = mr_clock_now(), until = mr_time_after(start, time);
    uint64_t sent = 0;
    while (mr_clock_now() < until) {
        while (mr_rpc_call_is_writable(call) && (!echoes || sent - b->messages < WINDOW)) {
            (void)mr_rpc_call_send(call, mr_str_of(chunk, bytes));
            sent++;
        }
        (void)mr_rpc_loop_run(b->loop, MR_NEVER);
    }
    end(b, call);
    double s = (double)(mr_clock_now() - start) * 1e-9;
    (void)printf("%-22s %8.0f messages/s   %7.1f MB/s\n", what, (double)sent / s,
        (double)sent * (double)bytes / s / 1e6);
}

int main(int argc, char **argv)
{
    bool tcp = argc > 1 && argv[1][0] == 't';
    mr_duration time = (argc > 2 ? strtoull(argv[2], NULL, 10) : 2) * MR_SECOND;
    char directory[] = "/tmp/mr-rpc-bench-XXXXXX";
    if (!mkdtemp(directory)) return 1;
    MR_AUTO(mr_free_ptr)
    char *address = tcp ? mr_copy_text("127.0.0.1:0") : mr_format("unix:%s/s", directory);
    int fds[2];
    if (pipe(fds)) return 1;
    pid_t child = fork();
    if (child == 0) serve(fds[1], address);
    int port = 0;
    if (read(fds[0], &port, sizeof port) != (ssize_t)sizeof port) return 1;
    MR_AUTO(mr_free_ptr)
    char *target = tcp ? mr_format("127.0.0.1:%d", port) : mr_copy_text(address);

    struct bench b = {.loop = mr_rpc_loop_new()};
    b.channel = mr_rpc_channel_open(b.loop, target, NULL);
    uint64_t *ns = mr_alloc_array(SAMPLES_MAX, sizeof *ns);
    (void)printf("%s\n", tcp ? "TCP" : "UNIX");
    ping_pong(&b, time, ns);
    unary(&b, time, ns);
    stream(&b, "32 B one way", "/bench.Bench/Sink", 32, time);
    stream(&b, "32 B echoed", "/bench.Bench/Echo", 32, time);
    stream(&b, "1 KiB one way", "/bench.Bench/Sink", 1024, time);
    stream(&b, "1 MiB one way", "/bench.Bench/Sink", 1 << 20, time);
    mr_release(ns);
    mr_rpc_channel_close(&b.channel);
    mr_rpc_loop_free(&b.loop);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    (void)unlink(address + (tcp ? 0 : 5));
    (void)rmdir(directory);
    return 0;
}
