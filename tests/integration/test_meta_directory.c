/* Tests store/meta/directory with a real redis-server on a private socket. */
#include "store/meta/directory.h"
#include "store/meta/redis.h"
#include "tests/integration/redis_rig.h"

#include <stdatomic.h>
#include <stdio.h>

struct fixture {
    struct redis_rig server;
    struct mr_redis *redis;
    struct mr_directory *directory;
    atomic_bool done;
    int err;
    mr_object_id object;
    size_t count;
    bool more;
    char names[256];
};

static int setup(void **state)
{
    struct fixture *f = mr_alloc(sizeof *f);
    redis_open(&f->server, false);
    const struct mr_redis_config config = {.address = f->server.address};
    assert_int_equal(mr_redis_open(&config, &f->redis, NULL), MR_OK);
    assert_int_equal(mr_redis_wait(f->redis, 10 * MR_SECOND), MR_OK);
    f->directory = mr_directory_new(f->redis, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mr_redis_close(&f->redis);
    mr_directory_free(&f->directory);
    redis_close(&f->server);
    mr_release(f);
    return 0;
}

static void wait_done(struct fixture *f)
{
    for (int i = 0; i < 5000 && !atomic_load(&f->done); i++)
        nap();
    assert_true(atomic_exchange(&f->done, false));
}

static void on_name(void *ctx, int err, const struct mr_name_record *record)
{
    struct fixture *f = ctx;
    f->err = err;
    f->object = record ? record->object : (mr_object_id){0, 0};
    if (record)
        (void)snprintf(f->names, sizeof f->names, "%.*s|%.*s", MR_STR_ARG(record->name),
            MR_STR_ARG(record->summary));
    atomic_store(&f->done, true);
}

static void on_names(
    void *ctx, int err, const struct mr_name_record *records, size_t count, bool more)
{
    struct fixture *f = ctx;
    f->err = err;
    f->count = count;
    f->more = more;
    f->names[0] = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = strlen(f->names);
        (void)snprintf(f->names + at, sizeof f->names - at, "%.*s ", MR_STR_ARG(records[i].name));
    }
    atomic_store(&f->done, true);
}

static void on_place(void *ctx, int err, const struct mr_place_record *record)
{
    struct fixture *f = ctx;
    f->err = err;
    f->count = record ? (size_t)record->nbytes : 0;
    atomic_store(&f->done, true);
}

static void on_done(void *ctx, int err)
{
    struct fixture *f = ctx;
    f->err = err;
    atomic_store(&f->done, true);
}

static int name_it(struct fixture *f, const char *name, uint64_t number, bool replace)
{
    const struct mr_name_record record = {.name = mr_str(name),
        .object = {7, number},
        .nbytes = 10,
        .summary = MR_STR("f32[3]"),
        .node = MR_STR("n0"),
        .address = MR_STR("unix:/x")};
    mr_directory_name(f->directory, &record, replace, on_name, f);
    wait_done(f);
    return f->err;
}

struct found {
    uint64_t nbytes[700];
    size_t count;
};

static void on_found(void *ctx, int err, const struct mr_name_record *record)
{
    struct found *f = ctx;
    assert_true(err == MR_OK || err == MR_ENOENT);
    f->nbytes[f->count++] = err ? 0 : record->nbytes + record->object.number;
}

static void many_names_are_looked_up_at_once(void **state)
{
    struct fixture *f = *state;
    struct mr_str names[700];
    struct found found = {.count = 0};
    assert_int_equal(name_it(f, "one", 1, false), MR_OK);
    assert_int_equal(name_it(f, "two", 2, false), MR_OK);
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++)
        names[i] = i % 3 ? MR_STR("two") : i % 2 ? MR_STR("nope") : MR_STR("one");
    assert_int_equal(
        mr_directory_resolve_sync(f->directory, names, MR_ARRAY_LEN(names), on_found, &found, NULL),
        MR_OK);
    assert_int_equal(found.count, MR_ARRAY_LEN(names));
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++)
        assert_int_equal(found.nbytes[i], i % 3 ? 12 : i % 2 ? 0 : 11);
}

static void a_name_belongs_to_one_object_until_it_is_replaced(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(name_it(f, "mnist/mean", 1, false), MR_OK);
    assert_int_equal(name_it(f, "mnist/mean", 1, false), MR_OK);
    assert_int_equal(name_it(f, "mnist/mean", 2, false), MR_EEXIST);
    assert_int_equal(f->object.number, 1);
    assert_int_equal(name_it(f, "mnist/mean", 2, true), MR_OK);
    mr_directory_resolve(f->directory, MR_STR("mnist/mean"), on_name, f);
    wait_done(f);
    assert_int_equal(f->object.number, 2);
    assert_string_equal(f->names, "mnist/mean|f32[3]");
    mr_directory_unname(f->directory, MR_STR("mnist/mean"), (mr_object_id){7, 1}, on_name, f);
    wait_done(f);
    assert_int_equal(f->err, MR_ENOENT); /* the name belongs to another object by now */
    mr_directory_unname(f->directory, MR_STR("mnist/mean"), (mr_object_id){0}, on_name, f);
    wait_done(f);
    assert_int_equal(f->object.number, 2);
    mr_directory_resolve(f->directory, MR_STR("mnist/mean"), on_name, f);
    wait_done(f);
    assert_int_equal(f->err, MR_ENOENT);
}

static void names_are_listed_by_prefix_in_pages(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"b", "a/2", "a/1", "a/3", "a", "ab", "c/\xc3\xbf"};
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++)
        assert_int_equal(name_it(f, names[i], i + 1, false), MR_OK);
    mr_directory_names(f->directory, MR_STR("a/"), MR_STR(""), 2, on_names, f);
    wait_done(f);
    assert_string_equal(f->names, "a/1 a/2 ");
    assert_true(f->more);
    mr_directory_names(f->directory, MR_STR("a/"), MR_STR("a/2"), 2, on_names, f);
    wait_done(f);
    assert_string_equal(f->names, "a/3 ");
    assert_false(f->more);
    mr_directory_names(f->directory, MR_STR(""), MR_STR(""), 100, on_names, f);
    wait_done(f);
    assert_int_equal(f->count, MR_ARRAY_LEN(names));
}

static void a_place_is_found_until_it_is_taken_away(void **state)
{
    struct fixture *f = *state;
    const struct mr_place_record place = {
        .object = {1, 2}, .nbytes = 99, .node = MR_STR("n1"), .address = MR_STR("h:1")};
    mr_directory_place(f->directory, &place, on_done, f);
    wait_done(f);
    mr_directory_find(f->directory, place.object, on_place, f);
    wait_done(f);
    assert_int_equal(f->count, 99);
    mr_directory_unplace(f->directory, place.object, MR_STR("n2"), on_done, f);
    wait_done(f);
    mr_directory_find(f->directory, place.object, on_place, f);
    wait_done(f);
    /* a node removes only its own record, so the record of node n1 stays */
    assert_int_equal(f->err, MR_OK);
    mr_directory_unplace(f->directory, place.object, MR_STR("n1"), on_done, f);
    wait_done(f);
    mr_directory_find(f->directory, place.object, on_place, f);
    wait_done(f);
    assert_int_equal(f->err, MR_ENOENT);
}

struct pages {
    struct fixture *f;
    uint32_t seen[1200];
    char next[32];
};

static void on_places(
    void *ctx, int err, const struct mr_place_record *records, size_t count, struct mr_str next)
{
    struct pages *p = ctx;
    assert_int_equal(err, MR_OK);
    for (size_t i = 0; i < count; i++) {
        assert_true(mr_str_eq(records[i].node, MR_STR("n1")));
        p->seen[records[i].object.number]++;
    }
    (void)snprintf(p->next, sizeof p->next, "%.*s", MR_STR_ARG(next));
    atomic_store(&p->f->done, true);
}

/* Places objects of many sizes, because the size stands before the node's name in a record and
 * changes its offset. Then lists the objects page by page. */
static void all_places_are_told_and_taken_away_by_their_node(void **state)
{
    struct fixture *f = *state;
    struct pages p = {.f = f, .next = "0"};
    for (uint64_t i = 0; i < MR_ARRAY_LEN(p.seen); i++) {
        const struct mr_place_record place = {.object = {1, i},
            .nbytes = (uint64_t)1 << (i % 60),
            .node = MR_STR("n1"),
            .address = MR_STR("h:1")};
        mr_directory_place(f->directory, &place, on_done, f);
        wait_done(f);
    }
    do {
        mr_directory_places(f->directory, mr_str(p.next), on_places, &p);
        wait_done(f);
    } while (strcmp(p.next, "0") != 0);
    for (uint64_t i = 0; i < MR_ARRAY_LEN(p.seen); i++) {
        assert_true(p.seen[i] > 0);
        p.seen[i] = 0;
        mr_directory_unplace(f->directory, (mr_object_id){1, i}, MR_STR("n1"), on_done, f);
        wait_done(f);
    }
    mr_directory_places(f->directory, MR_STR("0"), on_places, &p);
    wait_done(f);
    assert_string_equal(p.next, "0");
    for (uint64_t i = 0; i < MR_ARRAY_LEN(p.seen); i++)
        assert_int_equal(p.seen[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_name_belongs_to_one_object_until_it_is_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(many_names_are_looked_up_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_listed_by_prefix_in_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(a_place_is_found_until_it_is_taken_away, setup, teardown),
        cmocka_unit_test_setup_teardown(
            all_places_are_told_and_taken_away_by_their_node, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
