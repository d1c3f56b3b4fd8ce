/* train/params: processes that die at any moment, and peers that break the protocol. */
#include "tests/unit/train/params_rig.h"

#include "train/params/layout.h"
#include "train/transport/host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define SGD "{\"type\": \"sgd\", \"learning_rate\": 0.1}"
#define COUNT 100000u

static void share_begin(void)
{
    static const struct mr_credential secret = {.fixed = "0123456789abcdef"};
    const struct mr_transport_options o = {.node = "n1", .credential = &secret};
    mr_transport_configure(&o);
}

static void tell_path(int fd)
{
    const char *path = NULL;
    mr_assert(!mr_transport_socket(&path, NULL));
    char text[96] = {0};
    (void)snprintf(text, sizeof text, "%s", path);
    mr_assert(write(fd, text, sizeof text) == sizeof text);
}

static void forget_path(char *path) /* a killed process leaves its socket file */
{
    (void)unlink(path);
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
    (void)rmdir(path);
}

static void serve_until_killed(int fd)
{
    share_begin();
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, COUNT, COUNT);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_ASYNC, 0, 1);
    tell_path(fd);
    rig_ps_run(&ps);
    _exit(0);
}

static void a_worker_notices_a_killed_server(void **state)
{
    (void)state;
    int up[2];
    assert_int_equal(pipe(up), 0);
    pid_t pid = fork();
    if (!pid) serve_until_killed(up[1]);
    char path[96];
    assert_int_equal(read(up[0], path, sizeof path), sizeof path);
    struct mr_place at = {.address = "", .node = "n1", .socket = path};
    struct mr_params *p = rig_connect(&at, 1, COUNT, 0, false);
    struct mr_params_view v;
    struct mr_error e = {0};
    float *g = NULL;
    for (uint64_t step = 1; step < 20; step++) {
        assert_int_equal(mr_params_pull(p, 0, SOON, &v, &e), MR_OK);
        assert_int_equal(mr_params_buffer(p, SOON, &g, &e), MR_OK);
        assert_int_equal(mr_params_push(p, step, 1, &e), MR_OK);
    }
    assert_int_equal(mr_params_pull(p, 19, SOON, &v, &e), MR_OK);
    float last = v.params[COUNT - 1];
    assert_int_equal(kill(pid, SIGKILL), 0);
    mr_time begun = mr_clock_now();
    assert_int_equal(mr_params_pull(p, 1000, SOON, &v, &e), MR_EAWAY);
    assert_true(mr_clock_now() - begun < MR_SECOND);
    assert_true(last == last); /* the parameter that the worker has read is not NaN */
    int err = MR_OK;
    for (uint64_t step = 20; step < 24 && !err; step++) {
        err = mr_params_buffer(p, SOON, &g, &e);
        if (!err) err = mr_params_push(p, step, 1, &e);
    }
    assert_int_equal(err, MR_EAWAY);
    mr_params_close(&p);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    struct mr_params_options again = {
        .session = "t1-1", .count = COUNT, .shards = &at, .shards_count = 1};
    assert_int_equal(mr_params_open(&again, SHORTLY, &p, &e), MR_EAWAY);
    forget_path(path);
    (void)(close(up[0]) + close(up[1]));
}

static void push_until_killed(int in)
{
    share_begin();
    char path[96];
    mr_assert(read(in, path, sizeof path) == sizeof path);
    struct mr_place at = {.address = "", .node = "n1", .socket = path};
    struct mr_params *p = rig_connect(&at, 1, COUNT, 3, false);
    struct mr_error e;
    for (uint64_t step = 1;; step++) {
        struct mr_params_view v;
        float *g = NULL;
        mr_assert(!mr_params_pull(p, 0, SOON, &v, &e));
        mr_assert(!mr_params_buffer(p, SOON, &g, &e));
        memset(g, 0, COUNT * sizeof *g);
        mr_assert(!mr_params_push(p, step, 1, &e));
    }
}

/* Kills, at random moments, workers that push all the time. The other workers go on. */
static void a_server_survives_workers_killed_in_mid_push(void **state)
{
    (void)state;
    enum { VICTIMS = 5 };
    int down[2];
    pid_t pids[VICTIMS];
    assert_int_equal(pipe(down), 0);
    for (int i = 0; i < VICTIMS; i++) { /* forks before this process has threads */
        pids[i] = fork();
        if (!pids[i]) push_until_killed(down[0]);
    }
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, COUNT, COUNT);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_ASYNC, 0, 1);
    rig_ps_start(&ps);
    for (int i = 0; i < VICTIMS; i++) {
        struct mr_update_counts c, now;
        mr_update_counts(ps.update, &c);
        tell_path(down[1]);
        do {
            mr_clock_sleep(MR_MS);
            mr_update_counts(ps.update, &now);
        } while (now.applied < c.applied + 3);
    }
    for (int i = 0; i < VICTIMS; i++) {
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
        mr_clock_sleep((mr_duration)i * MR_MS);
    }
    struct mr_shard_counts s;
    mr_time until = SOON;
    do {
        mr_clock_sleep(MR_MS);
        mr_shard_counts(ps.shard, &s);
    } while (s.clients && mr_clock_now() < until);
    assert_int_equal(s.clients, 0);
    const char *path = NULL;
    assert_int_equal(mr_transport_socket(&path, NULL), MR_OK);
    struct mr_place at = {.address = "", .node = "n1", .socket = path};
    struct mr_params *p = rig_connect(&at, 1, COUNT, 3, false);
    struct mr_params_view v;
    assert_int_equal(mr_params_pull(p, 0, SOON, &v, NULL), MR_OK);
    mr_params_close(&p);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
    (void)(close(down[0]) + close(down[1]));
}

/* ---- peers that do not keep to the rules ------------------------------------------------------*/

static struct mr_transport_hello hello_of(uint64_t count)
{
    struct mr_transport_hello h = {
        .kind = MR_TRANSPORT_WORKER, .parts = 1, .from = 1, .incarnation = 1, .count = count};
    mr_transport_hello_fill(&h, "t1-1");
    return h;
}

static int greet(const struct mr_transport_hello *h, int fd, int *socket, int fds[MR_TRANSPORT_FDS])
{
    const char *path = NULL;
    assert_int_equal(mr_transport_socket(&path, NULL), MR_OK);
    struct mr_transport_admission w;
    struct mr_error e;
    int err = mr_transport_connect(path, h, fd, SOON, &w, fds, socket, &e);
    return err;
}

static int refused(const struct mr_transport_hello *h, int fd)
{
    int s = -1, fds[MR_TRANSPORT_FDS];
    int err = greet(h, fd, &s, fds);
    assert_true(err != MR_OK);
    return err;
}

static void a_hello_is_checked(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, COUNT, COUNT);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_ASYNC, 0, 1);
    struct mr_transport_hello h = hello_of(COUNT);
    assert_int_equal(refused(&h, -1), MR_EFORMAT); /* the message has no memory descriptor */
    int plain_fd = memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(plain_fd, (off_t)mr_client_bytes(COUNT, false)), 0);
    /* The memory is refused, because it is not sealed against shrinking. */
    assert_int_equal(refused(&h, plain_fd), MR_EPERM);
    (void)close(plain_fd);
    int small = -1;
    void *map = NULL;
    assert_int_equal(mr_transport_make("m", 4096, true, &small, &map, NULL), MR_OK);
    assert_int_equal(refused(&h, small), MR_EPERM);
    h.from = MR_TRAIN_WORKERS_MAX;
    assert_int_equal(refused(&h, small), MR_EINVAL);
    h = hello_of(COUNT);
    h.index = 1;
    assert_int_equal(refused(&h, small), MR_ENOENT);
    h = hello_of(COUNT);
    h.kind = 77;
    assert_int_equal(refused(&h, small), MR_EFORMAT);
    h = hello_of(COUNT);
    h.protocol = 9;
    assert_int_equal(refused(&h, small), MR_EFORMAT);
    h = hello_of(COUNT);
    h.secret[3] ^= 1;
    assert_int_equal(refused(&h, small), MR_EAUTH);
    h = hello_of(COUNT);
    memset(h.session, 'x', sizeof h.session);
    assert_int_equal(refused(&h, small), MR_EFORMAT);
    (void)munmap(map, 4096);
    (void)close(small);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
}

/* A client writes arbitrary bytes into the shared memory that it may write. */
static void nonsense_in_shared_memory_does_no_harm(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, COUNT, COUNT);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_SYNC, 2, 1);
    rig_ps_start(&ps);
    uint64_t bytes = mr_client_bytes(COUNT, false);
    int fd = -1, s = -1, fds[MR_TRANSPORT_FDS];
    void *map = NULL;
    assert_int_equal(mr_transport_make("m", bytes, true, &fd, &map, NULL), MR_OK);
    struct mr_transport_hello h = hello_of(COUNT);
    assert_int_equal(greet(&h, fd, &s, fds), MR_OK);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    assert_true(page == MAP_FAILED); /* the server's memory cannot be mapped for writing */
    struct mr_transport_bell *bell = NULL;
    assert_int_equal(mr_transport_map(fds[1], sizeof *bell, true, (void **)&bell, NULL), MR_OK);
    struct mr_client_line *line = map;
    struct mr_rng rng;
    mr_rng_init(&rng, 1);
    for (int i = 0; i < 3000; i++) {
        atomic_store(&line->pin, (uint32_t)mr_rng_next(&rng));
        atomic_store(&line->waits, (uint32_t)mr_rng_next(&rng));
        struct mr_client_push *p = &line->push[i % 2];
        atomic_store(&p->step, i % 3 ? (uint64_t)i : mr_rng_next(&rng) >> 40);
        atomic_store(&p->base_version, i % 5 ? mr_rng_below(&rng, 4) : mr_rng_next(&rng));
        atomic_store(&p->restore_epoch, i % 7 ? 0 : (uint32_t)mr_rng_next(&rng));
        atomic_store(&p->serial, (uint32_t)mr_rng_next(&rng));
        atomic_store(&bell->sleeps, (uint32_t)mr_rng_next(&rng));
        mr_transport_bell_ring(bell);
        if (!(i % 100)) mr_clock_sleep(MR_MS);
    }
    atomic_store(&line->pin, 0);
    (void)close(s);
    const char *path = NULL;
    assert_int_equal(mr_transport_socket(&path, NULL), MR_OK);
    struct mr_place at = {.address = "", .node = "n1", .socket = path};
    struct mr_params *p = rig_connect(&at, 1, COUNT, 7, false);
    struct mr_params_view v;
    assert_int_equal(mr_params_pull(p, 0, SOON, &v, NULL), MR_OK);
    mr_params_close(&p);
    (void)(close(fd) + close(fds[0]) + close(fds[1]));
    (void)munmap(map, bytes);
    (void)munmap(bell, sizeof *bell);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
}

static int teardown(void **state)
{
    (void)state;
    mr_transport_close();
    return 0;
}

int main(void)
{
    share_begin();
    const struct CMUnitTest tests[] = {
        /* The first two tests fork, so they run before this process has threads. */
        cmocka_unit_test(a_worker_notices_a_killed_server),
        cmocka_unit_test(a_server_survives_workers_killed_in_mid_push),
        cmocka_unit_test(a_hello_is_checked),
        cmocka_unit_test(nonsense_in_shared_memory_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
