/* Tests store/meta/stream with a real redis-server on a private socket: channels, queues and the
 * change feed. */
#include "store/meta/stream/channel.h"
#include "store/meta/stream/queue.h"
#include "store/meta/redis.h"
#include "store/meta/stream/change_feed.h"
#include "tests/integration/redis_rig.h"

#include <stdatomic.h>
#include <stdio.h>

struct fixture {
    struct redis_rig server;
    struct mr_redis *redis;
    atomic_bool done;
    struct mr_channel_answer *channel;
    struct mr_queue_answer *queue;
    atomic_int marks; /* entries of the change feed about the queue or about channel "a" */
};

static void on_channel(void *ctx, struct mr_channel_answer **answer)
{
    struct fixture *f = ctx;
    f->channel = MR_STEAL(*answer);
    atomic_store(&f->done, true);
}

static void on_queue(void *ctx, struct mr_queue_answer **answer)
{
    struct fixture *f = ctx;
    f->queue = MR_STEAL(*answer);
    atomic_store(&f->done, true);
}

static void on_mark(void *ctx, char kind, struct mr_str name)
{
    struct fixture *f = ctx;
    if (kind && mr_str_eq(name, MR_STR("a"))) (void)atomic_fetch_add(&f->marks, 1);
}

static int setup(void **state)
{
    struct fixture *f = mr_alloc(sizeof *f);
    redis_open(&f->server, false);
    const struct mr_redis_config config = {.address = f->server.address};
    assert_int_equal(mr_redis_open(&config, &f->redis, NULL), MR_OK);
    assert_int_equal(mr_redis_wait(f->redis, 10 * MR_SECOND), MR_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mr_redis_close(&f->redis);
    mr_channel_answer_free(&f->channel);
    mr_queue_answer_free(&f->queue);
    redis_close(&f->server);
    mr_release(f);
    return 0;
}

static void wait_done(struct fixture *f, int err)
{
    assert_int_equal(err, MR_OK);
    for (int i = 0; i < 5000 && !atomic_load(&f->done); i++)
        nap();
    assert_true(atomic_exchange(&f->done, false));
}

/* ---- channels ---------------------------------------------------------------------------------*/

static int append(struct fixture *f, size_t count, uint32_t max, const char *token, bool again)
{
    static struct mr_str values[1000];
    for (size_t i = 0; i < count; i++)
        values[i] = MR_STR("1");
    const struct mr_channel_append a = {.channel = MR_STR("a"),
        .values = values,
        .count = count,
        .entries_max = max,
        .token = mr_str(token),
        .is_again = again,
        .time_ns = 17};
    mr_channel_answer_free(&f->channel);
    wait_done(f, mr_channel_append(f->redis, &a, on_channel, f));
    return f->channel->err;
}

static int read_after(struct fixture *f, const char *after, uint32_t max)
{
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%s", after);
    mr_channel_answer_free(&f->channel);
    wait_done(f, mr_channel_read(f->redis, MR_STR("a"), mr_str(copy), max, on_channel, f));
    return f->channel->err;
}

static void last_id(const struct fixture *f, char out[64])
{
    (void)snprintf(out, 64, "%.*s", MR_STR_ARG(f->channel->last_id));
}

static void an_append_that_is_tried_again_is_there_once(void **state)
{
    struct fixture *f = *state;
    char first[64], again[64];
    assert_int_equal(append(f, 3, 0, "t1", false), MR_OK);
    last_id(f, first);
    assert_int_equal(append(f, 3, 0, "t1", true), MR_OK);
    last_id(f, again);
    assert_string_equal(first, again);
    assert_int_equal(append(f, 2, 0, "t2", true), MR_OK);
    assert_int_equal(read_after(f, "", 100), MR_OK);
    assert_int_equal(f->channel->count, 5);
    assert_int_equal(f->channel->entries[0].time_ns, 17);
    assert_false(f->channel->more);
    assert_int_equal(read_after(f, "", 2), MR_OK);
    assert_true(f->channel->more);
}

static void who_stands_at_the_last_dropped_entry_has_lost_nothing(void **state)
{
    struct fixture *f = *state;
    char ids[6][64];
    for (int i = 0; i < 6; i++) {
        assert_int_equal(append(f, 1, 3, "t", false), MR_OK);
        last_id(f, ids[i]);
    }
    assert_int_equal(
        read_after(f, ids[2], 10), MR_OK); /* entry ids[2] was dropped, but none after it */
    assert_int_equal(f->channel->count, 3);
    assert_int_equal(read_after(f, ids[1], 10), MR_ERANGE);
    assert_true(mr_str_eq(f->channel->first_id, mr_str(ids[3])));
    assert_int_equal(read_after(f, ids[5], 10), MR_OK);
    assert_int_equal(f->channel->count, 0);
}

static void a_bound_far_below_what_is_there_drops_the_rest(void **state)
{
    struct fixture *f = *state;
    char before[64];
    for (int i = 0; i < 3; i++)
        assert_int_equal(append(f, 1000, 0, "t", false), MR_OK);
    last_id(f, before);
    assert_int_equal(append(f, 1, 2, "t", false), MR_OK);
    assert_int_equal(read_after(f, "", 10), MR_OK);
    assert_int_equal(f->channel->count, 2);
    assert_int_equal(read_after(f, before, 10), MR_OK);
    assert_int_equal(f->channel->count, 1);
}

static void an_id_that_redis_never_gave_is_out_of_range(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(read_after(f, "1-1", 10), MR_ERANGE);
    assert_int_equal(f->channel->first_id.n, 0);
    assert_int_equal(append(f, 1, 0, "t", false), MR_OK);
    assert_int_equal(read_after(f, "9999999999999-0", 10), MR_ERANGE);
    assert_int_equal(read_after(f, "$", 10), MR_OK);
    assert_int_equal(f->channel->count, 0);
    assert_true(mr_channel_id_is_good(f->channel->last_id));
}

static void ids_are_compared_as_numbers(void **state)
{
    (void)state;
    assert_true(mr_channel_id_cmp(MR_STR("9-0"), MR_STR("10-0")) < 0);
    assert_true(mr_channel_id_cmp(MR_STR("10-9"), MR_STR("10-10")) < 0);
    assert_true(mr_channel_id_cmp(MR_STR(""), MR_STR("0-1")) < 0);
    static const char *const bad[] = {"", "1", "-", "1-", "-1", "1-a", "99999999999999999999-0"};
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        assert_false(mr_channel_id_is_good(mr_str(bad[i])));
}

/* ---- queues -----------------------------------------------------------------------------------*/

static int create(struct fixture *f, uint32_t max, uint32_t deliveries)
{
    mr_queue_answer_free(&f->queue);
    wait_done(f, mr_queue_create(f->redis, MR_STR("a"), max, deliveries, on_queue, f));
    return f->queue->err;
}

static int put(struct fixture *f, const char *id, const char *value, bool is_object)
{
    mr_queue_answer_free(&f->queue);
    wait_done(
        f, mr_queue_put(f->redis, MR_STR("a"), mr_str(id), mr_str(value), is_object, on_queue, f));
    return f->queue->err;
}

static size_t take(struct fixture *f, uint32_t max, uint64_t lease_ms)
{
    mr_queue_answer_free(&f->queue);
    wait_done(f, mr_queue_take(f->redis, MR_STR("a"), max, lease_ms, on_queue, f));
    assert_int_equal(f->queue->err, MR_OK);
    return f->queue->count;
}

static void receipt_of(const struct fixture *f, size_t i, char out[256])
{
    (void)snprintf(out, 256, "%.*s-%.*s", MR_STR_ARG(f->queue->items[i].lease),
        MR_STR_ARG(f->queue->items[i].id));
}

static uint32_t ack(struct fixture *f, const char *receipt)
{
    struct mr_str r = mr_str(receipt);
    mr_queue_answer_free(&f->queue);
    wait_done(f, mr_queue_ack(f->redis, MR_STR("a"), &r, 1, on_queue, f));
    return f->queue->known;
}

static void get(struct fixture *f)
{
    mr_queue_answer_free(&f->queue);
    wait_done(f, mr_queue_get(f->redis, MR_STR("a"), on_queue, f));
    assert_int_equal(f->queue->err, MR_OK);
}

static void a_bound_counts_what_waits_and_what_is_leased(void **state)
{
    struct fixture *f = *state;
    char receipt[256];
    assert_int_equal(put(f, "x", "1", false), MR_ENOENT);
    assert_int_equal(create(f, 2, 0), MR_OK);
    assert_int_equal(put(f, "x", "1", false), MR_OK);
    assert_int_equal(put(f, "y", "2", false), MR_OK);
    assert_int_equal(put(f, "z", "3", false), MR_ELIMIT);
    assert_int_equal(take(f, 1, 60000), 1);
    receipt_of(f, 0, receipt);
    assert_int_equal(put(f, "z", "3", false), MR_ELIMIT);
    assert_true(f->queue->next_ms > 50000);
    assert_int_equal(ack(f, receipt), 1);
    assert_int_equal(put(f, "z", "3", false), MR_OK);
    /* Item x has left the queue, but the queue remembers its id. */
    assert_int_equal(put(f, "x", "1", false), MR_EEXIST);
    assert_false(f->queue->is_live);
    assert_int_equal(put(f, "y", "1", false), MR_EEXIST);
    assert_true(f->queue->is_live);
}

static void a_lease_that_ended_puts_the_item_back_in_its_place(void **state)
{
    struct fixture *f = *state;
    char receipt[256];
    assert_int_equal(create(f, 0, 3), MR_OK);
    assert_int_equal(put(f, "x", "1", false), MR_OK);
    assert_int_equal(put(f, "y", "2", false), MR_OK);
    assert_int_equal(take(f, 1, 20), 1);
    receipt_of(f, 0, receipt);
    for (int i = 0; i < 40; i++)
        nap();
    assert_int_equal(ack(f, receipt), 0);
    assert_int_equal(take(f, 5, 60000), 2);
    assert_true(mr_str_eq(f->queue->items[0].id, MR_STR("x")));
    assert_int_equal(f->queue->items[0].deliveries, 2);
    assert_int_equal(f->queue->items[1].deliveries, 1);
}

static void an_object_of_a_dead_item_is_released_by_name(void **state)
{
    struct fixture *f = *state;
    char receipt[256];
    assert_int_equal(create(f, 0, 1), MR_OK);
    assert_int_equal(put(f, "x", "00000000000000070000000000000001", true), MR_OK);
    assert_int_equal(take(f, 1, 60000), 1);
    assert_true(f->queue->items[0].is_object);
    receipt_of(f, 0, receipt);
    struct mr_str r = mr_str(receipt);
    mr_queue_answer_free(&f->queue);
    wait_done(f, mr_queue_nack(f->redis, MR_STR("a"), &r, 1, false, MR_STR(""), on_queue, f));
    assert_int_equal(f->queue->known, 1);
    get(f);
    assert_int_equal(f->queue->queues[0].dead, 1);
    assert_int_equal(f->queue->dead_count, 1);
    assert_true(
        mr_str_eq(f->queue->dead[0].reason, MR_STR("taken 1 times and never acknowledged")));
    assert_true(f->queue->dead[0].time_ns > UINT64_C(1500000000000000000));
    mr_queue_answer_free(&f->queue);
    wait_done(f, mr_queue_released(f->redis, on_queue, f));
    assert_int_equal(f->queue->count, 1);
    assert_true(mr_str_eq(f->queue->names[0], MR_STR("queue/a/x")));
    mr_queue_answer_free(&f->queue);
    wait_done(f, mr_queue_forget(f->redis, MR_STR("queue/a/x"), on_queue, f));
    mr_queue_answer_free(&f->queue);
    wait_done(f, mr_queue_released(f->redis, on_queue, f));
    assert_int_equal(f->queue->count, 0);
}

static void closed_is_over_only_when_nothing_is_leased(void **state)
{
    struct fixture *f = *state;
    char receipt[256];
    assert_int_equal(create(f, 0, 0), MR_OK);
    assert_int_equal(put(f, "x", "1", false), MR_OK);
    assert_int_equal(take(f, 1, 60000), 1);
    receipt_of(f, 0, receipt);
    mr_queue_answer_free(&f->queue);
    wait_done(f, mr_queue_close(f->redis, MR_STR("a"), on_queue, f));
    assert_true(f->queue->queues[0].is_closed);
    assert_int_equal(put(f, "y", "1", false), MR_ESTATE);
    assert_int_equal(put(f, "x", "1", false), MR_EEXIST);
    assert_int_equal(take(f, 1, 1000), 0);
    assert_false(f->queue->is_over);
    assert_int_equal(ack(f, receipt), 1);
    assert_int_equal(take(f, 1, 1000), 0);
    assert_true(f->queue->is_over);
}

static void changes_that_end_a_wait_leave_a_mark(void **state)
{
    struct fixture *f = *state;
    struct mr_tail *tail = NULL;
    assert_int_equal(create(f, 1, 0), MR_OK);
    assert_int_equal(mr_tail_open(f->server.address, NULL, on_mark, f, &tail, NULL), MR_OK);
    for (int i = 0; i < 100; i++)
        nap();
    atomic_store(&f->marks, 0);
    /* The queue was empty, so this item adds an entry to the change feed. */
    assert_int_equal(put(f, "x", "1", false), MR_OK);
    assert_int_equal(put(f, "y", "1", false), MR_ELIMIT);
    /* a leased item still counts towards the queue's limit */
    assert_int_equal(take(f, 1, 60000), 1);
    char receipt[256];
    receipt_of(f, 0, receipt);
    /* The queue has room again, which adds an entry to the change feed. */
    assert_int_equal(ack(f, receipt), 1);
    assert_int_equal(append(f, 1, 0, "t", false), MR_OK);
    for (int i = 0; i < 2000 && atomic_load(&f->marks) < 3; i++)
        nap();
    assert_int_equal(atomic_load(&f->marks), 3);
    mr_tail_close(&tail);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_append_that_is_tried_again_is_there_once),
        TEST(who_stands_at_the_last_dropped_entry_has_lost_nothing),
        TEST(a_bound_far_below_what_is_there_drops_the_rest),
        TEST(an_id_that_redis_never_gave_is_out_of_range),
        cmocka_unit_test(ids_are_compared_as_numbers),
        TEST(a_bound_counts_what_waits_and_what_is_leased),
        TEST(a_lease_that_ended_puts_the_item_back_in_its_place),
        TEST(an_object_of_a_dead_item_is_released_by_name),
        TEST(closed_is_over_only_when_nothing_is_leased),
        TEST(changes_that_end_a_wait_leave_a_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
