/* train/params: shards, clients and update rules in shared memory, between threads of one
 * process. */
#include "tests/unit/train/params_rig.h"

#define ADAM "{\"type\": \"adam\", \"learning_rate\": 0.01}"
#define SGD "{\"type\": \"sgd\", \"learning_rate\": 0.1, \"momentum\": 0.9}"
#define COUNT 300000u /* more numbers than one piece of the thread pool's work has */

static struct mr_place here(void)
{
    const char *path = NULL;
    assert_int_equal(mr_transport_socket(&path, NULL), MR_OK);
    return (struct mr_place){.address = "", .node = mr_transport_node(), .socket = path};
}

static void assert_same(struct rig_ps *ps, uint32_t shards, const struct rig_plain *plain)
{
    for (uint32_t s = 0; s < shards; s++) {
        rig_ps_stop(&ps[s]);
        uint64_t first, count;
        mr_transport_slice(plain->count, shards, s, &first, &count);
        assert_memory_equal(
            mr_shard_params(ps[s].shard), plain->params + first, count * sizeof(float));
        float *const *slots = mr_update_slots(ps[s].update);
        for (uint32_t i = 0; i < mr_nn_optim_slots(&plain->optim); i++)
            assert_memory_equal(slots[i], plain->slots[i] + first, count * sizeof(float));
    }
}

static void async_updates(uint32_t shards, uint32_t threads)
{
    struct rig_plain plain;
    rig_plain_init(&plain, ADAM, COUNT, COUNT - 100);
    struct rig_ps ps[4];
    struct mr_place places[4];
    for (uint32_t s = 0; s < shards; s++) {
        rig_ps_open(&ps[s], &plain, s, shards, MR_UPDATE_ASYNC, 0, threads);
        rig_ps_start(&ps[s]);
        places[s] = here();
    }
    struct rig_worker w = {.places = places, .shards = shards, .count = COUNT, .steps = 30};
    rig_workers_run(&w, 1);
    rig_plain_async(&plain, 30);
    assert_same(ps, shards, &plain);
    struct mr_update_counts c;
    mr_update_counts(ps[0].update, &c);
    assert_int_equal(c.applied, 30);
    assert_int_equal(c.updates, 30);
    assert_int_equal(c.examples, 30 * 64);
    for (uint32_t s = 0; s < shards; s++)
        rig_ps_close(&ps[s]);
    rig_plain_fini(&plain);
}

static void asynchronous_updates_are_those_of_one_after_another(void **state)
{
    (void)state;
    async_updates(1, 1);
    async_updates(3, 1);
    async_updates(1, 3);
}

static void sync_updates(uint32_t shards, uint64_t count)
{
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, count, count);
    struct rig_ps ps[4];
    struct mr_place places[4];
    for (uint32_t s = 0; s < shards; s++) {
        rig_ps_open(&ps[s], &plain, s, shards, MR_UPDATE_SYNC, 3, 0);
        rig_ps_start(&ps[s]);
        places[s] = here();
    }
    struct rig_worker w[3];
    for (uint32_t i = 0; i < 3; i++)
        w[i] = (struct rig_worker){.places = places,
            .shards = shards,
            .index = i,
            .count = count,
            .steps = 12,
            .is_sync = true};
    rig_workers_run(w, 3);
    rig_plain_sync(&plain, 3, 12);
    assert_same(ps, shards, &plain);
    for (uint32_t s = 0; s < shards; s++) {
        assert_int_equal(mr_shard_version(ps[s].shard), 12);
        rig_ps_close(&ps[s]);
    }
    rig_plain_fini(&plain);
}

static void synchronous_updates_are_means_in_order_of_worker(void **state)
{
    (void)state;
    sync_updates(1, COUNT);
    sync_updates(2, COUNT);
}

static void shards_of_a_short_vector_may_be_empty(void **state)
{
    (void)state;
    sync_updates(4, 1500);
}

static void push(struct mr_params *p, uint64_t step)
{
    float *g = NULL;
    struct mr_error e = {0};
    assert_int_equal(mr_params_buffer(p, SOON, &g, &e), MR_OK);
    g[0] = 1;
    assert_int_equal(mr_params_push(p, step, 1, &e), MR_OK);
}

static void pull(struct mr_params *p, struct mr_params_view *v)
{
    struct mr_error e = {0};
    assert_int_equal(mr_params_pull(p, 0, SOON, v, &e), MR_OK);
}

static void what_is_stale_lost_or_repeated_is_counted_and_dropped(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, 5000, 5000);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_SYNC, 1, 1);
    struct mr_place at = here();
    struct mr_params *a = rig_connect(&at, 1, 5000, 0, false);
    struct mr_params *b = rig_connect(&at, 1, 5000, 1, false);
    struct mr_params_view v;
    pull(a, &v);
    pull(b, &v);
    push(a, 1);
    assert_int_equal(mr_update_run(ps.update, 1, SHORTLY), MR_OK);
    push(b, 1); /* the gradient was computed at version 0, so it is stale */
    push(a, 1); /* worker a repeats its gradient of step 1 */
    assert_int_equal(mr_update_run(ps.update, 2, SHORTLY), MR_ETIMEOUT);
    struct mr_update_counts c;
    struct mr_shard_counts s;
    mr_update_counts(ps.update, &c);
    mr_shard_counts(ps.shard, &s);
    assert_int_equal(c.stale, 1);
    assert_int_equal(s.repeats, 1);
    /* Drops the gradients of worker a, whose incarnation is 10. */
    mr_shard_revoke(ps.shard, 0, 11);
    pull(a, &v);
    push(a, 2);
    assert_int_equal(mr_update_run(ps.update, 2, SHORTLY), MR_ETIMEOUT);
    mr_update_restore(ps.update, 1, 7, plain.params, NULL);
    push(b, 2); /* the gradient belongs to restore epoch 0, which is over */
    assert_int_equal(mr_update_run(ps.update, 8, SHORTLY), MR_ETIMEOUT);
    mr_update_counts(ps.update, &c);
    assert_int_equal(c.lost, 2);
    struct mr_error e = {0};
    assert_int_equal(mr_params_pull(b, 0, SOON, &v, &e), MR_EABORTED);
    mr_params_set_epoch(b, 1);
    pull(b, &v);
    assert_int_equal(v.version, 7);
    push(b, 3);
    assert_int_equal(mr_update_run(ps.update, 8, SHORTLY), MR_OK);
    assert_int_equal(mr_params_flush(b, SOON, &e), MR_OK);
    struct mr_params_counts pc;
    mr_params_counts(b, &pc);
    assert_int_equal(pc.dropped, 2);
    mr_params_close(&a);
    mr_params_close(&b);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
}

static void fewer_live_workers_are_enough(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, 100, 100);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_SYNC, 3, 1);
    struct mr_place at = here();
    struct mr_params *a = rig_connect(&at, 1, 100, 0, false);
    struct mr_params_view v;
    pull(a, &v);
    push(a, 1);
    assert_int_equal(mr_update_run(ps.update, 1, SHORTLY), MR_ETIMEOUT);
    mr_update_set_live(ps.update, 1);
    assert_int_equal(mr_update_run(ps.update, 1, SHORTLY), MR_OK);
    mr_params_close(&a);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
}

static void push_nothing(struct mr_params *p, uint64_t step)
{
    float *grads = NULL;
    struct mr_error e = {0};
    assert_int_equal(mr_params_buffer(p, SOON, &grads, &e), MR_OK);
    assert_int_equal(mr_params_push(p, step, 0, &e), MR_OK);
}

static void who_has_nothing_is_not_waited_for(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, 100, 100);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_SYNC, 2, 1);
    struct mr_place at = here();
    struct mr_params *a = rig_connect(&at, 1, 100, 0, false);
    struct mr_params *b = rig_connect(&at, 1, 100, 1, false);
    struct mr_params_view v;
    pull(a, &v);
    pull(b, &v);
    push_nothing(a, 1);
    push_nothing(b, 1);
    /* No worker has a gradient, so there is nothing to apply. */
    assert_int_equal(mr_update_run(ps.update, 1, SHORTLY), MR_ETIMEOUT);
    push(a, 2);
    assert_int_equal(mr_update_run(ps.update, 1, SHORTLY), MR_OK);
    pull(a, &v);
    /* Worker b said that it has no gradient for version 0. It has not said so for version 1. */
    push(a, 3);
    assert_int_equal(mr_update_run(ps.update, 2, SHORTLY), MR_ETIMEOUT);
    pull(b, &v);
    push_nothing(b, 2);
    assert_int_equal(mr_update_run(ps.update, 2, SHORTLY), MR_OK);
    pull(a, &v);
    pull(b, &v);
    push_nothing(b, 3);
    push(b, 4); /* worker b pushes a gradient after all */
    assert_int_equal(mr_update_run(ps.update, 3, SHORTLY), MR_ETIMEOUT);
    push(a, 4);
    assert_int_equal(mr_update_run(ps.update, 3, SHORTLY), MR_OK);
    struct mr_update_counts c;
    mr_update_counts(ps.update, &c);
    assert_int_equal(c.applied, 4);
    assert_int_equal(c.stale, 0);
    mr_params_close(&a);
    mr_params_close(&b);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
}

static void a_view_stays_as_it_is_while_others_are_published(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, 20000, 20000);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_ASYNC, 0, 1);
    struct mr_place at = here();
    struct mr_params *a = rig_connect(&at, 1, 20000, 0, false);
    struct mr_params_view v;
    pull(a, &v);
    for (uint64_t version = 1; version < 6; version++) {
        float *next = mr_shard_next(ps.shard);
        for (uint32_t i = 0; i < 20000; i++)
            next[i] = (float)version;
        mr_shard_publish(ps.shard, version);
    }
    assert_memory_equal(v.params, plain.params, 20000 * sizeof(float));
    pull(a, &v);
    assert_int_equal(v.version, 5);
    assert_true(v.params[19999] == 5);
    mr_params_close(&a);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
}

static void waits_end_by_deadline_by_stop_and_by_close(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, 2000, 2000);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_ASYNC, 0, 1);
    struct mr_place at = here();
    struct mr_flag stop = {0};
    struct mr_params_options o = {
        .session = "t1-1", .count = 2000, .shards = &at, .shards_count = 1, .stop = &stop};
    struct mr_params *p = NULL;
    struct mr_error e = {0};
    assert_int_equal(mr_params_open(&o, SOON, &p, &e), MR_OK);
    struct mr_params_view v;
    assert_int_equal(mr_params_pull(p, 1, SHORTLY, &v, &e), MR_ETIMEOUT);
    pull(p, &v);
    push(p, 1);
    push(p, 2);
    float *g = NULL;
    assert_int_equal(mr_params_buffer(p, SHORTLY, &g, &e), MR_ETIMEOUT);
    mr_flag_set(&stop, true);
    assert_int_equal(mr_params_pull(p, 1, SOON, &v, &e), MR_ECANCELED);
    mr_flag_set(&stop, false);
    assert_false(mr_shard_is_wanted(ps.shard));
    rig_ps_close(&ps);
    assert_int_equal(mr_params_pull(p, 1, SOON, &v, &e), MR_EAWAY);
    assert_int_equal(mr_params_buffer(p, SOON, &g, &e), MR_EAWAY);
    mr_params_close(&p);
    rig_plain_fini(&plain);
}

static void an_update_never_passes_its_limit(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, 3000, 3000);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_ASYNC, 0, 1);
    struct mr_place at = here();
    struct mr_params *p = rig_connect(&at, 1, 3000, 0, false);
    struct mr_params_view v;
    pull(p, &v);
    push(p, 1);
    push(p, 2);
    assert_int_equal(mr_update_run(ps.update, 1, SHORTLY), MR_OK);
    assert_int_equal(mr_shard_version(ps.shard), 1);
    assert_int_equal(mr_update_run(ps.update, 2, SHORTLY), MR_OK);
    assert_int_equal(mr_shard_version(ps.shard), 2);
    mr_params_close(&p);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
}

static void what_is_held_for_a_mean_is_dropped_when_told_so(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, 3000, 3000);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_SYNC, 2, 0);
    struct mr_place at = here();
    struct mr_params *p = rig_connect(&at, 1, 3000, 0, false);
    struct mr_params_view v;
    pull(p, &v);
    push(p, 1);
    assert_int_equal(mr_update_run(ps.update, 0, SHORTLY), MR_ETIMEOUT);
    assert_int_equal(mr_params_flush(p, SHORTLY, NULL), MR_ETIMEOUT);
    assert_int_equal(mr_update_drop(ps.update, SHORTLY), MR_ETIMEOUT);
    assert_int_equal(mr_params_flush(p, SHORTLY, NULL), MR_OK);
    struct mr_update_counts n;
    mr_update_counts(ps.update, &n);
    assert_int_equal(n.stale, 1);
    assert_int_equal(n.applied, 0);
    mr_params_close(&p);
    rig_ps_close(&ps);
    rig_plain_fini(&plain);
}

static void a_shard_is_served_once(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, SGD, 3000, 3000);
    struct rig_ps ps;
    rig_ps_open(&ps, &plain, 0, 1, MR_UPDATE_ASYNC, 0, 1);
    struct mr_shard_options o = {
        .session = "t1-1", .shards = 1, .count = 3000, .params = plain.params};
    struct mr_shard *again = NULL;
    assert_int_equal(mr_shard_open(&o, &again, NULL), MR_EEXIST);
    struct mr_params_options wrong = {.session = "t1-1", .count = 3001, .shards_count = 1};
    struct mr_place at = here();
    wrong.shards = &at;
    struct mr_params *p = NULL;
    assert_int_equal(mr_params_open(&wrong, SOON, &p, NULL), MR_EABORTED);
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
    const struct mr_transport_options o = {.node = "n1"};
    mr_transport_configure(&o);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asynchronous_updates_are_those_of_one_after_another),
        cmocka_unit_test(synchronous_updates_are_means_in_order_of_worker),
        cmocka_unit_test(shards_of_a_short_vector_may_be_empty),
        cmocka_unit_test(what_is_stale_lost_or_repeated_is_counted_and_dropped),
        cmocka_unit_test(fewer_live_workers_are_enough),
        cmocka_unit_test(who_has_nothing_is_not_waited_for),
        cmocka_unit_test(a_view_stays_as_it_is_while_others_are_published),
        cmocka_unit_test(waits_end_by_deadline_by_stop_and_by_close),
        cmocka_unit_test(an_update_never_passes_its_limit),
        cmocka_unit_test(what_is_held_for_a_mean_is_dropped_when_told_so),
        cmocka_unit_test(a_shard_is_served_once),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
