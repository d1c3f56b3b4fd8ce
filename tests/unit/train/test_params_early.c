/* The synchronous rule with gradients that workers announce piece by piece while they compute them.
 * The result must be the same as with whole gradients, also if a worker is lost in between. */
#include "tests/unit/train/params_rig.h"

#define ADAM "{\"type\": \"adam\", \"learning_rate\": 0.01}"
#define COUNT 400000u
#define TRAINED 399000u
#define WORKERS 3u

static struct mr_place here(void)
{
    const char *path = NULL;
    assert_int_equal(mr_transport_socket(&path, NULL), MR_OK);
    return (struct mr_place){.address = "", .node = mr_transport_node(), .socket = path};
}

static struct mr_params *connect_as(
    const struct mr_place *places, uint32_t shards, uint32_t worker, uint64_t incarnation)
{
    struct mr_params_options o = {.session = "t1-1",
        .worker = worker,
        .incarnation = incarnation,
        .count = COUNT,
        .shards = places,
        .shards_count = shards,
        .same_version = true,
        .early_count = TRAINED};
    struct mr_params *p = NULL;
    struct mr_error e = {0};
    int err = mr_params_open(&o, SOON, &p, &e);
    if (err) print_error("%s\n", e.text);
    mr_assert(!err);
    return p;
}

static void ps_open(struct rig_ps *p, const struct rig_plain *plain, uint32_t shard,
    uint32_t shards, uint32_t workers)
{
    rig_ps_open(p, plain, shard, shards, MR_UPDATE_SYNC, workers, 0);
    mr_update_close(&p->update);
    struct mr_update_options u = {.shard = p->shard,
        .optim = &plain->optim,
        .trainable_count = plain->trainable,
        .rule = MR_UPDATE_SYNC,
        .aggregate = workers,
        .workers = workers,
        .threads = 2};
    struct mr_error e = {0};
    assert_int_equal(mr_update_open(&u, &p->update, &e), MR_OK);
}

/* Pulls the parameters, computes the gradient of `batch`, and announces its numbers from `low` up
 * to TRAINED as complete. Returns the whole gradient for finish, which frees it. */
static float *begin_batch(
    struct mr_params *p, uint32_t worker, uint64_t batch, uint64_t step, uint64_t low)
{
    struct mr_params_view v;
    float *g = NULL;
    struct mr_error e = {0};
    int err = mr_params_pull(p, batch == step ? step - 1 : 0, SOON, &v, &e);
    if (!err) err = mr_params_buffer(p, SOON, &g, &e);
    if (err) print_error("worker %u: %s\n", worker, e.text);
    mr_assert(!err);
    float *whole = mr_alloc(COUNT * sizeof *whole);
    rig_gradient(v.params, COUNT, worker, batch, whole);
    /* The buffer is NaN at first, so that the use of a number that is not complete shows in the
     * result. */
    memset(g, 0xff, COUNT * sizeof *g);
    for (uint64_t at = TRAINED; at > low;) {
        uint64_t n = MR_MIN(at - low, (uint64_t)100000);
        at -= n;
        memcpy(g + at, whole + at, n * sizeof *g);
        mr_params_ready(p, step, at, n);
    }
    mr_params_release(p);
    return whole;
}

static float *begin(struct mr_params *p, uint32_t worker, uint64_t step, uint64_t low)
{
    return begin_batch(p, worker, step, step, low);
}

static void finish(struct mr_params *p, uint64_t step, float **whole)
{
    float *g = NULL;
    struct mr_error e = {0};
    mr_assert(!mr_params_buffer(p, SOON, &g, &e));
    memcpy(g, *whole, COUNT * sizeof *g);
    mr_assert(!mr_params_push(p, step, 64, &e));
    mr_release(*whole);
    *whole = NULL;
}

struct worker {
    const struct mr_place *places;
    uint32_t shards, index;
    struct mr_thread *thread;
};

static void worker_run(void *ctx)
{
    struct worker *w = ctx;
    struct mr_params *p = connect_as(w->places, w->shards, w->index, 10 + w->index);
    for (uint64_t step = 1; step <= 12; step++) {
        float *whole = begin(p, w->index, step, 1000);
        mr_clock_sleep((mr_duration)(w->index + step % 3) * MR_MS);
        finish(p, step, &whole);
    }
    struct mr_error e = {0};
    mr_assert(!mr_params_flush(p, SOON, &e));
    mr_params_close(&p);
}

static void assert_plain(struct rig_ps *ps, const struct rig_plain *plain)
{
    uint64_t first = mr_shard_first(ps->shard), bytes = mr_shard_count(ps->shard) * sizeof(float);
    assert_memory_equal(mr_shard_params(ps->shard), plain->params + first, bytes);
    float *const *slots = mr_update_slots(ps->update);
    for (uint32_t i = 0; i < mr_nn_optim_slots(&plain->optim); i++)
        assert_memory_equal(slots[i], plain->slots[i] + first, bytes);
}

static uint64_t early_passes(const struct rig_ps *ps)
{
    struct mr_update_counts c;
    mr_update_counts(ps->update, &c);
    return c.early;
}

static void same_as_whole(uint32_t shards)
{
    struct rig_plain plain;
    rig_plain_init(&plain, ADAM, COUNT, TRAINED);
    struct rig_ps ps[2];
    struct mr_place places[2];
    for (uint32_t s = 0; s < shards; s++) {
        ps_open(&ps[s], &plain, s, shards, WORKERS);
        rig_ps_start(&ps[s]);
        places[s] = here();
    }
    struct worker w[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        w[i] = (struct worker){.places = places, .shards = shards, .index = i};
        w[i].thread = mr_thread_start("worker", worker_run, &w[i]);
    }
    for (uint32_t i = 0; i < WORKERS; i++)
        mr_thread_join(&w[i].thread);
    rig_plain_sync(&plain, WORKERS, 12);
    for (uint32_t s = 0; s < shards; s++) {
        rig_ps_stop(&ps[s]);
        assert_plain(&ps[s], &plain);
        assert_true(early_passes(&ps[s]) > 0);
        mr_update_close(&ps[s].update);
        mr_shard_close(&ps[s].shard);
    }
    rig_plain_fini(&plain);
}

static void gradients_used_while_they_are_computed_give_the_same_result(void **state)
{
    (void)state;
    same_as_whole(1);
    same_as_whole(2);
}

/* Runs the server in this thread until no work is left. */
static void run(struct rig_ps *ps)
{
    (void)mr_update_run(ps->update, 0, SHORTLY);
}

static void a_replacement_completes_what_a_lost_worker_announced(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, ADAM, COUNT, TRAINED);
    struct rig_ps ps;
    ps_open(&ps, &plain, 0, 1, 2);
    struct mr_place place = here();
    struct mr_params *a = connect_as(&place, 1, 0, 10), *b = connect_as(&place, 1, 1, 11);
    float *whole_a = begin(a, 0, 1, 150000), *whole_b = begin(b, 1, 1, 100000);
    run(&ps);
    assert_int_equal(early_passes(&ps), 1);
    mr_params_close(&b);
    run(&ps);
    finish(a, 1, &whole_a);
    run(&ps);
    assert_int_equal(mr_shard_version(ps.shard), 0);
    b = connect_as(&place, 1, 1, 12);
    float *again = begin(b, 1, 1, 1000);
    finish(b, 1, &again);
    run(&ps);
    assert_int_equal(mr_shard_version(ps.shard), 1);
    rig_plain_sync(&plain, 2, 1);
    assert_plain(&ps, &plain);
    mr_release(whole_b);
    mr_params_close(&a);
    mr_params_close(&b);
    mr_update_close(&ps.update);
    mr_shard_close(&ps.shard);
    rig_plain_fini(&plain);
}

/* A server with two workers, a and b, which have indexes 0 and 1. pair_begin announces a part of
 * a's gradient, pair_announce a part of b's. */
struct pair {
    struct rig_plain plain;
    struct rig_ps ps;
    struct mr_place place;
    struct mr_params *a, *b;
    float *whole_a, *whole_b;
};

static void pair_begin(struct pair *p, const char *optim)
{
    rig_plain_init(&p->plain, optim, COUNT, TRAINED);
    ps_open(&p->ps, &p->plain, 0, 1, 2);
    p->place = here();
    p->a = connect_as(&p->place, 1, 0, 10);
    p->b = connect_as(&p->place, 1, 1, 11);
    p->whole_a = begin(p->a, 0, 1, 150000);
    p->whole_b = NULL;
}

static void pair_announce(struct pair *p, uint64_t step)
{
    p->whole_b = begin_batch(p->b, 1, 7, step, 100000);
    run(&p->ps);
    assert_int_equal(early_passes(&p->ps), 1);
    assert_int_equal(mr_shard_version(p->ps.shard), 0);
}

/* Checks that version 1 consists of worker a's first gradient and worker b's gradient of `batch`
 * (0: none). Then frees the pair. */
static void pair_end(struct pair *p, uint64_t batch)
{
    assert_int_equal(mr_shard_version(p->ps.shard), 1);
    float *g[2];
    for (uint32_t i = 0; i < 2; i++)
        g[i] = mr_alloc(COUNT * sizeof(float));
    rig_gradient(p->plain.params, COUNT, 0, 1, g[0]);
    rig_gradient(p->plain.params, COUNT, 1, batch, g[1]);
    rig_plain_mean(&p->plain, (const float *const *)g, batch ? 2 : 1, 0, COUNT, 1);
    assert_plain(&p->ps, &p->plain);
    for (uint32_t i = 0; i < 2; i++)
        mr_release(g[i]);
    mr_release(p->whole_a);
    mr_release(p->whole_b);
    mr_params_close(&p->a);
    mr_params_close(&p->b);
    mr_update_close(&p->ps.update);
    mr_shard_close(&p->ps.shard);
    rig_plain_fini(&p->plain);
}

static void a_lost_worker_counts_in_no_part(void **state)
{
    (void)state;
    struct pair p;
    pair_begin(&p, ADAM);
    pair_announce(&p, 1);
    mr_params_close(&p.b);
    finish(p.a, 1, &p.whole_a);
    mr_update_set_live(p.ps.update, 1);
    run(&p.ps);
    pair_end(&p, 0);
}

static void a_replacement_with_another_batch_replaces_all_of_the_first(void **state)
{
    (void)state;
    struct pair p;
    pair_begin(&p, ADAM);
    pair_announce(&p, 1);
    mr_params_close(&p.b);
    mr_release(p.whole_b);
    p.b = connect_as(&p.place, 1, 1, 12);
    p.whole_b = begin_batch(p.b, 1, 9, 1, 1000);
    run(&p.ps);
    assert_int_equal(early_passes(&p.ps), 2);
    finish(p.a, 1, &p.whole_a);
    run(&p.ps);
    finish(p.b, 1, &p.whole_b);
    run(&p.ps);
    pair_end(&p, 9);
}

static void who_passed_and_then_got_a_batch_is_late_with_all_of_it(void **state)
{
    (void)state;
    struct pair p;
    struct mr_error e = {0};
    struct mr_params_view v;
    float *g = NULL;
    pair_begin(&p, "{\"type\": \"rmsprop\", \"momentum\": 0.5}");
    assert_int_equal(mr_params_pull(p.b, 0, SOON, &v, &e), MR_OK);
    assert_int_equal(mr_params_buffer(p.b, SOON, &g, &e), MR_OK);
    assert_int_equal(mr_params_push(p.b, 1, 0, &e), MR_OK); /* b has no gradient */
    run(&p.ps);
    pair_announce(&p, 2);
    finish(p.a, 1, &p.whole_a);
    run(&p.ps);
    finish(p.b, 2, &p.whole_b);
    run(&p.ps);
    struct mr_update_counts c;
    mr_update_counts(p.ps.update, &c);
    assert_int_equal(c.stale, 1);
    pair_end(&p, 0);
}

static void a_workers_second_gradient_of_a_version_is_stale(void **state)
{
    (void)state;
    struct pair p;
    pair_begin(&p, ADAM);
    p.whole_b = begin_batch(p.b, 1, 3, 1, TRAINED);
    finish(p.b, 1, &p.whole_b);
    run(&p.ps);
    mr_params_close(&p.b);
    p.b = connect_as(&p.place, 1, 1, 12);
    p.whole_b = begin_batch(p.b, 1, 4, 1, 1000);
    finish(p.b, 1, &p.whole_b);
    run(&p.ps);
    struct mr_update_counts c;
    mr_update_counts(p.ps.update, &c);
    assert_int_equal(c.stale, 1);
    assert_int_equal(mr_shard_version(p.ps.shard), 0);
    finish(p.a, 1, &p.whole_a);
    run(&p.ps);
    pair_end(&p, 3);
}

static void a_restore_forgets_what_was_used_early(void **state)
{
    (void)state;
    struct rig_plain plain;
    rig_plain_init(&plain, ADAM, COUNT, TRAINED);
    struct rig_ps ps;
    ps_open(&ps, &plain, 0, 1, 2);
    struct mr_place place = here();
    struct mr_params *w[2] = {connect_as(&place, 1, 0, 10), connect_as(&place, 1, 1, 11)};
    float *whole[2];
    for (uint32_t i = 0; i < 2; i++)
        whole[i] = begin(w[i], i, 1, 100000);
    run(&ps);
    assert_int_equal(early_passes(&ps), 1);
    mr_update_restore(ps.update, 1, 0, plain.params, NULL);
    for (uint32_t i = 0; i < 2; i++)
        /* the gradient belongs to restore epoch 0, which is over, so it is dropped */
        finish(w[i], 1, &whole[i]);
    run(&ps);
    assert_int_equal(mr_shard_version(ps.shard), 0);
    for (uint32_t i = 0; i < 2; i++) {
        mr_params_set_epoch(w[i], 1);
        struct mr_params_view v;
        struct mr_error e = {0};
        assert_int_equal(mr_params_pull(w[i], 0, SOON, &v, &e), MR_OK);
        float *g = NULL;
        assert_int_equal(mr_params_buffer(w[i], SOON, &g, &e), MR_OK);
        rig_gradient(v.params, COUNT, i, 1, g);
        assert_int_equal(mr_params_push(w[i], 2, 64, &e), MR_OK);
    }
    run(&ps);
    assert_int_equal(mr_shard_version(ps.shard), 1);
    rig_plain_sync(&plain, 2, 1);
    assert_plain(&ps, &plain);
    for (uint32_t i = 0; i < 2; i++)
        mr_params_close(&w[i]);
    mr_update_close(&ps.update);
    mr_shard_close(&ps.shard);
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
    const struct mr_transport_options o = {.node = "node-a"};
    mr_transport_configure(&o);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_used_while_they_are_computed_give_the_same_result),
        cmocka_unit_test(a_replacement_completes_what_a_lost_worker_announced),
        cmocka_unit_test(a_lost_worker_counts_in_no_part),
        cmocka_unit_test(a_replacement_with_another_batch_replaces_all_of_the_first),
        cmocka_unit_test(who_passed_and_then_got_a_batch_is_late_with_all_of_it),
        cmocka_unit_test(a_workers_second_gradient_of_a_version_is_stale),
        cmocka_unit_test(a_restore_forgets_what_was_used_early),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
