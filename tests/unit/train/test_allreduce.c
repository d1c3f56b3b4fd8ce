/* train/allreduce: groups of threads and of processes, in one segment of shared memory and as a
 * ring. The results are compared with those of sequential training. */
#include "tests/unit/train/params_rig.h"

#include <signal.h>
#include <sys/wait.h>

#define ADAM "{\"type\": \"adam\", \"learning_rate\": 0.01}"
#define RANKS 4u

struct rank {
    const struct mr_place *places;
    uint32_t index, ranks;
    uint64_t count, steps;
    bool is_remote;
    const struct mr_flag *stop;
    const float *params; /* all parameters before the first step */
    float *out, *slots[MR_NN_SLOTS_MAX];
    struct mr_thread *thread;
};

static struct mr_reduce *open_rank(const struct rank *k, struct mr_error *e)
{
    struct mr_nn_optim optim = rig_optim(ADAM);
    uint64_t first, count;
    mr_transport_slice(k->count, k->ranks, k->index, &first, &count);
    struct mr_reduce_options o = {.session = "t1-2",
        .generation = 3,
        .rank = k->index,
        .ranks = k->ranks,
        .places = k->places,
        .count = k->count,
        .trainable_count = k->count - 10,
        .optim = &optim,
        .params = k->params + first,
        .stop = k->stop,
        .only_remote = k->is_remote};
    struct mr_reduce *r = NULL;
    int err = mr_reduce_open(&o, SOON, &r, e);
    if (err) print_error("rank %u: %s\n", k->index, e->text);
    return r;
}

static void rank_run(void *ctx)
{
    struct rank *k = ctx;
    struct mr_error e = {0};
    struct mr_reduce *r = open_rank(k, &e);
    mr_assert(r);
    for (uint64_t step = 1; step <= k->steps; step++) {
        rig_gradient(mr_reduce_params(r), k->count, k->index, step, mr_reduce_buffer(r));
        int err = mr_reduce_step(r, SOON, &e);
        if (err) print_error("rank %u step %u: %s\n", k->index, (unsigned)step, e.text);
        mr_assert(!err);
    }
    mr_assert(mr_reduce_version(r) == k->steps);
    struct mr_reduce_counts c;
    mr_reduce_counts(r, &c);
    mr_assert(c.is_remote == k->is_remote);
    memcpy(k->out, mr_reduce_params(r), k->count * sizeof(float));
    mr_reduce_close(&r);
}

/* Applies the steps sequentially. As in the ring, the sum of slice s begins at rank s + 1 and ends
 * at rank s, so that rounding is the same. */
static void plain_reduce(struct rig_plain *p, uint32_t ranks, uint64_t steps)
{
    float *g[RANKS];
    for (uint32_t i = 0; i < ranks; i++)
        g[i] = mr_alloc(p->count * sizeof(float));
    for (uint64_t step = 1; step <= steps; step++) {
        for (uint32_t i = 0; i < ranks; i++)
            rig_gradient(p->params, p->count, i, step, g[i]);
        for (uint32_t s = 0; s < ranks; s++) {
            const float *order[RANKS];
            for (uint32_t i = 0; i < ranks; i++)
                order[i] = g[(s + 1 + i) % ranks];
            uint64_t first, count;
            mr_transport_slice(p->count, ranks, s, &first, &count);
            rig_plain_mean(p, order, ranks, first, count, step);
        }
    }
    for (uint32_t i = 0; i < ranks; i++)
        mr_release(g[i]);
}

static void same_as_plain(uint32_t ranks, uint64_t count, bool is_remote, const char *address)
{
    const char *path = NULL;
    assert_int_equal(mr_transport_socket(&path, NULL), MR_OK);
    struct mr_place places[RANKS];
    struct rank k[RANKS];
    struct rig_plain plain;
    rig_plain_init(&plain, ADAM, count, count - 10);
    for (uint32_t i = 0; i < ranks; i++) {
        places[i] = (struct mr_place){
            .address = address ? address : "", .node = mr_transport_node(), .socket = path};
        k[i] = (struct rank){.places = places,
            .index = i,
            .ranks = ranks,
            .count = count,
            .steps = 10,
            .is_remote = is_remote,
            .params = plain.params,
            .out = mr_alloc(count * sizeof(float))};
    }
    float *initial = mr_copy(plain.params, count * sizeof(float));
    for (uint32_t i = 0; i < ranks; i++) {
        k[i].params = initial;
        k[i].thread = mr_thread_start("rank", rank_run, &k[i]);
    }
    plain_reduce(&plain, ranks, 10);
    for (uint32_t i = 0; i < ranks; i++)
        mr_thread_join(&k[i].thread);
    for (uint32_t i = 0; i < ranks; i++) {
        assert_memory_equal(k[i].out, plain.params, count * sizeof(float));
        mr_release(k[i].out);
    }
    mr_release(initial);
    rig_plain_fini(&plain);
}

static void ranks_of_a_node_get_the_plain_result(void **state)
{
    (void)state;
    for (uint32_t ranks = 1; ranks <= RANKS; ranks++)
        same_as_plain(ranks, 100000, false, NULL);
    same_as_plain(4, 1500, false, NULL); /* two of the four slices are empty */
}

/* In step 1 only rank 0 has examples. In step 2 no rank has examples. */
static void pass_run(void *ctx)
{
    struct rank *k = ctx;
    struct mr_error e = {0};
    struct mr_reduce *r = open_rank(k, &e);
    mr_assert(r);
    for (uint64_t step = 1; step <= 2; step++) {
        if (step == 1 && !k->index) {
            rig_gradient(mr_reduce_params(r), k->count, 0, 1, mr_reduce_buffer(r));
        } else {
            memset(mr_reduce_buffer(r), 0, k->count * sizeof(float));
            mr_reduce_pass(r);
        }
        mr_assert(!mr_reduce_step(r, SOON, &e));
        mr_assert(mr_reduce_version(r) == 1);
    }
    memcpy(k->out, mr_reduce_params(r), k->count * sizeof(float));
    mr_reduce_close(&r);
}

static void does_not_count(bool is_remote, const char *address)
{
    enum { COUNT = 5000 };
    const char *path = NULL;
    assert_int_equal(mr_transport_socket(&path, NULL), MR_OK);
    struct mr_place places[3];
    struct rank k[3];
    struct rig_plain plain;
    rig_plain_init(&plain, ADAM, COUNT, COUNT - 10);
    float *initial = mr_copy(plain.params, COUNT * sizeof(float));
    float *gradient = mr_alloc(COUNT * sizeof(float));
    for (uint32_t i = 0; i < 3; i++) {
        places[i] =
            (struct mr_place){.address = address, .node = mr_transport_node(), .socket = path};
        k[i] = (struct rank){.places = places,
            .index = i,
            .ranks = 3,
            .count = COUNT,
            .is_remote = is_remote,
            .params = initial,
            .out = mr_alloc(COUNT * sizeof(float))};
    }
    for (uint32_t i = 0; i < 3; i++)
        k[i].thread = mr_thread_start("rank", pass_run, &k[i]);
    rig_gradient(plain.params, COUNT, 0, 1, gradient);
    const float *one[1] = {gradient};
    rig_plain_mean(&plain, one, 1, 0, COUNT, 1);
    for (uint32_t i = 0; i < 3; i++) {
        mr_thread_join(&k[i].thread);
        assert_memory_equal(k[i].out, plain.params, COUNT * sizeof(float));
        mr_release(k[i].out);
    }
    mr_release(gradient);
    mr_release(initial);
    rig_plain_fini(&plain);
}

static void a_rank_without_examples_does_not_count(void **state)
{
    (void)state;
    does_not_count(false, "");
}

static void nor_does_it_in_a_ring(void **state)
{
    (void)state;
    struct rig_net net;
    rig_net_open(&net);
    does_not_count(true, net.address);
    rig_net_close(&net);
}

static void a_ring_gets_the_same_result(void **state)
{
    (void)state;
    struct rig_net net;
    rig_net_open(&net);
    for (uint32_t ranks = 1; ranks <= RANKS; ranks++)
        same_as_plain(ranks, 100000, true, net.address);
    same_as_plain(2, 1200000, true, net.address);
    same_as_plain(4, 1500, true, net.address);
    rig_net_close(&net);
}

/* Runs in one process for each rank. The process sends the path of its socket, receives the path of
 * rank 0's socket, and steps until the group ends. */
static void process_run(int in, int out, uint32_t index, uint32_t ranks, const float *params)
{
    struct mr_transport_options o = {.node = "n1"};
    mr_transport_configure(&o);
    const char *path = NULL;
    mr_assert(!mr_transport_socket(&path, NULL));
    char text[96] = {0}, socket0[96] = {0};
    (void)snprintf(text, sizeof text, "%s", path);
    mr_assert(write(out, text, sizeof text) == sizeof text);
    mr_assert(read(in, socket0, sizeof socket0) == sizeof socket0);
    struct mr_place places[RANKS];
    for (uint32_t i = 0; i < ranks; i++)
        places[i] = (struct mr_place){.node = "n1", .socket = socket0};
    struct rank k = {
        .places = places, .index = index, .ranks = ranks, .count = 50000, .params = params};
    struct mr_error e = {0};
    struct mr_reduce *r = open_rank(&k, &e);
    mr_assert(r);
    int err = MR_OK;
    for (uint64_t step = 1; !err; step++) {
        rig_gradient(mr_reduce_params(r), k.count, index, step, mr_reduce_buffer(r));
        err = mr_reduce_step(r, SOON, &e);
        if (step == 10) mr_assert(write(out, "!", 1) == 1);
    }
    mr_reduce_close(&r);
    mr_transport_close();
    _exit(err == MR_EAWAY ? 42 : 1);
}

static void kill_one(uint32_t victim)
{
    float *params = rig_vector(50000, 1);
    int up[RANKS][2], down[RANKS][2];
    pid_t pids[RANKS];
    for (uint32_t i = 0; i < 3; i++)
        assert_false(pipe(up[i]) || pipe(down[i]));
    for (uint32_t i = 0; i < 3; i++) {
        pids[i] = fork();
        if (!pids[i]) process_run(down[i][0], up[i][1], i, 3, params);
        assert_true(pids[i] > 0);
    }
    char sockets[RANKS][96];
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(read(up[i][0], sockets[i], sizeof sockets[i]), sizeof sockets[i]);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(write(down[i][1], sockets[0], sizeof sockets[0]), sizeof sockets[0]);
    char stepping = 0;
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(read(up[i][0], &stepping, 1), 1);
    mr_time begun = mr_clock_now();
    assert_int_equal(kill(pids[victim], SIGKILL), 0);
    for (uint32_t i = 0; i < 3; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        if (i == victim)
            assert_true(WIFSIGNALED(status));
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
        (void)(close(up[i][0]) + close(up[i][1]) + close(down[i][0]) + close(down[i][1]));
    }
    assert_true(mr_clock_now() - begun < 3 * MR_SECOND);
    (void)unlink(sockets[victim]); /* a killed process leaves its socket file */
    *strrchr(sockets[victim], '/') = 0;
    (void)rmdir(sockets[victim]);
    mr_release(params);
}

static void the_others_notice_a_killed_rank(void **state)
{
    (void)state;
    kill_one(2);
    kill_one(0);
}

/* Opens the group, makes no step, and closes the group when the flag is set. */
static void rank_idle(void *ctx)
{
    const struct rank *k = ctx;
    struct mr_error e = {0};
    struct mr_reduce *r = open_rank(k, &e);
    mr_assert(r);
    while (!mr_flag_is_set(k->stop))
        mr_clock_sleep(MR_MS);
    mr_reduce_close(&r);
}

static void stop_later(void *ctx)
{
    mr_clock_sleep(30 * MR_MS);
    mr_flag_set(ctx, true);
}

static void the_stop_flag_ends_a_step_that_waits(void **state)
{
    (void)state;
    const char *path = NULL;
    assert_int_equal(mr_transport_socket(&path, NULL), MR_OK);
    struct mr_place places[2] = {{.node = "n1", .socket = path}, {.node = "n1", .socket = path}};
    float *params = rig_vector(5000, 1);
    struct mr_flag stop = {0};
    struct rank k[2] = {
        {.places = places, .index = 0, .ranks = 2, .count = 5000, .stop = &stop, .params = params},
        {.places = places, .index = 1, .ranks = 2, .count = 5000, .stop = &stop, .params = params}};
    struct mr_error e = {0};
    struct mr_thread *other = mr_thread_start("rank", rank_idle, &k[1]);
    struct mr_reduce *r = open_rank(&k[0], &e);
    assert_non_null(r);
    struct mr_thread *t = mr_thread_start("stop", stop_later, &stop);
    assert_int_equal(mr_reduce_step(r, SOON, &e), MR_ECANCELED);
    mr_thread_join(&t);
    mr_thread_join(&other);
    mr_reduce_close(&r);
    mr_release(params);
}

static int teardown(void **state)
{
    (void)state;
    mr_transport_close();
    return 0;
}

int main(void)
{
    const struct mr_transport_options o = {.node = "n1"};
    mr_transport_configure(&o);
    const struct CMUnitTest tests[] = {
        /* This test forks, so it runs before any thread is started. */
        cmocka_unit_test(the_others_notice_a_killed_rank),
        cmocka_unit_test(ranks_of_a_node_get_the_plain_result),
        cmocka_unit_test(a_rank_without_examples_does_not_count),
        cmocka_unit_test(nor_does_it_in_a_ring),
        cmocka_unit_test(a_ring_gets_the_same_result),
        cmocka_unit_test(the_stop_flag_ends_a_step_that_waits),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
