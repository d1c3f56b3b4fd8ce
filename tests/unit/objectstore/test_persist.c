/* The object store's core: objects that a client persists, and writes to disk that fail. */
#include "tests/unit/objectstore/rig.h"

static int done(struct world *w)
{
    const struct mr_ostore_effect *x = effect(w, MR_OX_DONE);
    return x ? x->err : 1;
}

static void what_cannot_be_persisted_is_said_at_once(void **state)
{
    struct world *w = *state;
    join(w, 1);
    persist(w, 1, id_of(1, 1));
    assert_int_equal(done(w), MR_ENOENT);
    get(w, 1, 2, id_of(1, 1), MR_SECOND, 0);
    persist(w, 3, id_of(1, 1)); /* a client waits for the object, which does not exist */
    assert_int_equal(done(w), MR_ENOENT);
    assert_int_equal(effect(w, MR_OX_DONE)->request, 3);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 100, 5);
    /* Job 5 lets go of the object, so the object counts as deleted. The memory of the object is not
     * free yet, because the get above has pinned the object. */
    unhold(w, 1, id_of(1, 1), 5);
    persist(w, 4, id_of(1, 1));
    assert_int_equal(done(w), MR_ELOST);
}

/* The object is being evicted. The eviction may fail, so the client is to ask again in a moment. */
static void what_is_about_to_leave_memory_is_persisted_a_moment_later(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 64 * MIB), 0, 50 * MIB, 5);
    assert_int_equal(grant(w, 1, 4096), 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1});
    assert_non_null(effect(w, MR_OX_WRITE));
    written(w, id_of(1, 1), 0, MR_OK);
    uint32_t object = effect(w, MR_OX_EVICT)->object;
    persist(w, 1, id_of(1, 1));
    assert_int_equal(done(w), MR_EAGAIN);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_EVICT_DONE, .object = object, .err = MR_EAGAIN}); /* a pin is left */
    persist(w, 2, id_of(1, 1));
    /* The spilled object is written once more, to a file that stays. */
    assert_non_null(effect(w, MR_OX_WRITE));
}

/* No store has the object that was to be pulled. A get may wait until a task makes the object. A
 * persist has nothing to write, so it is answered. */
static void a_persist_of_what_no_store_has_is_answered(void **state)
{
    struct world *w = *state;
    join(w, 1);
    get(w, 1, 1, id_of(50, 1), MR_SECOND, MR_OSTORE_SEEK);
    persist(w, 2, id_of(50, 1));
    assert_int_equal(done(w), 1);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(50, 1), .err = MR_EAGAIN});
    assert_int_equal(done(w), MR_ENOENT);
    assert_int_equal(effect(w, MR_OX_DONE)->request, 2);
    assert_null(effect(w, MR_OX_GOT));
    tick(w);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ETIMEOUT);
    assert_int_equal(stats_of(w).objects, 0);
    get(w, 1, 3, id_of(50, 1), 0, MR_OSTORE_SEEK);
    assert_int_equal(stats_of(w).objects, 0);
    get(w, 1, 4, id_of(1, 1), MR_SECOND, MR_OSTORE_SEEK);
    persist(w, 5, id_of(1, 1));
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(1, 1), .err = MR_EAGAIN});
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 5);
    assert_int_equal(effect(w, MR_OX_GOT)->request, 4);
    assert_null(effect(w, MR_OX_WRITE)); /* the persist has been answered already */
}

static void a_persist_during_a_pull_is_answered_with_it(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    uint32_t segment = grant(w, 9, 8 * MIB);
    for (uint64_t n = 1; n <= 2; n++) {
        get(w, 1, n, id_of(50, n), MR_SECOND, 3);
        persist(w, 10 + n, id_of(50, n));
        assert_null(effect(w, MR_OX_WRITE));
    }
    seal(w, 9, id_of(50, 1), segment, 0, 1000, 0);
    assert_int_equal(effect(w, MR_OX_WRITE)->flags, MR_OSTORE_PERSISTED);
    assert_int_equal(effect(w, MR_OX_WRITE)->bytes, 1000);
    written(w, id_of(50, 1), MR_OSTORE_PERSISTED, MR_OK);
    assert_int_equal(done(w), MR_OK);
    assert_int_equal(effect(w, MR_OX_DONE)->request, 11);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(50, 2), .err = MR_EAWAY});
    assert_int_equal(done(w), MR_EAWAY);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_EAWAY);
}

/* The get that asked for the copy has timed out. The copy stays for a while, because another client
 * may ask for it. */
static void a_copy_that_comes_too_late_stays_for_a_while(void **state)
{
    struct world *w = *state;
    uint32_t ticks = 0;
    join(w, 1);
    join(w, 9);
    uint32_t segment = grant(w, 9, 8 * MIB);
    w->now += 2 * config.orphan_ns;
    get(w, 1, 1, id_of(50, 1), MR_SECOND, 3);
    while (!count(w, MR_OX_GOT)) {
        assert_int_equal(objects_left(w, &ticks), 1);
        tick(w);
    }
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ETIMEOUT);
    seal(w, 9, id_of(50, 1), segment, 0, 1000, 0);
    mr_time came = w->now;
    assert_true(info_of(w, id_of(50, 1)).in_memory);
    while (!count(w, MR_OX_EVICT)) {
        assert_int_equal(objects_left(w, &ticks), 1);
        tick(w);
    }
    assert_true(w->now >= came + config.orphan_ns);
    evicted(w, MR_OK);
    assert_int_equal(stats_of(w).objects, 0);
}

static void a_failed_write_is_the_answer_and_the_next_persist_tries_again(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 5);
    persist(w, 1, id_of(1, 1));
    persist(w, 2, id_of(1, 1)); /* the write that is under way answers both persists */
    assert_null(effect(w, MR_OX_WRITE));
    written(w, id_of(1, 1), 0, MR_EIO);
    assert_int_equal(count(w, MR_OX_DONE), 2);
    assert_int_equal(done(w), MR_EIO);
    assert_int_equal(mr_ostore_disk(w->s).write_failures, 1);
    assert_false(mr_ostore_disk(w->s).is_full);
    assert_false(info_of(w, id_of(1, 1)).on_disk);
    persist(w, 3, id_of(1, 1));
    assert_non_null(effect(w, MR_OX_WRITE));
    written(w, id_of(1, 1), MR_OSTORE_PERSISTED, MR_OK);
    assert_int_equal(done(w), MR_OK);
    assert_true(info_of(w, id_of(1, 1)).on_disk && info_of(w, id_of(1, 1)).persisted);
    persist(w, 4, id_of(1, 1)); /* the object is on disk already */
    assert_int_equal(done(w), MR_OK);
    assert_null(effect(w, MR_OX_WRITE));
}

/* Lets time pass until the core writes again. Returns that time. */
static mr_time written_again(struct world *w)
{
    for (uint32_t ticks = 0; !effect(w, MR_OX_WRITE); tick(w))
        (void)objects_left(w, &ticks);
    return w->now;
}

/* The object takes more than 90 % of the memory, so the store writes it at once. */
static void a_write_that_failed_is_tried_again_later(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 64 * MIB), 0, 60 * MIB, 5);
    assert_non_null(effect(w, MR_OX_WRITE));
    written(w, id_of(1, 1), 0, MR_EIO);
    mr_time failed = w->now;
    assert_in_range(written_again(w), failed + 5 * MR_SECOND, failed + 5 * MR_SECOND + 40 * MR_MS);
    written(w, id_of(1, 1), 0, MR_EDISKFULL);
    failed = w->now;
    assert_in_range(written_again(w), failed + 250 * MR_MS, failed + 290 * MR_MS);
    persist(w, 1, id_of(1, 1));
    written(w, id_of(1, 1), 0, MR_EIO);
    /* the disk was full; MR_EIO does not say that it has room now */
    assert_true(mr_ostore_disk(w->s).is_full);
    assert_int_equal(mr_ostore_disk(w->s).write_failures, 3);
    assert_false(mr_ostore_is_writing(w->s));
}

static void a_file_of_another_size_is_not_the_object(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    uint32_t segment = grant(w, 9, 8 * MIB);
    act(w, (struct mr_ostore_event){.type = MR_OE_RECOVERED, .id = id_of(7, 7), .bytes = 300});
    get(w, 1, 1, id_of(7, 7), MR_SECOND, 0);
    seal(w, 9, id_of(7, 7), segment, 0, 299, 0);
    assert_null(effect(w, MR_OX_PUBLISH));
    assert_int_equal(effect(w, MR_OX_FREED)->room, 299 + MR_EXTENT_HEAD);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(7, 7), .err = MR_EFORMAT});
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELOST);
    assert_int_equal(there(w, id_of(7, 7)), MR_ENOENT);
}

/* A client asks for an object while it is being evicted, and another client deletes it. */
static void a_get_of_what_is_deleted_meanwhile_is_answered(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 64 * MIB), 0, 60 * MIB, 5);
    written(w, id_of(1, 1), 0, MR_OK);
    assert_non_null(effect(w, MR_OX_EVICT));
    get(w, 1, 7, id_of(1, 1), MR_SECOND, 0);
    assert_null(effect(w, MR_OX_GOT));
    act(w, (struct mr_ostore_event){
               .type = MR_OE_DELETE, .client = 1, .id = id_of(1, 1), .flags = MR_OSTORE_FORCE});
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELOST);
    /* the core asks for no second eviction before the first one is answered */
    assert_null(effect(w, MR_OX_EVICT));
    act(w, (struct mr_ostore_event){.type = MR_OE_EVICT_DONE, .object = 1});
    assert_non_null(effect(w, MR_OX_ERASE));
}

/* Prefetched objects take at most an eighth of the memory, 8 MiB here. */
static void so_much_is_prefetched_at_a_time_and_no_more(void **state)
{
    struct world *w = *state;
    static const uint64_t bytes[] = {0, 8 * MIB, 1, 8 * MIB + 1};
    struct mr_ostore_event want = {.type = MR_OE_WANT};
    for (uint64_t n = 1; n <= 3; n++)
        act(w, (struct mr_ostore_event){
                   .type = MR_OE_RECOVERED, .id = id_of(7, n), .bytes = bytes[n]});
    want.id = id_of(7, 3);
    act(w, want);
    assert_null(effect(w, MR_OX_RESTORE));
    want.id = id_of(7, 1);
    act(w, want);
    assert_int_equal(effect(w, MR_OX_RESTORE)->bytes, 8 * MIB);
    want.id = id_of(7, 2);
    act(w, want);
    assert_null(effect(w, MR_OX_RESTORE));
    want.flags = MR_OSTORE_AT_ONCE; /* a task waits for the object */
    act(w, want);
    assert_int_equal(effect(w, MR_OX_RESTORE)->bytes, 1);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(7, 1), .err = MR_ELIMIT});
    want.flags = 0;
    want.id = id_of(7, 1);
    act(w, want);
    /* Still no restore of object 1: the restore of the one-byte object 2 has not ended, and both
     * together exceed 8 MiB. */
    assert_null(effect(w, MR_OX_RESTORE));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_cannot_be_persisted_is_said_at_once),
        T(what_is_about_to_leave_memory_is_persisted_a_moment_later),
        T(a_persist_of_what_no_store_has_is_answered),
        T(a_persist_during_a_pull_is_answered_with_it),
        T(a_copy_that_comes_too_late_stays_for_a_while),
        T(a_failed_write_is_the_answer_and_the_next_persist_tries_again),
        T(a_write_that_failed_is_tried_again_later),
        T(a_file_of_another_size_is_not_the_object),
        T(a_get_of_what_is_deleted_meanwhile_is_answered),
        T(so_much_is_prefetched_at_a_time_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
