/* How fast the object store is, with the real program in processes of its own:
 *     store_bench MR-OBJECTSTORE [json]
 * Rows: a local get; put of 64 MiB into warm pages and of 1 GiB into cold ones beside memcpy; a
 * pull from store to store with checksums beside plain TCP. Medians of 5 with min and max. */
#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "store/arena/client.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS 5
#define GETS 200000
#define WARM_BYTES ((uint64_t)64 << 20)
#define COLD_BYTES ((uint64_t)1 << 30)
#define PULL_BYTES ((uint64_t)256 << 20)
#define WAIT (30 * MR_SECOND)

struct node {
    char control[128];
    char address[128];
    pid_t pid;
};

static char folder[] = "/tmp/mr-bench-XXXXXX";
static bool as_json;

static void die(const char *what, const struct mr_error *e)
{
    fprintf(stderr, "store_bench: %s: %s\n", what, e ? e->text : "");
    exit(1);
}

static void start(struct node *n, const char *program, int number, const char *address)
{
    snprintf(n->control, sizeof n->control, "%s/control-%d", folder, number);
    snprintf(n->address, sizeof n->address, "%s", address);
    n->pid = fork();
    mr_assert(n->pid >= 0);
    if (n->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("MILLRACE_LOG", "error", 1);
        execl(program, program, "--listen", n->address, "--socket", n->control, "--memory", "6GiB",
            (char *)NULL);
        _exit(127);
    }
}

static struct mr_store *client(const struct node *n)
{
    struct mr_store *st = NULL;
    struct mr_error e;
    for (int i = 0; i < 300; i++) {
        if (!mr_store_open(n->control, "bench", &st, &e)) return st;
        mr_clock_sleep(20 * MR_MS);
    }
    die("open", &e);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void row(const char *name, const char *unit, double runs[RUNS])
{
    qsort(runs, RUNS, sizeof *runs, by_value);
    if (as_json)
        printf(
            "{\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.4g, \"min\": %.4g, \"max\": %.4g}\n",
            name, unit, runs[RUNS / 2], runs[0], runs[RUNS - 1]);
    else
        printf("%-44s %10.3f %-5s (%.3f - %.3f)\n", name, runs[RUNS / 2], unit, runs[0],
            runs[RUNS - 1]);
    fflush(stdout);
}

static double gb_per_s(uint64_t bytes, mr_time from)
{
    return (double)bytes / (double)(mr_clock_now() - from);
}

/* ---- local ------------------------------------------------------------------------------------*/

static mr_object_id put(struct mr_store *st, const void *from, uint64_t bytes)
{
    struct mr_store_draft draft;
    struct mr_error e;
    if (mr_store_create(st, bytes, WAIT, &draft, &e)) die("create", &e);
    memcpy(draft.p, from, bytes);
    mr_object_id id = draft.id;
    if (mr_store_seal(st, &draft, NULL, NULL, &e)) die("seal", &e);
    return id;
}

static void drop(struct mr_store *st, mr_object_id id)
{
    struct mr_error e;
    if (mr_store_delete(st, &id, 1, true, &e)) die("delete", &e);
}

static void bench_get(struct mr_store *st, struct mr_store *other, const void *data)
{
    double runs[RUNS];
    uint64_t sizes[] = {1000, WARM_BYTES};
    for (size_t s = 0; s < 2; s++) {
        mr_object_id id = put(st, data, sizes[s]);
        for (int r = 0; r < RUNS; r++) {
            mr_time from = mr_clock_now();
            for (int i = 0; i < GETS; i++) {
                struct mr_store_view view;
                if (mr_store_get(other, id, NULL, WAIT, &view, NULL)) die("get", NULL);
                mr_store_release(other, &view);
            }
            runs[r] = (double)(mr_clock_now() - from) / GETS;
        }
        row(s ? "local get and release, 64 MiB" : "local get and release, 1 kB", "ns", runs);
        drop(st, id);
    }
    for (int r = 0; r < RUNS; r++) {
        mr_time from = mr_clock_now();
        for (int i = 0; i < 20000; i++) {
            struct mr_store_draft draft;
            if (mr_store_create(st, 1000, WAIT, &draft, NULL)) die("create", NULL);
            mr_object_id id = draft.id;
            if (mr_store_seal(st, &draft, NULL, NULL, NULL)) die("seal", NULL);
            mr_store_unhold(st, &id, 1, (struct mr_store_holder){MR_HOLD_CLIENT, 0});
        }
        runs[r] = (double)(mr_clock_now() - from) / 20000;
    }
    row("create, seal and unhold, 1 kB", "ns", runs);
}

static void bench_put(struct mr_store *st, const void *data)
{
    double runs[RUNS];
    double plain[RUNS];
    unsigned char *warm = mr_alloc(WARM_BYTES);
    memset(warm, 1, WARM_BYTES);
    mr_object_id first = put(st, data, WARM_BYTES); /* its pages are the warm ones */
    drop(st, first);
    for (int r = 0; r < RUNS; r++) {
        mr_time from = mr_clock_now();
        for (int i = 0; i < 8; i++)
            drop(st, put(st, data, WARM_BYTES));
        runs[r] = gb_per_s(8 * WARM_BYTES, from);
        from = mr_clock_now();
        for (int i = 0; i < 8; i++) {
            memcpy(warm, data, WARM_BYTES);
            __asm__ volatile("" : : "r"(warm) : "memory");
        }
        plain[r] = gb_per_s(8 * WARM_BYTES, from);
    }
    row("put and delete, 64 MiB, warm pages", "GB/s", runs);
    row("memcpy, 64 MiB, warm pages", "GB/s", plain);
    mr_release(warm);
}

static void bench_cold(const struct node *n, const void *data)
{
    double runs[RUNS];
    double plain[RUNS];
    for (int r = 0; r < RUNS; r++) {
        struct mr_store *st = client(n); /* a client of its own has no warm pages */
        mr_time from = mr_clock_now();
        mr_object_id id = put(st, data, COLD_BYTES);
        runs[r] = gb_per_s(COLD_BYTES, from);
        drop(st, id);
        mr_store_close(&st);
        from = mr_clock_now();
        void *fresh =
            mmap(NULL, COLD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mr_assert(fresh != MAP_FAILED);
        memcpy(fresh, data, COLD_BYTES);
        plain[r] = gb_per_s(COLD_BYTES, from);
        munmap(fresh, COLD_BYTES);
    }
    row("put, 1 GiB, cold pages", "GB/s", runs);
    row("memcpy, 1 GiB, cold pages", "GB/s", plain);
}

/* ---- between stores ---------------------------------------------------------------------------*/

static void bench_pull(const struct node *from_node, struct mr_store *from, const struct node *to,
    const void *data, const char *name)
{
    double runs[RUNS];
    (void)to;
    for (int r = -1; r < RUNS; r++) { /* the first connects, and warms the pages */
        mr_object_id id = put(from, data, PULL_BYTES);
        struct mr_store *st = client(to);
        struct mr_store_view view;
        struct mr_error e;
        mr_time start_time = mr_clock_now();
        if (mr_store_get(st, id, from_node->address, WAIT, &view, &e)) die("pull", &e);
        if (r >= 0) runs[r] = gb_per_s(PULL_BYTES, start_time);
        mr_assert(!memcmp(view.p, data, PULL_BYTES));
        mr_store_release(st, &view);
        drop(st, id);
        drop(from, id);
        mr_store_close(&st);
    }
    row(name, "GB/s", runs);
}

static void send_plain(int port, const char *data)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) _exit(1);
    for (uint64_t at = 0; at < PULL_BYTES;) {
        ssize_t n = write(fd, data + at, MR_MIN(PULL_BYTES - at, (uint64_t)1 << 20));
        if (n <= 0) _exit(1);
        at += (uint64_t)n;
    }
    _exit(0);
}

static void bench_tcp(const char *data)
{
    double runs[RUNS];
    char *out = mr_alloc(PULL_BYTES);
    memset(out, 1, PULL_BYTES);
    for (int r = 0; r < RUNS; r++) {
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t at_bytes = sizeof at;
        if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1) ||
            getsockname(listener, (struct sockaddr *)&at, &at_bytes))
            die("listen", NULL);
        pid_t sender = fork();
        if (sender == 0) send_plain(ntohs(at.sin_port), data);
        int fd = accept(listener, NULL, NULL);
        mr_time from = mr_clock_now();
        for (uint64_t got = 0; got < PULL_BYTES;) {
            ssize_t n = read(fd, out + got, PULL_BYTES - got);
            if (n <= 0) die("read", NULL);
            got += (uint64_t)n;
        }
        runs[r] = gb_per_s(PULL_BYTES, from);
        close(fd);
        close(listener);
        waitpid(sender, NULL, 0);
    }
    row("plain TCP, 256 MiB, no checksums", "GB/s", runs);
    mr_release(out);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: store_bench MR-OBJECTSTORE [json]\n");
        return 2;
    }
    as_json = argc > 2 && !strcmp(argv[2], "json");
    if (!mkdtemp(folder)) die("mkdtemp", NULL);
    double load[1] = {0};
    (void)getloadavg(load, 1);
    if (!as_json) printf("load average %.2f\n", load[0]);
    char *data = mr_alloc(COLD_BYTES);
    for (uint64_t i = 0; i < COLD_BYTES; i += 8)
        memcpy(data + i, &i, 8);
    bench_tcp(data); /* forks: before there are threads */
    struct node a;
    struct node b;
    char address[160];
    snprintf(address, sizeof address, "unix:%s/a", folder);
    start(&a, argv[1], 1, address);
    snprintf(address, sizeof address, "127.0.0.1:%d", 20000 + (int)(getpid() % 30000));
    start(&b, argv[1], 2, address);
    struct mr_store *on_a = client(&a);
    struct mr_store *also_on_a = client(&a);
    struct mr_store *on_b = client(&b);
    bench_get(on_a, also_on_a, data);
    bench_put(on_a, data);
    bench_cold(&a, data);
    bench_pull(&a, on_a, &b, data, "store to store, 256 MiB, UNIX socket");
    bench_pull(&b, on_b, &a, data, "store to store, 256 MiB, TCP");
    mr_store_close(&on_a);
    mr_store_close(&also_on_a);
    mr_store_close(&on_b);
    kill(a.pid, SIGTERM);
    kill(b.pid, SIGTERM);
    waitpid(a.pid, NULL, 0);
    waitpid(b.pid, NULL, 0);
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mr_release(data);
    return 0;
}
