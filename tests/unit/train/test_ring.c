/* A ring of ranks over gRPC: how many messages a step may cost, and which error the ranks get when
 * one of them leaves, dies or is stopped. test_allreduce.c checks the results of the steps. */
#include "tests/unit/train/params_rig.h"

#include <signal.h>
#include <sys/wait.h>

#define SGD "{\"type\": \"sgd\", \"learning_rate\": 0.01}"
#define RANKS 3u
#define COUNT ((uint64_t)79512) /* 318 kB: the dense network of examples/mnist.json */
#define HEAD_BYTES 64u          /* limit of a message's bytes besides its numbers */

struct rank {
    const struct mr_place *places;
    uint32_t index, ranks;
    uint64_t count, steps;
    const struct mr_flag *stop;
    int err; /* error code of the last step */
    int out; /* descriptor of a pipe, written to after the tenth step; 0: none */
    struct mr_thread *thread;
};

static struct mr_reduce *open_rank(const struct rank *k)
{
    struct mr_nn_optim optim = rig_optim(SGD);
    uint64_t first, count;
    mr_transport_slice(k->count, k->ranks, k->index, &first, &count);
    float *params = mr_alloc((count + 1) * sizeof *params);
    struct mr_reduce_options o = {.session = "t1-3",
        .generation = 3,
        .rank = k->index,
        .ranks = k->ranks,
        .places = k->places,
        .count = k->count,
        .trainable_count = k->count,
        .optim = &optim,
        .params = params,
        .only_remote = true,
        .stop = k->stop};
    struct mr_reduce *r = NULL;
    struct mr_error e = {0};
    int err = mr_reduce_open(&o, SOON, &r, &e);
    if (err) print_error("rank %u: %s\n", k->index, e.text);
    mr_assert(!err);
    mr_release(params);
    return r;
}

static void step_on(struct rank *k, struct mr_reduce *r)
{
    struct mr_error e = {0};
    k->err = MR_OK;
    for (uint64_t step = 1; step <= k->steps && !k->err; step++) {
        mr_reduce_buffer(r)[0] = 1;
        k->err = mr_reduce_step(r, SOON, &e);
        if (k->err && k->err != MR_EAWAY) print_error("rank %u: %s\n", k->index, e.text);
        if (step == 10 && k->out) mr_assert(write(k->out, "!", 1) == 1);
    }
}

static void rank_run(void *ctx)
{
    struct rank *k = ctx;
    struct mr_reduce *r = open_rank(k);
    step_on(k, r);
    mr_reduce_close(&r);
}

static void places_fill(struct mr_place *places, uint32_t ranks, const char *address)
{
    for (uint32_t i = 0; i < ranks; i++)
        places[i] = (struct mr_place){.address = address, .node = "n1", .socket = ""};
}

/* Runs all ranks in this process. Each rank makes its own number of steps. */
static void ring_run(struct rank *k, uint32_t ranks, const char *address)
{
    struct mr_place places[RANKS];
    places_fill(places, ranks, address);
    for (uint32_t i = 0; i < ranks; i++) {
        k[i].places = places;
        k[i].index = i;
        k[i].ranks = ranks;
        k[i].thread = mr_thread_start("rank", rank_run, &k[i]);
    }
    for (uint32_t i = 0; i < ranks; i++)
        mr_thread_join(&k[i].thread);
}

struct traffic {
    uint64_t steps, streams, messages, bytes, wakes;
};

static struct traffic traffic_now(void)
{
    struct mr_transport_traffic *t = mr_transport_traffic();
    return (struct traffic){atomic_load(&t->ring_steps), atomic_load(&t->ring_streams),
        atomic_load(&t->ring_messages), atomic_load(&t->ring_bytes), atomic_load(&t->ring_wakes)};
}

/* Checks the cost of `steps` steps. In each round, a rank sends one message for each of the
 * `pieces` of a slice, and the network thread wakes the rank at most once, however slow the machine
 * is. Each rank has one stream to the next rank, as long as the ring exists. */
static void costs(uint32_t ranks, uint64_t count, uint64_t steps, uint64_t pieces)
{
    struct rig_net net;
    struct rank k[RANKS] = {0};
    rig_net_open(&net);
    for (uint32_t i = 0; i < ranks; i++)
        k[i] = (struct rank){.count = count, .steps = steps};
    struct traffic a = traffic_now();
    ring_run(k, ranks, net.address);
    struct traffic b = traffic_now();
    for (uint32_t i = 0; i < ranks; i++)
        assert_int_equal(k[i].err, MR_OK);
    /* Opening the ring takes one all-gather; each step takes a reduce-scatter and an all-gather. */
    uint64_t rounds = ranks * (ranks - 1) * (1 + 2 * steps);
    uint64_t numbers = (ranks - 1) * count * (1 + 2 * steps);
    assert_int_equal(b.steps - a.steps, ranks * (1 + steps));
    assert_int_equal(b.streams - a.streams, ranks);
    assert_int_equal(b.messages - a.messages, rounds * pieces);
    assert_true(b.wakes - a.wakes <= rounds);
    assert_true(b.bytes - a.bytes >= numbers * sizeof(float));
    assert_true(b.bytes - a.bytes <= numbers * sizeof(float) + rounds * pieces * HEAD_BYTES);
    rig_net_close(&net);
}

static void a_round_is_one_message_and_at_most_one_wake(void **state)
{
    (void)state;
    costs(2, COUNT, 100, 1);
    costs(3, COUNT, 30, 1);
    costs(2, 1200000, 5, 3); /* slices of 2.4 MB travel in messages of 1 MiB */
}

static void those_who_wait_for_a_rank_that_left_hear_of_it(void **state)
{
    (void)state;
    struct rig_net net;
    rig_net_open(&net);
    for (uint32_t leaver = 0; leaver < RANKS; leaver++) {
        struct rank k[RANKS] = {0};
        for (uint32_t i = 0; i < RANKS; i++)
            k[i] = (struct rank){.count = 5000, .steps = i == leaver ? 20 : 1000000};
        ring_run(k, RANKS, net.address);
        for (uint32_t i = 0; i < RANKS; i++)
            assert_int_equal(k[i].err, i == leaver ? MR_OK : MR_EAWAY);
    }
    rig_net_close(&net);
}

static void a_rank_that_leaves_takes_no_slice_along(void **state)
{
    (void)state;
    struct rig_net net;
    rig_net_open(&net);
    /* All ranks leave after the same step, and that step does not fail. */
    for (uint32_t i = 0; i < 20; i++) {
        struct rank k[RANKS] = {{.count = 300000, .steps = 2}, {.count = 300000, .steps = 2},
            {.count = 300000, .steps = 2}};
        ring_run(k, RANKS, net.address);
        for (uint32_t j = 0; j < RANKS; j++)
            assert_int_equal(k[j].err, MR_OK);
    }
    rig_net_close(&net);
}

static void a_stop_ends_a_step_that_waits(void **state)
{
    (void)state;
    struct rig_net net;
    struct mr_flag stop = {0};
    struct mr_place places[2];
    int told[2];
    rig_net_open(&net);
    assert_false(pipe(told));
    places_fill(places, 2, net.address);
    struct rank k[2] = {
        {.places = places, .index = 0, .ranks = 2, .count = 5000, .steps = 10, .out = told[1]},
        {.places = places, .index = 1, .ranks = 2, .count = 5000, .steps = 11, .stop = &stop}};
    /* Rank 1 waits in its eleventh step until it is stopped. */
    k[1].thread = mr_thread_start("rank", rank_run, &k[1]);
    struct mr_reduce *r = open_rank(&k[0]);
    step_on(&k[0], r);
    assert_int_equal(k[0].err, MR_OK);
    mr_flag_set(&stop, true);
    mr_thread_join(&k[1].thread);
    assert_int_equal(k[1].err, MR_ECANCELED);
    mr_reduce_close(&r);
    (void)(close(told[0]) + close(told[1]));
    rig_net_close(&net);
}

/* ---- processes --------------------------------------------------------------------------------*/

static void process_run(int in, int out, uint32_t index)
{
    struct rig_net net;
    char addresses[RANKS][64];
    rig_net_open(&net);
    char mine[64] = {0};
    (void)snprintf(mine, sizeof mine, "%s", net.address);
    mr_assert(write(out, mine, sizeof mine) == sizeof mine);
    mr_assert(read(in, addresses, sizeof addresses) == sizeof addresses);
    struct mr_place places[RANKS];
    for (uint32_t i = 0; i < RANKS; i++)
        places[i] = (struct mr_place){.address = addresses[i], .node = "n1", .socket = ""};
    struct rank k = {.places = places,
        .index = index,
        .ranks = RANKS,
        .count = COUNT,
        .steps = UINT64_MAX,
        .out = out};
    rank_run(&k);
    rig_net_close(&net);
    _exit(k.err == MR_EAWAY ? 42 : 1);
}

static void kill_one(uint32_t victim)
{
    int up[RANKS][2], down[RANKS][2];
    pid_t pids[RANKS];
    char addresses[RANKS][64];
    for (uint32_t i = 0; i < RANKS; i++)
        assert_false(pipe(up[i]) || pipe(down[i]));
    for (uint32_t i = 0; i < RANKS; i++) {
        pids[i] = fork();
        if (!pids[i]) process_run(down[i][0], up[i][1], i);
        assert_true(pids[i] > 0);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(read(up[i][0], addresses[i], sizeof addresses[i]), sizeof addresses[i]);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(write(down[i][1], addresses, sizeof addresses), sizeof addresses);
    char stepping = 0;
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(read(up[i][0], &stepping, 1), 1);
    assert_int_equal(kill(pids[victim], SIGKILL), 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        if (i == victim)
            assert_true(WIFSIGNALED(status));
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
        (void)(close(up[i][0]) + close(up[i][1]) + close(down[i][0]) + close(down[i][1]));
    }
    /* A killed process leaves its socket file, unix:DIR/s. */
    char *slash = strrchr(addresses[victim], '/');
    (void)unlink(addresses[victim] + 5);
    *slash = 0;
    (void)rmdir(addresses[victim] + 5);
}

static void the_others_hear_of_a_killed_rank(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < RANKS; victim++)
        kill_one(victim);
}

int main(void)
{
    const struct mr_transport_options o = {.node = "n1"};
    mr_transport_configure(&o);
    const struct CMUnitTest tests[] = {
        /* This test forks, so it runs before any thread is started. */
        cmocka_unit_test(the_others_hear_of_a_killed_rank),
        cmocka_unit_test(a_round_is_one_message_and_at_most_one_wake),
        cmocka_unit_test(those_who_wait_for_a_rank_that_left_hear_of_it),
        cmocka_unit_test(a_rank_that_leaves_takes_no_slice_along),
        cmocka_unit_test(a_stop_ends_a_step_that_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
