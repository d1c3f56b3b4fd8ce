/* train/params over gRPC at a UNIX socket. The two sides have different node names, so they do not
 * share memory. */
#include "tests/unit/train/params_rig.h"

#define ADAM "{\"type\": \"adam\", \"learning_rate\": 0.01}"
#define COUNT 700000u /* so large that a shard has more than one chunk */

static struct rig_net net;

static void same_as_plain(uint64_t count)
{
    for (int sync = 0; sync < 2; sync++) {
        struct rig_plain plain;
        rig_plain_init(&plain, ADAM, count, count - 10);
        struct rig_ps ps[2];
        struct mr_place places[2];
        uint32_t workers = sync ? 2 : 1;
        for (uint32_t s = 0; s < 2; s++) {
            rig_ps_open(&ps[s], &plain, s, 2, sync ? MR_UPDATE_SYNC : MR_UPDATE_ASYNC, workers, 1);
            rig_ps_start(&ps[s]);
            places[s] =
                (struct mr_place){.address = net.address, .node = "another", .socket = "/none"};
        }
        struct rig_worker w[2];
        for (uint32_t i = 0; i < workers; i++)
            w[i] = (struct rig_worker){.places = places,
                .shards = 2,
                .index = i,
                .count = count,
                .steps = 8,
                .is_sync = sync,
                .is_remote = true};
        rig_workers_run(w, workers);
        if (sync)
            rig_plain_sync(&plain, workers, 8);
        else
            rig_plain_async(&plain, 8);
        for (uint32_t s = 0; s < 2; s++) {
            rig_ps_stop(&ps[s]);
            uint64_t first, n;
            mr_transport_slice(count, 2, s, &first, &n);
            assert_memory_equal(
                mr_shard_params(ps[s].shard), plain.params + first, n * sizeof(float));
        }
        for (uint32_t s = 0; s < 2; s++)
            rig_ps_close(&ps[s]);
        rig_plain_fini(&plain);
    }
}

static void results_are_those_of_shared_memory(void **state)
{
    (void)state;
    same_as_plain(COUNT);
    same_as_plain(500); /* the second shard is empty */
}

static void a_socket_that_is_not_there_falls_back_to_the_network(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, ADAM, 1000, 1000);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_ASYNC, 0, 1);
    rig_ps_start(&ps);
    struct mr_place at = {.address = net.address, .node = mr_transport_node(), .socket = "/none/s"};
    struct mr_params *p = rig_connect(&at, 1, 1000, 0, false);
    struct mr_params_counts c;
    mr_params_counts(p, &c);
    assert_int_equal(c.shards_remote, 1);
    struct mr_params_view v;
    assert_int_equal(mr_params_pull(p, 0, SOON, &v, NULL), MR_OK);
    assert_memory_equal(v.params, plain.params, 1000 * sizeof(float));
    mr_params_close(&p);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
}

struct publisher {
    struct mr_shard *shard;
    bool saw_wanted;
};

static void publish_when_wanted(void *ctx)
{
    struct publisher *p = ctx;
    for (int i = 0; i < 2000 && !p->saw_wanted; i++) {
        mr_clock_sleep(MR_MS);
        p->saw_wanted = mr_shard_is_wanted(p->shard);
    }
    memset(mr_shard_next(p->shard), 0, mr_shard_count(p->shard) * sizeof(float));
    mr_shard_publish(p->shard, 1);
}

static void waits_and_refusals_are_those_of_shared_memory(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, ADAM, 1000, 1000);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_ASYNC, 0, 1);
    struct mr_place at = {.address = net.address, .node = "another", .socket = ""};
    struct mr_params *p = rig_connect(&at, 1, 1000, 0, true);
    struct mr_params_view v;
    struct mr_error e = {0};
    assert_int_equal(mr_params_pull(p, 1, SHORTLY, &v, &e), MR_ETIMEOUT);
    struct publisher pub = {.shard = ps.shard};
    struct mr_thread *t = mr_thread_start("publish", publish_when_wanted, &pub);
    assert_int_equal(mr_params_pull(p, 1, SOON, &v, &e), MR_OK);
    mr_thread_join(&t);
    assert_true(pub.saw_wanted);
    assert_int_equal(v.version, 1);
    float *g = NULL;
    assert_int_equal(mr_params_buffer(p, SOON, &g, &e), MR_OK);
    assert_int_equal(mr_params_push(p, 1, 1, &e), MR_OK);
    /* The flush times out, because nothing applies the gradient. */
    assert_int_equal(mr_params_flush(p, SHORTLY, &e), MR_ETIMEOUT);
    mr_shard_restore(ps.shard, 3, 5, plain.params);
    assert_int_equal(mr_params_pull(p, 0, SOON, &v, &e), MR_EABORTED);
    mr_params_set_epoch(p, 4); /* the server has not reached this epoch yet */
    assert_int_equal(mr_params_pull(p, 0, SHORTLY, &v, &e), MR_ETIMEOUT);
    mr_params_set_epoch(p, 3);
    assert_int_equal(mr_params_pull(p, 0, SOON, &v, &e), MR_OK);
    mr_time until = SOON;
    int err;
    do { /* the push of epoch 0 may still be on its way to the server */
        assert_int_equal(mr_update_run(ps.update, 6, SHORTLY), MR_ETIMEOUT);
        err = mr_params_flush(p, SHORTLY, &e);
    } while (err == MR_ETIMEOUT && mr_clock_now() < until);
    assert_int_equal(err, MR_OK);
    struct mr_params_counts c;
    mr_params_counts(p, &c);
    assert_int_equal(c.dropped, 1);
    rig_ps_close(&ps);
    assert_int_equal(mr_params_pull(p, 0, SOON, &v, &e), MR_EAWAY);
    mr_params_close(&p);
    rig_plain_fini(&plain);
}

static int teardown(void **state)
{
    (void)state;
    rig_net_close(&net);
    mr_transport_close();
    return 0;
}

static int setup(void **state)
{
    (void)state;
    const struct mr_transport_options o = {.node = "n1"};
    mr_transport_configure(&o);
    rig_net_open(&net);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_shared_memory),
        cmocka_unit_test(a_socket_that_is_not_there_falls_back_to_the_network),
        cmocka_unit_test(waits_and_refusals_are_those_of_shared_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
