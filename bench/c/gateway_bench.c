/* Measures the gateway. mr-gateway and a service behind it, which answers at once, are child
 * processes. Clients send small requests on keep-alive connections over loopback, then one download
 * and one upload.
 *     gateway_bench PATH/mr-gateway [seconds of each part] */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/protowire.h"
#include "host/clock.h"
#include "millrace/v1/jobs.pb-c.h"
#include "millrace/v1/objects.pb-c.h"
#include "rpc/loop.h"
#include "rpc/util/pb.h"
#include "rpc/server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define SAMPLES_MAX 2000000
#define DOWNLOAD_CHUNKS 1024 /* chunks of 1 MiB */
#define UPLOAD_BYTES ((size_t)1 << 30)

/* ---- the service ----------------------------------------------------------------------------- */

static unsigned char chunk[(1 << 20) + 64];
static size_t chunk_bytes;

static void get(struct mr_rpc_call *call)
{
    Millrace__V1__Job job = MILLRACE__V1__JOB__INIT;
    job.id = (char *)(uintptr_t) "j1-7";
    job.state = MILLRACE__V1__JOB_STATE__JOB_DONE;
    (void)mr_rpc_call_reply_pb(call, &job.base);
}

static void send_chunks(struct mr_rpc_call *call)
{
    uintptr_t sent = (uintptr_t)mr_rpc_call_context(call);
    while (sent < DOWNLOAD_CHUNKS && mr_rpc_call_is_writable(call)) {
        struct mr_rpc_part part = {.bytes = mr_str_of(chunk, chunk_bytes)};
        if (mr_rpc_call_send_parts(call, &part, 1)) return;
        sent++;
    }
    mr_rpc_call_set_context(call, (void *)sent);
    if (sent == DOWNLOAD_CHUNKS) (void)mr_rpc_call_finish_ok(call);
}

static void start_chunks(struct mr_rpc_call *call)
{
    mr_rpc_call_set_context(call, NULL);
    send_chunks(call);
}

static void put_done(struct mr_rpc_call *call)
{
    Millrace__V1__ObjectInfo info = MILLRACE__V1__OBJECT_INFO__INIT;
    (void)mr_rpc_call_reply_pb(call, &info.base);
}

static void serve(const char *address)
{
    static const struct mr_rpc_handler get_handler = {.on_half_close = get};
    static const struct mr_rpc_handler result_handler = {
        .on_half_close = start_chunks, .on_writable = send_chunks};
    static const struct mr_rpc_handler put_handler = {.on_half_close = put_done};
    static const struct mr_rpc_method jobs[] = {{.name = "Get", .handler = &get_handler},
        {.name = "Result", .server_streaming = true, .handler = &result_handler}};
    static const struct mr_rpc_method objects[] = {
        {.name = "Put", .client_streaming = true, .handler = &put_handler}};
    static const struct mr_rpc_service services[] = {{"millrace.v1.Jobs", jobs, MR_ARRAY_LEN(jobs)},
        {"millrace.v1.Objects", objects, MR_ARRAY_LEN(objects)}};
    struct mr_buf b;
    mr_buf_init(&b, sizeof chunk);
    mr_protowire_add_bytes(&b, 1, MR_STR("application/octet-stream"));
    static unsigned char zeros[1 << 20];
    mr_protowire_add_bytes(&b, 2, mr_str_of(zeros, sizeof zeros));
    memcpy(chunk, b.p, b.n);
    chunk_bytes = b.n;

    struct mr_rpc_loop *loop = mr_rpc_loop_new();
    struct mr_rpc_server_options options = {0};
    struct mr_rpc_server *server = mr_rpc_server_new(loop, &options);
    for (size_t i = 0; i < MR_ARRAY_LEN(services); i++)
        mr_rpc_server_add_service(server, &services[i], NULL);
    mr_assert(!mr_rpc_server_listen(server, address, NULL, NULL));
    mr_rpc_server_start(server);
    for (;;)
        (void)mr_rpc_loop_run(loop, MR_NEVER);
}

/* ---- clients --------------------------------------------------------------------------------- */

struct connection {
    int fd;
    char in[65536];
    size_t in_n;
    mr_time sent;
};

static int port;
static struct connection connections[CONNECTIONS_MAX];
static uint32_t *samples;
static size_t samples_count;

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    mr_assert(fd >= 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(fd, (struct sockaddr *)&a, sizeof a)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void ask(struct connection *c, const char *request)
{
    c->in_n = 0;
    c->sent = mr_clock_now();
    mr_assert(send(c->fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
}

/* Reads what has come on the connection. True: the whole answer has arrived. */
static bool take(struct connection *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_n, sizeof c->in - 1 - c->in_n, 0);
    mr_assert(n > 0);
    c->in_n += (size_t)n;
    c->in[c->in_n] = 0;
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end) return false;
    char *length = strstr(c->in, "Content-Length: ");
    mr_assert(!memcmp(c->in, "HTTP/1.1 200", 12));
    mr_assert(length && length < end);
    return c->in_n >= (size_t)(end + 4 - c->in) + strtoul(length + 16, NULL, 10);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void small_requests(const char *target, size_t count, double seconds)
{
    char request[300];
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target);
    struct pollfd polls[CONNECTIONS_MAX];
    samples_count = 0;
    for (size_t i = 0; i < count; i++) {
        connections[i].fd = dial();
        polls[i] = (struct pollfd){.fd = connections[i].fd, .events = POLLIN};
        ask(&connections[i], request);
    }
    mr_time start = mr_clock_now(), end = start + (mr_duration)(seconds * 1e9);
    while (mr_clock_now() < end) {
        mr_assert(poll(polls, count, 1000) > 0);
        for (size_t i = 0; i < count; i++) {
            struct connection *c = &connections[i];
            if (!(polls[i].revents & POLLIN) || !take(c)) continue;
            if (samples_count < SAMPLES_MAX)
                samples[samples_count++] = (uint32_t)(mr_clock_now() - c->sent);
            ask(c, request);
        }
    }
    double took = (double)(mr_clock_now() - start) / 1e9;
    for (size_t i = 0; i < count; i++)
        (void)close(connections[i].fd);
    qsort(samples, samples_count, sizeof *samples, compare);
    printf("%-18s %3zu connections  %8.0f requests/s  p50 %6.0f us  p99 %6.0f us\n", target, count,
        (double)samples_count / took, samples[samples_count / 2] / 1e3,
        samples[samples_count * 99 / 100] / 1e3);
}

static void download(void)
{
    static char in[1 << 20];
    int fd = dial();
    const char *request = "GET /v1/jobs/x/results/y HTTP/1.1\r\nHost: localhost\r\n"
                          "Connection: close\r\n\r\n";
    mr_time start = mr_clock_now();
    mr_assert(send(fd, request, strlen(request), 0) > 0);
    size_t total = 0;
    for (ssize_t n; (n = recv(fd, in, sizeof in, 0)) > 0;)
        total += (size_t)n;
    (void)close(fd);
    mr_assert(total > (size_t)DOWNLOAD_CHUNKS << 20);
    printf("%-36s %8.2f GB/s\n", "download of 1 GiB",
        (double)total / (double)(mr_clock_now() - start));
}

static void upload(void)
{
    static char out[1 << 20];
    int fd = dial();
    char request[300];
    (void)snprintf(request, sizeof request,
        "POST /v1/objects HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        "Connection: close\r\nContent-Length: %zu\r\n\r\n",
        UPLOAD_BYTES);
    mr_time start = mr_clock_now();
    mr_assert(send(fd, request, strlen(request), 0) > 0);
    for (size_t sent = 0; sent < UPLOAD_BYTES;) {
        ssize_t n = send(fd, out, MR_MIN(sizeof out, UPLOAD_BYTES - sent), 0);
        mr_assert(n > 0);
        sent += (size_t)n;
    }
    ssize_t n = recv(fd, out, sizeof out, 0);
    mr_assert(n > 12);
    mr_assert(!memcmp(out, "HTTP/1.1 200", 12));
    (void)close(fd);
    printf("%-36s %8.2f GB/s\n", "upload of 1 GiB",
        (double)UPLOAD_BYTES / (double)(mr_clock_now() - start));
}

static void child(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    mr_assert(!bind(fd, (struct sockaddr *)&a, sizeof a));
    mr_assert(!getsockname(fd, (struct sockaddr *)&a, &n));
    (void)close(fd);
    return ntohs(a.sin_port);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 3;
    char directory[] = "/tmp/gateway-bench-XXXXXX", address[64], listen_at[64];
    mr_assert(mkdtemp(directory));
    (void)snprintf(address, sizeof address, "unix:%s/s.sock", directory);
    port = free_port();
    (void)snprintf(listen_at, sizeof listen_at, "127.0.0.1:%d", port);
    if (fork() == 0) {
        child();
        serve(address);
    }
    if (fork() == 0) {
        child();
        (void)execl(argv[1], argv[1], "--listen", listen_at, "--scheduler", address, "--store",
            address, (char *)NULL);
        _exit(1);
    }
    for (int i = 0; i < 500; i++) {
        int fd = dial();
        if (fd >= 0) {
            (void)close(fd);
            break;
        }
        mr_clock_sleep(10 * MR_MS);
    }
    mr_clock_sleep(200 * MR_MS);
    samples = mr_alloc_array(SAMPLES_MAX, sizeof *samples);
    small_requests("/", 1, seconds);
    small_requests("/", 32, seconds);
    small_requests("/v1/jobs/j1-7", 1, seconds);
    small_requests("/v1/jobs/j1-7", 32, seconds);
    small_requests("/v1/jobs/j1-7", 256, seconds);
    download();
    upload();
    mr_release(samples);
    (void)unlink(address + 5);
    (void)rmdir(directory);
    return 0;
}
