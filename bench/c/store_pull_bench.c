/* Measures how fast objects move between stores, with the real program in processes of its own:
 *     store_pull_bench MR-OBJECTSTORE [json]
 * Each round moves 256 MiB into warm memory in five ways, one after the other. So other load of the
 * machine slows all five ways. The first way is plain TCP. The second is our gRPC alone, which
 * copies each message to its place and does nothing else. The other three are pulls: over TCP, over
 * TCP again when the checksums are known, and over a UNIX socket. Prints medians of 5 rounds with
 * min and max. */
#include "bench/c/store_nodes.h"
#include "rpc/client.h"
#include "rpc/loop.h"
#include "rpc/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define BYTES ((uint64_t)256 << 20)
#define CHUNK ((uint64_t)1 << 20)

/* ---- plain TCP --------------------------------------------------------------------------------*/

static void send_plain(int fd, const char *data)
{
    for (uint64_t at = 0; at < BYTES;) {
        ssize_t n = write(fd, data + at, MR_MIN(BYTES - at, CHUNK));
        if (n <= 0) _exit(1);
        at += (uint64_t)n;
    }
}

/* Starts a process that sends the data to each client that connects. Returns its id. */
static pid_t serve_plain(const char *data, int *port)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t at_bytes = sizeof at;
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &at_bytes))
        die("listen", NULL);
    *port = ntohs(at.sin_port);
    pid_t pid = fork();
    if (pid) {
        close(listener);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        send_plain(fd, data);
        close(fd);
    }
}

static double run_plain(int port, char *out)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    mr_time from = mr_clock_now();
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) die("connect", NULL);
    for (uint64_t got = 0; got < BYTES;) {
        ssize_t n = read(fd, out + got, MR_MIN(BYTES - got, CHUNK));
        if (n <= 0) die("read", NULL);
        got += (uint64_t)n;
    }
    double speed = gb_per_s(BYTES, from);
    close(fd);
    return speed;
}

/* ---- our gRPC alone ---------------------------------------------------------------------------*/

static const char *bulk;

static void let_go(void *ctx)
{
    (void)ctx;
}

static void send_bulk(struct mr_rpc_call *call)
{
    uint64_t at = (uint64_t)(uintptr_t)mr_rpc_call_context(call);
    while (at < BYTES && mr_rpc_call_is_writable(call)) {
        struct mr_rpc_part part = {.bytes = {bulk + at, CHUNK}, .release = let_go};
        if (mr_rpc_call_send_parts(call, &part, 1)) return;
        at += CHUNK;
    }
    mr_rpc_call_set_context(call, (void *)(uintptr_t)at);
    if (at == BYTES) (void)mr_rpc_call_finish_ok(call);
}

static void on_request(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    (void)m;
    mr_rpc_call_set_context(call, NULL);
    send_bulk(call);
}

static const struct mr_rpc_handler bulk_handler = {
    .on_message = on_request, .on_writable = send_bulk};
static const struct mr_rpc_method methods[] = {
    {.name = "Get", .server_streaming = true, .handler = &bulk_handler}};
static const struct mr_rpc_service service = {"bench.Bulk", methods, MR_ARRAY_LEN(methods)};

static pid_t serve_grpc(const char *data, int *port)
{
    int fds[2];
    if (pipe(fds)) die("pipe", NULL);
    pid_t pid = fork();
    if (pid) {
        if (read(fds[0], port, sizeof *port) != sizeof *port) die("gRPC server", NULL);
        close(fds[0]);
        close(fds[1]);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bulk = data;
    struct mr_rpc_loop *loop = mr_rpc_loop_new();
    struct mr_rpc_server *server = mr_rpc_server_new(loop, NULL);
    mr_rpc_server_add_service(server, &service, NULL);
    int bound = 0;
    if (mr_rpc_server_listen(server, "127.0.0.1:0", &bound, NULL)) _exit(1);
    mr_rpc_server_start(server);
    if (write(fds[1], &bound, sizeof bound) != sizeof bound) _exit(1);
    for (;;)
        (void)mr_rpc_loop_run(loop, MR_NEVER);
}

struct receiver {
    char *out;
    uint64_t at;
    bool over;
};

static void take(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct receiver *r = mr_rpc_call_context(call);
    const struct mr_str *parts;
    size_t n = mr_rpc_message_parts(m, &parts);
    for (size_t i = 0; i < n && r->at + parts[i].n <= BYTES; r->at += parts[i++].n)
        memcpy(r->out + r->at, parts[i].p, parts[i].n);
}

static void over(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct receiver *r = mr_rpc_call_context(call);
    (void)status;
    r->over = true;
}

static const struct mr_rpc_handler receive_handler = {.on_message = take, .on_done = over};

static double run_grpc(struct mr_rpc_loop *loop, struct mr_rpc_channel *channel, char *out)
{
    struct receiver r = {.out = out};
    mr_time from = mr_clock_now();
    struct mr_rpc_call *call =
        mr_rpc_call_open(channel, "/bench.Bulk/Get", &receive_handler, &r, NULL);
    (void)mr_rpc_call_send(call, MR_STR(""));
    (void)mr_rpc_call_half_close(call);
    while (!r.over)
        (void)mr_rpc_loop_run(loop, MR_NEVER);
    mr_assert(r.at == BYTES);
    return gb_per_s(BYTES, from);
}

/* ---- a pull -----------------------------------------------------------------------------------*/

static double run_pull(
    const struct node *to, mr_object_id id, const char *address, const char *expected)
{
    struct mr_store *st = client(to);
    struct mr_store_view view;
    struct mr_error e;
    mr_time from = mr_clock_now();
    if (mr_store_get(st, id, address, WAIT, &view, &e)) die("pull", &e);
    double speed = gb_per_s(BYTES, from);
    mr_assert(!memcmp(view.p, expected, BYTES));
    mr_store_release(st, &view);
    drop(st, id);
    mr_store_close(&st);
    return speed;
}

enum way { PLAIN, GRPC, PULL_TCP, PULL_TCP_AGAIN, PULL_UNIX, WAYS };
static const char *const names[WAYS] = {
    [PLAIN] = "plain TCP, 256 MiB, no checksums",
    [GRPC] = "gRPC alone, TCP, 256 MiB, no checksums",
    [PULL_TCP] = "store to store, 256 MiB, TCP",
    [PULL_TCP_AGAIN] = "store to store, 256 MiB, TCP, checksums known",
    [PULL_UNIX] = "store to store, 256 MiB, UNIX socket",
};

static void shares(double runs[WAYS][RUNS])
{
    double of_plain[RUNS];
    double of_grpc[RUNS];
    for (int r = 0; r < RUNS; r++) {
        of_plain[r] = runs[PULL_TCP][r] / runs[PLAIN][r];
        of_grpc[r] = runs[PULL_TCP][r] / runs[GRPC][r];
    }
    row("store to store over plain TCP", "", of_plain);
    row("store to store over gRPC alone", "", of_grpc);
}

int main(int argc, char **argv)
{
    char *data = begin(argc, argv, BYTES);
    int plain_port = 0;
    int grpc_port = 0;
    pid_t plain = serve_plain(data, &plain_port); /* forks before this process has threads */
    pid_t grpc = serve_grpc(data, &grpc_port);
    struct node a;
    struct node b;
    start(&a, argv[1], 1);
    start(&b, argv[1], 2);
    struct mr_store *on_a = client(&a);
    struct mr_rpc_loop *loop = mr_rpc_loop_new();
    char text[64];
    snprintf(text, sizeof text, "127.0.0.1:%d", grpc_port);
    struct mr_rpc_channel *channel = mr_rpc_channel_open(loop, text, NULL);
    char *out =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    mr_assert(out != MAP_FAILED);
    double runs[WAYS][RUNS];
    for (int r = -1; r < RUNS; r++) { /* round -1 connects and warms the pages; it is not counted */
        double now[WAYS];
        mr_object_id tcp = put(on_a, data, BYTES);
        mr_object_id local = put(on_a, data, BYTES);
        now[PLAIN] = run_plain(plain_port, out);
        now[GRPC] = run_grpc(loop, channel, out);
        now[PULL_TCP] = run_pull(&b, tcp, a.address[1], data);
        now[PULL_TCP_AGAIN] = run_pull(&b, tcp, a.address[1], data);
        now[PULL_UNIX] = run_pull(&b, local, a.address[0], data);
        drop(on_a, tcp);
        drop(on_a, local);
        for (int w = 0; w < WAYS && r >= 0; w++)
            runs[w][r] = now[w];
    }
    for (int w = 0; w < WAYS; w++)
        row(names[w], "GB/s", runs[w]);
    shares(runs);
    mr_rpc_channel_close(&channel);
    mr_rpc_loop_free(&loop);
    mr_store_close(&on_a);
    stop(&a);
    stop(&b);
    kill(plain, SIGKILL);
    kill(grpc, SIGKILL);
    waitpid(plain, NULL, 0);
    waitpid(grpc, NULL, 0);
    clean_up();
    munmap(out, BYTES);
    mr_release(data);
    return 0;
}
