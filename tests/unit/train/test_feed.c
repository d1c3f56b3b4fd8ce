/* train/feed: batches of rows. Each row comes once an epoch, shares are disjoint, and errors say
 * what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "train/feed/feed.h"
#include "store/object/collection.h"
#include "store/object/value.h"

#define ROWS 103u
#define WIDTH 3u
#define PARTS 4u

struct rig { /* x is a collection of parts of different sizes, y is one tensor */
    void *parts[PARTS];
    uint64_t bytes[PARTS];
    void *x, *y;
    struct mr_arg x_arg, y_arg;
    struct mr_tensor y_tensor;
    struct mr_feed_store store;
    uint32_t mapped; /* number of views that have not been released */
    uint32_t gets;
    int second; /* result of getting the second part */
    uint64_t pinned;
    /* `finds` counts the calls that locate objects, `sourced` the gets that named a store to pull
     * from. */
    uint32_t finds, sourced;
    bool pulls; /* parts with odd numbers come from another store */
};

static int get(
    void *ctx, mr_object_id id, const char *source, struct mr_store_view *out, struct mr_error *e)
{
    struct rig *r = ctx;
    r->sourced += source != NULL;
    if (r->second && id.number == 2) return mr_fail(e, r->second, "it did not come");
    r->mapped++;
    r->gets++;
    *out = id.number > PARTS ? (struct mr_store_view){.p = r->x, .bytes = 1 << 16}
                             : (struct mr_store_view){
                                   .p = r->parts[id.number - 1], .bytes = r->bytes[id.number - 1]};
    out->is_pulled = source != NULL;
    return MR_OK;
}

static void release(void *ctx, struct mr_store_view *view)
{
    ((struct rig *)ctx)->mapped--;
    view->p = NULL;
}

static void room(void *ctx, uint64_t *memory, uint64_t *pinned)
{
    *memory = 512 << 20;
    *pinned = ((struct rig *)ctx)->pinned;
}

static void find(void *ctx, const mr_object_id *ids, uint32_t n, const char **sources)
{
    struct rig *r = ctx;
    r->finds++;
    for (uint32_t i = 0; i < n; i++)
        sources[i] = r->pulls && ids[i].number % 2 ? "there" : NULL;
}

static void *tensor(enum mr_dtype dtype, unsigned ndim, const uint64_t *shape, void *extent_out)
{
    uint64_t n = mr_tensor_bytes(dtype, ndim, shape);
    void *extent = mr_alloc_aligned(n, 64);
    memcpy(extent_out, &extent, sizeof extent);
    return mr_tensor_build(extent, dtype, ndim, shape);
}

/* Makes the data: row i is (i, i + 0.5, -i), and its class is i % 10. */
static int setup(void **state)
{
    static const uint64_t cuts[PARTS + 1] = {0, 1, 40, 41, ROWS};
    struct rig *r = mr_alloc(sizeof *r);
    struct mr_collection_part parts[PARTS] = {{.nbytes = 0}};
    for (uint32_t p = 0; p < PARTS; p++) {
        const uint64_t shape[2] = {cuts[p + 1] - cuts[p], WIDTH};
        r->bytes[p] = mr_tensor_bytes(MR_DTYPE_F32, 2, shape);
        float *at = tensor(MR_DTYPE_F32, 2, shape, &r->parts[p]);
        for (uint64_t i = cuts[p]; i < cuts[p + 1]; i++) {
            *at++ = (float)i;
            *at++ = (float)i + 0.5f;
            *at++ = -(float)i;
        }
        parts[p] = (struct mr_collection_part){.id = {7, p + 1},
            .nbytes = r->bytes[p],
            .kind = MR_VALUE_TENSOR,
            .dtype = MR_DTYPE_F32,
            .start = {cuts[p]},
            .shape = {shape[0], WIDTH}};
    }
    const uint64_t x_shape[2] = {ROWS, WIDTH}, y_shape[1] = {ROWS};
    const struct mr_collection_spec spec = {.kind = MR_VALUE_TENSOR,
        .dtype = MR_DTYPE_F32,
        .ndim = 2,
        .shape = x_shape,
        .parts = parts,
        .count = PARTS};
    r->x = mr_alloc_aligned(1 << 16, 64);
    mr_collection_build(r->x, &spec);
    uint8_t *labels = tensor(MR_DTYPE_U8, 1, y_shape, &r->y);
    for (uint32_t i = 0; i < ROWS; i++)
        labels[i] = (uint8_t)(i % 10);
    r->x_arg = (struct mr_arg){.type = MR_ARG_OBJECT, .object = {7, PARTS + 1}};
    mr_tensor_init(&r->y_tensor, MR_DTYPE_U8, 1, y_shape, labels);
    r->y_arg = (struct mr_arg){.type = MR_ARG_TENSOR,
        .tensor = &r->y_tensor,
        .extent = mr_str_of(r->y, mr_tensor_bytes(MR_DTYPE_U8, 1, y_shape))};
    r->store = (struct mr_feed_store){get, release, r, room, find};
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    assert_int_equal(r->mapped, 0);
    for (uint32_t i = 0; i < PARTS; i++)
        mr_release(r->parts[i]);
    mr_release(r->x);
    mr_release(r->y);
    mr_release(r);
    return 0;
}

static struct mr_feed_spec spec_of(uint32_t worker, uint32_t workers, uint32_t batch)
{
    return (struct mr_feed_spec){.inputs = WIDTH,
        .outputs = 10,
        .batch = batch,
        .worker = worker,
        .workers = workers,
        .shuffle = true,
        .seed = 5};
}

static struct mr_feed *open_feed(struct rig *r, const struct mr_feed_spec *s)
{
    struct mr_feed *f = NULL;
    struct mr_error e;
    assert_int_equal(mr_feed_open(s, "data.train", &r->x_arg, &r->y_arg, &r->store, &f, &e), MR_OK);
    return f;
}

/* Counts the rows of a batch in `seen`. Each row must be complete and have its own label. */
static void count_rows(const struct mr_nn_batch *b, uint32_t n, uint32_t *seen)
{
    for (uint32_t i = 0; i < n; i++) {
        const float *x = b->x + i * WIDTH;
        uint32_t row = (uint32_t)x[0];
        assert_true(row < ROWS && x[1] == (float)row + 0.5f && x[2] == -(float)row);
        assert_int_equal(b->y.index[i], row % 10);
        seen[row]++;
    }
}

static void data_that_do_not_fit_are_said_to_be_too_large_for_the_store(void **state)
{
    struct rig *r = *state;
    struct mr_feed *f = NULL;
    struct mr_error e;
    struct mr_feed_spec s = spec_of(0, 2, 1);
    r->second = MR_ELIMIT;
    r->pinned = 500 << 20;
    assert_int_equal(
        mr_feed_open(&s, "data.train", &r->x_arg, &r->y_arg, &r->store, &f, &e), MR_ELIMIT);
    assert_non_null(strstr(e.text, "data.train.x: the data do not fit into memory"));
    assert_non_null(strstr(e.text, "has 512.0 MiB"));
    assert_non_null(strstr(e.text, "500.0 MiB"));
    assert_non_null(strstr(e.text, "--memory"));
    r->second = MR_ETIMEOUT; /* the get waited for room and timed out */
    assert_int_equal(
        mr_feed_open(&s, "data.train", &r->x_arg, &r->y_arg, &r->store, &f, &e), MR_ELIMIT);
}

static void a_part_that_does_not_come_is_not_said_to_be_too_large(void **state)
{
    struct rig *r = *state;
    struct mr_feed *f = NULL;
    struct mr_error e;
    struct mr_feed_spec s = spec_of(0, 2, 1);
    r->second = MR_ETIMEOUT;
    r->pinned = 100 << 20;
    assert_int_equal(
        mr_feed_open(&s, "data.train", &r->x_arg, &r->y_arg, &r->store, &f, &e), MR_ETIMEOUT);
    assert_non_null(strstr(e.text, "it did not come"));
}

static void every_row_comes_once_an_epoch_and_to_one_worker(void **state)
{
    struct rig *r = *state;
    uint32_t seen[ROWS] = {0}, batches = 0;
    /* Three workers get batches of one row. One row is left over. */
    for (uint32_t w = 0; w < 3; w++) {
        struct mr_feed_spec s = spec_of(w, 3, 1);
        struct mr_feed *f = open_feed(r, &s);
        assert_int_equal(mr_feed_steps(f), ROWS / 3);
        for (uint64_t step = 0; step < mr_feed_steps(f); step++, batches++) {
            struct mr_nn_batch b;
            mr_feed_batch(f, step, &b);
            count_rows(&b, 1, seen);
        }
        mr_feed_close(&f);
    }
    uint32_t rows = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_true(seen[i] <= 1);
        rows += seen[i];
    }
    assert_int_equal(rows, batches);
}

static void kept_rests_are_filled_up_from_the_own_share(void **state)
{
    struct rig *r = *state;
    uint32_t seen[ROWS] = {0};
    for (uint32_t w = 0; w < 2; w++) {
        struct mr_feed_spec s = spec_of(w, 2, 20);
        s.keep = true;
        struct mr_feed *f = open_feed(r, &s);
        assert_int_equal(mr_feed_steps(f), 3); /* ceil(103 / 40) */
        for (uint64_t step = 0; step < 3; step++) {
            struct mr_nn_batch b;
            mr_feed_batch(f, step, &b);
            count_rows(&b, 20, seen);
        }
        mr_feed_close(&f);
    }
    for (uint32_t i = 0; i < ROWS; i++)
        assert_true(seen[i] == 1 || seen[i] == 2);
}

static void an_epoch_has_an_order_of_its_own_that_is_found_again(void **state)
{
    struct rig *r = *state;
    struct mr_feed_spec s = spec_of(0, 1, 10);
    struct mr_feed *f = open_feed(r, &s), *again = open_feed(r, &s);
    struct mr_nn_batch b;
    float first[10], second[10];
    mr_feed_batch(f, 3, &b);
    for (int i = 0; i < 10; i++)
        first[i] = b.x[i * (int)WIDTH];
    mr_feed_batch(f, 3 + mr_feed_steps(f), &b);
    for (int i = 0; i < 10; i++)
        second[i] = b.x[i * (int)WIDTH];
    assert_memory_not_equal(first, second, sizeof first);
    /* A worker that replaces another worker continues at the next batch. */
    mr_feed_batch(again, 3 + mr_feed_steps(f), &b);
    for (int i = 0; i < 10; i++)
        assert_true(second[i] == b.x[i * (int)WIDTH]);
    mr_feed_close(&f);
    mr_feed_close(&again);
}

static void a_share_maps_only_the_partitions_it_needs(void **state)
{
    struct rig *r = *state;
    struct mr_feed_spec s = spec_of(1, 2, 10); /* the share is rows 51 to 102 */
    struct mr_feed *f = open_feed(r, &s);
    assert_int_equal(r->gets, 2); /* one get for the collection, one for its last part */
    struct mr_nn_batch b;
    mr_feed_range(f, 0, 10, &b);
    assert_true(b.x[0] == 51);
    assert_true(b.x > (const float *)r->parts[3]); /* x points into the part: no copy was made */
    mr_feed_close(&f);
}

static void ranges_come_in_order_also_across_partitions(void **state)
{
    struct rig *r = *state;
    struct mr_feed_spec s = spec_of(0, 1, 50);
    struct mr_feed *f = open_feed(r, &s);
    struct mr_nn_batch b;
    mr_feed_range(f, 30, 50, &b);
    for (uint32_t i = 0; i < 50; i++) {
        assert_true(b.x[i * WIDTH] == (float)(30 + i));
        assert_int_equal(b.y.index[i], (30 + i) % 10);
    }
    mr_feed_close(&f);
}

/* A share of several ranges is read in order, is shuffled, and is continued by another worker. */
static void a_share_of_several_ranges(void **state)
{
    struct rig *r = *state;
    static const struct mr_row_range mine[] = {{0, 1}, {35, 10}, {60, 20}, {99, 3}};
    struct mr_feed_spec s = spec_of(2, 3, 17); /* the three workers get 34, 34 and 35 rows */
    s.ranges = mine;
    s.ranges_count = MR_ARRAY_LEN(mine);
    s.shuffle = false;
    struct mr_feed *f = NULL;
    struct mr_error e;
    assert_int_equal(
        mr_feed_open(&s, "data.train", &r->x_arg, &r->y_arg, &r->store, &f, &e), MR_EFORMAT);
    assert_non_null(strstr(e.text, "plan of rows"));
    s.worker = 0;
    f = open_feed(r, &s);
    assert_int_equal(mr_feed_rows(f), 34);
    assert_int_equal(mr_feed_steps(f), 2);
    struct mr_nn_batch b;
    uint32_t at = 0, seen[ROWS] = {0}, again[ROWS] = {0};
    for (uint64_t step = 0; step < 2; step++) {
        mr_feed_batch(f, step, &b);
        for (uint32_t i = 0; i < 17; i++, at++) {
            uint32_t row = at;
            for (const struct mr_row_range *k = mine;; row -= (uint32_t)k++->count)
                if (row < k->count) {
                    assert_int_equal(b.x[i * WIDTH], k->first + row);
                    break;
                }
        }
    }
    mr_feed_range(f, 0, 3, &b); /* rows 0, 35, 36 */
    assert_true(b.x[0] == 0 && b.x[WIDTH] == 35 && b.x[2 * WIDTH] == 36);
    mr_feed_close(&f);
    s.shuffle = true;
    f = open_feed(r, &s);
    struct mr_feed *other = open_feed(r, &s);
    for (uint64_t step = 0; step < 2; step++) {
        mr_feed_batch(f, 2 + step, &b);
        count_rows(&b, 17, seen);
        mr_feed_batch(other, 2 + step, &b);
        count_rows(&b, 17, again);
    }
    for (uint32_t i = 0, k = 0; i < ROWS; i++) {
        k += k < 3 && i == mine[k].first + mine[k].count;
        k += k < 3 && i >= mine[k + 1].first;
        assert_int_equal(seen[i], i >= mine[k].first && i < mine[k].first + mine[k].count);
        assert_int_equal(seen[i], again[i]);
    }
    /* `other` is the feed of a worker that takes over from the worker of `f`. Both feeds must make
     * the same batch 7. */
    mr_feed_batch(f, 7, &b);
    mr_feed_batch(other, 0, &b);
    mr_feed_batch(other, 7, &b);
    float first = b.x[0];
    mr_feed_batch(f, 7, &b);
    assert_true(first == b.x[0]);
    mr_feed_close(&f);
    mr_feed_close(&other);
}

/* One call locates all parts of a collection. The parts that come from another store are counted,
 * and so are their bytes. */
static void what_is_brought_is_counted(void **state)
{
    struct rig *r = *state;
    struct mr_feed_spec s = spec_of(0, 1, 10);
    struct mr_feed *f = open_feed(r, &s);
    assert_int_equal(mr_feed_moved(f).parts, 0);
    assert_int_equal(r->sourced, 0);
    mr_feed_close(&f);
    r->pulls = true;
    r->finds = 0;
    f = open_feed(r, &s);
    assert_int_equal(r->finds, 2); /* one call locates the collection, and one locates its parts */
    assert_int_equal(mr_feed_moved(f).parts, 2);
    assert_int_equal(mr_feed_moved(f).bytes, r->bytes[0] + r->bytes[2]);
    mr_feed_close(&f);
}

static void refused(struct rig *r, const struct mr_feed_spec *s, const char *words)
{
    struct mr_feed *f = NULL;
    struct mr_error e;
    assert_int_not_equal(
        mr_feed_open(s, "data.train", &r->x_arg, &r->y_arg, &r->store, &f, &e), MR_OK);
    assert_null(f);
    if (!strstr(e.text, words)) fail_msg("\"%s\" has no \"%s\"", e.text, words);
}

static void what_does_not_fit_the_model_is_refused_in_words(void **state)
{
    struct rig *r = *state;
    struct mr_feed_spec s = spec_of(0, 1, 10);
    s.inputs = 4;
    refused(r, &s, "data.train.x: expected 4 numbers a row");
    s = spec_of(0, 1, 10);
    s.outputs = 5;
    refused(r, &s, "row 5 is class 5, but the model has classes 0 to 4");
    s = spec_of(0, 4, 64);
    refused(r, &s, "103 rows make no batch of 64 for each of 4 workers");
    s = spec_of(0, 1, 10);
    r->y_tensor.shape[0] = ROWS;
    const struct mr_arg x = r->x_arg;
    r->x_arg = r->y_arg;
    refused(r, &s, "data.train.x: expected float32");
    r->x_arg = x;
    const struct mr_arg y = r->y_arg;
    r->y_arg = x;
    refused(r, &s, "data.train.y: expected class numbers");
    r->y_arg = y;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            every_row_comes_once_an_epoch_and_to_one_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(
            kept_rests_are_filled_up_from_the_own_share, setup, teardown),
        cmocka_unit_test_setup_teardown(
            an_epoch_has_an_order_of_its_own_that_is_found_again, setup, teardown),
        cmocka_unit_test_setup_teardown(
            data_that_do_not_fit_are_said_to_be_too_large_for_the_store, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_part_that_does_not_come_is_not_said_to_be_too_large, setup, teardown),
        cmocka_unit_test_setup_teardown(a_share_maps_only_the_partitions_it_needs, setup, teardown),
        cmocka_unit_test_setup_teardown(
            ranges_come_in_order_also_across_partitions, setup, teardown),
        cmocka_unit_test_setup_teardown(a_share_of_several_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_brought_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(
            what_does_not_fit_the_model_is_refused_in_words, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
