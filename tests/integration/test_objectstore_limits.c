/* Tests the real mr-objectstore at its limits: its memory is full, it has too many objects, or a
 * client gives up a wait. */
#include "store/arena/client_link.h"
#include "store_node.h"

#include <pthread.h>

static void a_full_store_without_a_disk_says_so(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 64 * MIB, false);
    struct mr_store *st = node_client(&n);
    struct mr_store_draft draft;
    struct mr_error e = {0};
    assert_int_equal(mr_store_create(st, 100 * MIB, WAIT, &draft, &e), MR_ETOOBIG);
    for (int i = 0; i < 6; i++)
        (void)make(st, 9 * MIB, 1, 5);
    int err = mr_store_create(st, 20 * MIB, 200 * MR_MS, &draft, &e);
    assert_int_equal(err, MR_ELIMIT);
    assert_non_null(strstr(e.text, "full"));
    assert_int_equal(mr_store_create(st, 20 * MIB, 0, &draft, &e), MR_ELIMIT);
    /* There is room for a small object. */
    assert_int_equal(mr_store_create(st, 1000, 0, &draft, &e), MR_OK);
    mr_store_abort(st, &draft);
    mr_store_close(&st);
    node_fini(&n);
}

#define FOR_EVER (3600 * MR_SECOND)

static bool is_third_look(void *ctx)
{
    return ++*(uint32_t *)ctx >= 3;
}

/* A task that is cancelled must not wait for its input, or for room, until the timeout. */
static void what_waits_for_the_store_can_be_told_to_give_up(void **state)
{
    (void)state;
    struct node n;
    node_init_limited(&n, 64 * MIB, false, 64);
    struct mr_store *st = node_client(&n);
    struct mr_store_view view;
    struct mr_store_draft draft;
    struct mr_error e;
    uint32_t looks = 0;
    const struct mr_stop stop = {is_third_look, &looks};
    const mr_object_id nobodys = {77, 1};
    assert_int_equal(
        mr_store_get_or_stop(st, nobodys, NULL, FOR_EVER, stop, &view, &e), MR_ECANCELED);
    assert_int_equal(looks, 3);
    for (int i = 0; i < 6; i++)
        (void)make(st, 9 * MIB, 1, 5);
    looks = 0;
    assert_int_equal(
        mr_store_create_or_stop(st, 20 * MIB, FOR_EVER, stop, &draft, &e), MR_ECANCELED);
    mr_object_id id;
    struct mr_store_stats stats;
    while (!mr_store_put(st, "x", 1, NULL, 0, &id, &e)) /* until there are too many objects */
        assert_int_equal(mr_store_stats(st, &stats, &e), MR_OK);
    looks = 0;
    assert_int_equal(mr_store_create_or_stop(st, 100, FOR_EVER, stop, &draft, &e), MR_ECANCELED);
    assert_int_equal(looks, 3);
    /* When this call has its answer, no answer to an earlier request is outstanding. */
    assert_int_equal(mr_store_stats(st, &stats, &e), MR_OK);
    mr_store_close(&st);
    node_fini(&n);
}

static bool is_set_at_once(void *ctx)
{
    return (void)ctx, true;
}

/* The store's process is stopped, so it reads no requests. The client sends requests until the
 * socket is full. */
static void a_store_that_says_nothing_can_be_given_up(void **state)
{
    (void)state;
    struct node n;
    node_init(&n, 64 * MIB, false);
    struct mr_store *st = node_client(&n);
    mr_object_id id = make(st, 1000, 1, 5);
    const mr_object_id nobodys = {77, 1};
    struct mr_store_stats stats;
    struct mr_store_view view;
    struct mr_store_draft draft;
    struct mr_error e;
    uint32_t looks = 0;
    struct mr_stop stop = {is_third_look, &looks};
    int status = 0;
    kill(n.pid, SIGSTOP);
    assert_int_equal(waitpid(n.pid, &status, WUNTRACED), n.pid);
    assert_int_equal(mr_store_stats_or_stop(st, stop, &stats, &e), MR_ECANCELED);
    assert_int_equal(looks, 3);
    looks = 0;
    assert_int_equal(mr_store_delete_or_stop(st, &id, 1, true, stop, &e), MR_ECANCELED);
    assert_int_equal(looks, 3);
    looks = 0;
    assert_int_equal(mr_store_get_or_stop(st, nobodys, NULL, 0, stop, &view, &e), MR_ECANCELED);
    stop.is_set = is_set_at_once;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(mr_store_stats_or_stop(st, stop, &stats, &e), MR_ECANCELED);
    assert_int_equal(mr_store_get_or_stop(st, nobodys, NULL, 0, stop, &view, &e), MR_ECANCELED);
    assert_int_equal(
        mr_store_create_or_stop(st, 20 * MIB, FOR_EVER, stop, &draft, &e), MR_ECANCELED);
    kill(n.pid, SIGCONT);
    assert_int_equal(
        /* The store first answers the requests that were given up, and then this one. */
        mr_store_stats(st, &stats, &e), MR_OK);
    assert_int_equal(stats.objects, 0);
    assert_int_equal(mr_store_create(st, 20 * MIB, WAIT, &draft, &e), MR_OK);
    mr_store_abort(st, &draft);
    mr_store_close(&st);
    node_fini(&n);
}

struct later {
    const struct node *node;
    mr_object_id ids[64];
};

static void *free_some_later(void *ctx)
{
    const struct later *x = ctx;
    struct mr_store *st = NULL;
    assert_int_equal(mr_store_open(x->node->control, "other", &st, NULL), MR_OK);
    nap_ms(200);
    assert_int_equal(mr_store_delete(st, x->ids, 20, true, NULL), MR_OK);
    mr_store_close(&st);
    return NULL;
}

static void a_writer_hears_of_the_limit_of_objects_or_waits_until_some_are_freed(void **state)
{
    (void)state;
    struct node n;
    node_init_limited(&n, 64 * MIB, false, 64);
    struct mr_store *st = NULL;
    assert_int_equal(mr_store_open(n.control, "test", &st, NULL), MR_OK);
    struct later later = {.node = &n};
    struct mr_store_draft draft;
    struct mr_error e;
    uint32_t made = 0;
    int err = MR_OK;
    while (made < 64 && !(err = mr_store_create(st, 100, 300 * MR_MS, &draft, &e))) {
        later.ids[made++] = draft.id;
        assert_int_equal(mr_store_seal(st, &draft, NULL, NULL, &e), MR_OK);
        struct mr_store_stats seen; /* the answer shows that the store has seen the seal */
        assert_int_equal(mr_store_stats(st, &seen, &e), MR_OK);
    }
    assert_int_equal(err, MR_ELIMIT);
    assert_non_null(strstr(e.text, "at most 64 objects (--objects)"));
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, free_some_later, &later), 0);
    assert_int_equal(mr_store_create(st, 100, WAIT, &draft, &e), MR_OK);
    mr_store_abort(st, &draft);
    pthread_join(other, NULL);
    struct mr_store_stats stats;
    assert_int_equal(mr_store_stats(st, &stats, &e), MR_OK);
    assert_int_equal(stats.seals_refused, 0);
    assert_int_equal(stats.objects_max, 64);
    mr_store_close(&st);
    node_fini(&n);
}

int main(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_store_without_a_disk_says_so),
        cmocka_unit_test(a_writer_hears_of_the_limit_of_objects_or_waits_until_some_are_freed),
        cmocka_unit_test(what_waits_for_the_store_can_be_told_to_give_up),
        cmocka_unit_test(a_store_that_says_nothing_can_be_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
