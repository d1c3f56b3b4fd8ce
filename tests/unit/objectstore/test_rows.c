/* The object store's core: what it tells of an object, field by field; tables whose rows are used
 * again and which have a limit; the rooms of objects, which are their places in segments; and the
 * order in which waits end. */
#include "tests/unit/objectstore/rig.h"

/* ---- what is told ---------------------------------------------------------------------------- */

static void a_seal_is_told_where_and_how_large(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    (void)grant(w, 2, 8 * MIB);
    uint32_t segment = grant(w, 1, 8 * MIB);
    assert_int_equal(segment, 2);
    w->now += 7;
    act(w, (struct mr_ostore_event){.type = MR_OE_SEAL,
               .client = 1,
               .id = id_of(1, 1),
               .segment = segment,
               .offset = 8192 + MR_EXTENT_HEAD,
               .bytes = 1000,
               .room = 2000,
               .flags = MR_SEAL_KEEP,
               .owner = {.job = {5}, .task = 6, .attempt = 7}});
    const uint32_t object = effect(w, MR_OX_ADD)->object;
    const struct mr_ostore_effect *x = effect(w, MR_OX_PUBLISH);
    assert_true(mr_object_id_eq(effect(w, MR_OX_ADD)->id, id_of(1, 1)));
    assert_true(mr_object_id_eq(x->id, id_of(1, 1)));
    assert_int_equal(object, 1);
    assert_int_equal(x->object, object);
    assert_int_equal(x->segment, segment);
    assert_int_equal(x->offset, 8192 + MR_EXTENT_HEAD);
    assert_int_equal(x->bytes, 1000);
    struct mr_ostore_info info = info_of(w, id_of(1, 1));
    assert_true(mr_object_id_eq(info.id, id_of(1, 1)));
    assert_true(info.in_memory && !info.on_disk && !info.persisted);
    assert_int_equal(info.bytes, 1000);
    assert_int_equal(info.segment, segment);
    assert_int_equal(info.offset, 8192 + MR_EXTENT_HEAD);
    assert_int_equal(info.pins, 1); /* MR_SEAL_KEEP pins the object for its maker */
    assert_true(mr_ostore_is_pinned(w->s, x->object) && !mr_ostore_is_pinned(w->s, 0));
    assert_int_equal(info.created, w->now);
    assert_int_equal(info.owner.job.v, 5);
    assert_int_equal(info.owner.task, 6);
    assert_int_equal(info.owner.attempt, 7);
    assert_int_equal(info.holders_count, 1);
    assert_int_equal(info.holders[0].kind, MR_HOLD_JOB);
    assert_int_equal(info.holders[0].key, 5);
    get(w, 2, 77, id_of(1, 1), 0, 0);
    x = effect(w, MR_OX_GOT);
    assert_int_equal(x->client, 2);
    assert_int_equal(x->request, 77);
    assert_int_equal(x->segment, segment);
    assert_int_equal(x->offset, 8192 + MR_EXTENT_HEAD);
    assert_int_equal(x->bytes, 1000);
    assert_int_equal(x->object, object);
    assert_int_equal(x->flags, 0);
    assert_true(mr_object_id_eq(x->id, id_of(1, 1)));
}

static void what_there_is_is_counted(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    uint32_t segment = grant(w, 1, 8 * MIB), mine = grant(w, 9, 16 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    get(w, 1, 1, id_of(50, 1), MR_SECOND, 3);
    assert_int_equal(effect(w, MR_OX_PULL)->object, 2);
    seal(w, 9, id_of(50, 1), mine, 0, 5000, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->flags, MR_OSTORE_PULLED);
    act(w, (struct mr_ostore_event){.type = MR_OE_RECOVERED, .id = id_of(7, 7), .bytes = 300});
    struct mr_store_stats stats = stats_of(w);
    assert_int_equal(stats.memory_bytes_max, 64 * MIB);
    assert_int_equal(stats.memory_bytes, 24 * MIB);
    assert_int_equal(stats.object_bytes, 6000);
    assert_int_equal(stats.objects, 3);
    assert_int_equal(stats.objects_max, config.objects_max);
    assert_int_equal(stats.clients, 2);
    assert_int_equal(stats.segments, 2);
    assert_int_equal(stats.pulls, 1);
    assert_int_equal(stats.pulled_bytes, 5000);
    assert_int_equal(stats.objects_spilled, 1);
    assert_int_equal(stats.spilled_bytes, 300);
    assert_int_equal(stats.persisted_bytes, 300);
    assert_int_equal(mr_ostore_objects_away(w->s), 1);
    assert_false(mr_ostore_is_writing(w->s));
    persist(w, 4, id_of(1, 1));
    assert_true(mr_ostore_is_writing(w->s));
    act(w, (struct mr_ostore_event){
               .type = MR_OE_WRITTEN, .id = id_of(1, 1), .flags = MR_OSTORE_PERSISTED});
    assert_int_equal(stats_of(w).written_bytes, 1000);
    assert_int_equal(stats_of(w).persisted_bytes, 1300);
    get(w, 1, 5, id_of(7, 7), MR_SECOND, 0);
    const struct mr_ostore_effect *x = effect(w, MR_OX_RESTORE);
    assert_int_equal(x->bytes, 300);
    assert_true(mr_object_id_eq(x->id, id_of(7, 7)));
    seal(w, 9, id_of(7, 7), mine, MIB, 300, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->flags, MR_OSTORE_RESTORED);
    get(w, 1, 6, id_of(7, 7), MR_SECOND, 0); /* the object is in memory now */
    assert_int_equal(effect(w, MR_OX_GOT)->flags, 0);
    stats = stats_of(w);
    assert_int_equal(stats.restores, 1);
    assert_int_equal(stats.read_bytes, 300);
    assert_int_equal(stats.spilled_bytes, 0);
    assert_int_equal(mr_ostore_objects_away(w->s), 0);
}

static void objects_are_listed_in_the_order_in_which_they_came(void **state)
{
    struct world *w = *state;
    struct mr_ostore_info page[4];
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    for (uint64_t n = 1; n <= 6; n++)
        seal(w, 1, id_of(1, n), segment, n * 4096, 100, 5);
    for (uint64_t n = 2; n <= 3; n++) { /* the next objects take the rows of these two */
        unhold(w, 1, id_of(1, n), 5);
        evicted(w, MR_OK);
    }
    for (uint64_t n = 7; n <= 8; n++)
        seal(w, 1, id_of(1, n), segment, n * 4096, 100, 5);
    /* Object (1, 99) does not exist. A client waits for it, and it must not be listed. */
    get(w, 1, 1, id_of(1, 99), MR_SECOND, 0);
    static const uint64_t expected[] = {1, 4, 5, 6, 7, 8};
    uint64_t after = 0;
    size_t seen = 0;
    for (size_t n; (n = mr_ostore_page(w->s, after, page, 4)); after = page[n - 1].sequence)
        for (size_t i = 0; i < n; i++) {
            assert_true(seen < MR_ARRAY_LEN(expected));
            assert_int_equal(page[i].id.number, expected[seen++]);
        }
    assert_int_equal(seen, MR_ARRAY_LEN(expected));
    assert_int_equal(mr_ostore_page(w->s, 0, page, 0), 0);
}

static void some_holders_are_shown_and_all_counted(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 5);
    get(w, 1, 2, id_of(1, 1), 0, 0); /* a pin does not count as a holder */
    for (uint64_t job = 6; job <= 15; job++)
        hold(w, MR_OE_HOLD, 1, id_of(1, 1), (struct mr_store_holder){MR_HOLD_JOB, job});
    hold(w, MR_OE_HOLD, 1, id_of(1, 1),
        (struct mr_store_holder){MR_HOLD_JOB, 6}); /* the job holds the object already */
    struct mr_ostore_info info = info_of(w, id_of(1, 1));
    assert_int_equal(info.holders_count, 11);
    for (uint32_t i = 0; i < MR_OSTORE_HOLDERS_SHOWN; i++)
        assert_int_equal(info.holders[i].kind, MR_HOLD_JOB);
    unhold(w, 1, id_of(1, 1), 6);
    assert_int_equal(info_of(w, id_of(1, 1)).holders_count, 10);
    unhold(w, 1, id_of(1, 1), 0); /* key 0: all jobs */
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_ENOENT);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void rows_are_used_again(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t client = 100 + i;
        join(w, client);
        uint32_t segment = grant(w, client, 8 * MIB);
        assert_int_equal(segment, i + 1);
        seal(w, client, id_of(client, 1), segment, 0, 1000, 5);
        hold(w, MR_OE_HOLD, 2, id_of(client, 1), (struct mr_store_holder){MR_HOLD_CLIENT, 0});
        get(w, 1, 2 * i, id_of(client, 1), 0, 0);
        assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
        /* Client 2 waits for an object that never comes. */
        get(w, 2, 2 * i + 1, id_of(client, 2), MR_SECOND, 0);
        assert_null(effect(w, MR_OX_GOT));
        act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(client, 1)});
        unhold(w, 1, id_of(client, 1), 5);
        hold(w, MR_OE_UNHOLD, 2, id_of(client, 1), (struct mr_store_holder){MR_HOLD_CLIENT, 0});
        evicted(w, MR_OK);
        act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = client});
        assert_int_equal(effect(w, MR_OX_CLOSE)->segment, segment);
        for (uint32_t ticks = 0; objects_left(w, &ticks);)
            tick(w);
    }
    assert_int_equal(stats_of(w).segments, 0);
    assert_int_equal(stats_of(w).memory_bytes, 0);
}

static void too_many_gets_that_wait_are_refused(void **state)
{
    struct world *w = *state;
    join(w, 1);
    for (uint32_t i = 1; i < config.waiters_max; i++) {
        get(w, 1, i, id_of(1, 1 + i % 7), MR_SECOND + i, 0);
        assert_null(effect(w, MR_OX_GOT));
    }
    get(w, 1, 1000, id_of(1, 1), MR_SECOND, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELIMIT);
    act(w, (struct mr_ostore_event){.type = MR_OE_RECOVERED, .id = id_of(7, 7), .bytes = 9});
    seal(w, 1, id_of(1, 60), grant(w, 1, 8 * MIB), 0, 100, 0);
    persist(w, 1002, id_of(1, 60));
    assert_int_equal(effect(w, MR_OX_DONE)->err, MR_ELIMIT);
    assert_null(effect(w, MR_OX_WRITE));
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 3});
    act(w, (struct mr_ostore_event){
               .type = MR_OE_DELETE, .client = 1, .id = id_of(1, 60), .flags = MR_OSTORE_FORCE});
    evicted(w, MR_OK);
    act(w, (struct mr_ostore_event){.type = MR_OE_DELETE, .client = 1, .id = id_of(7, 7)});
    /* This get is the first event that names object 50. The get is refused, and the core must
     * forget the object. */
    get(w, 1, 1001, id_of(1, 50), MR_SECOND, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELIMIT);
    assert_non_null(effect(w, MR_OX_REMOVE));
    size_t answers = 0;
    for (uint32_t ticks = 0; objects_left(w, &ticks);) {
        tick(w);
        answers += count(w, MR_OX_GOT);
    }
    assert_int_equal(answers, config.waiters_max - 1);
}

static void too_many_holders_and_pins_are_refused(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 1);
    for (uint64_t job = 2; job < config.links_max; job++)
        hold(w, MR_OE_HOLD, 1, id_of(1, 1), (struct mr_store_holder){MR_HOLD_JOB, job});
    assert_int_equal(info_of(w, id_of(1, 1)).holders_count, config.links_max - 1);
    hold(w, MR_OE_HOLD, 1, id_of(1, 1), (struct mr_store_holder){MR_HOLD_JOB, 99999});
    assert_int_equal(info_of(w, id_of(1, 1)).holders_count, config.links_max - 1);
    get(w, 1, 4, id_of(1, 1), 0, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELIMIT);
    unhold(w, 1, id_of(1, 1), 7);
    get(w, 1, 5, id_of(1, 1), 0, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
}

static void too_many_segments_are_refused(void **state)
{
    struct world *w = *state;
    join(w, 1);
    for (uint32_t i = 1; i < config.segments_max; i++)
        assert_int_equal(grant(w, 1, 4096), i);
    assert_int_equal(grant(w, 1, 4096), 0);
    assert_int_equal(effect(w, MR_OX_GRANTED)->err, MR_ELIMIT);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = 3});
    assert_int_equal(grant(w, 1, 4096), config.segments_max); /* the number 3 is not used again */
}

static void a_client_that_is_not_there_gets_nothing(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 5);
    get(w, 77, 2, id_of(1, 1), 0, 0);
    assert_int_equal(w->fx.n, 0);
    assert_int_equal(info_of(w, id_of(1, 1)).pins, 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 77});
    assert_int_equal(w->fx.n, 0);
    assert_int_equal(stats_of(w).clients, 1);
}

/* ---- rooms ----------------------------------------------------------------------------------- */

static void nonsense_in_a_seal_changes_nothing(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    uint32_t segment = grant(w, 1, 8 * MIB);
    struct mr_ostore_event good = {.type = MR_OE_SEAL,
        .client = 1,
        .id = id_of(1, 1),
        .segment = segment,
        .offset = 64,
        .bytes = 1000,
        .room = 1064};
    struct mr_ostore_event bad[12];
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        bad[i] = good;
    bad[0].offset = 63;
    bad[1].offset = UINT64_MAX;
    bad[2].bytes = UINT64_MAX;
    bad[3].room = UINT64_MAX;
    bad[4].room = 8 * MIB + 1;
    bad[5].segment = segment + 1;
    bad[6].client = 2;       /* the segment belongs to client 1 */
    bad[7].id = id_of(2, 1); /* the id names another maker */
    bad[8].room = MR_EXTENT_HEAD - 1;
    bad[9].segment = MR_SEGMENTS_MAX;
    bad[10].bytes = 1001;
    bad[11].client = 2;
    bad[11].id = id_of(2, 1);
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++) {
        act(w, bad[i]);
        assert_null(effect(w, MR_OX_PUBLISH));
    }
    act(w, good);
    assert_non_null(effect(w, MR_OX_PUBLISH));
}

/* The room of an object may fill its segment, and an object may be empty. */
static void a_room_ends_with_its_segment_at_the_latest(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    struct mr_ostore_event ev = {.type = MR_OE_SEAL,
        .client = 1,
        .id = id_of(1, 1),
        .segment = segment,
        .offset = MR_EXTENT_HEAD + 1,
        .bytes = 8 * MIB - MR_EXTENT_HEAD,
        .room = 8 * MIB};
    act(w, ev);
    assert_null(effect(w, MR_OX_PUBLISH));
    ev.offset--;
    act(w, ev);
    assert_int_equal(effect(w, MR_OX_PUBLISH)->bytes, 8 * MIB - MR_EXTENT_HEAD);
    ev.id = id_of(1, 2);
    ev.bytes = 0;
    ev.room = MR_EXTENT_HEAD;
    ev.offset = 8 * MIB;
    act(w, ev);
    assert_int_equal(effect(w, MR_OX_PUBLISH)->offset, 8 * MIB);
    ev.id = id_of(1, 3);
    ev.offset++;
    act(w, ev);
    assert_null(effect(w, MR_OX_PUBLISH));
}

static void a_room_that_is_free_again_is_told_to_its_client(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    (void)grant(w, 2, 8 * MIB);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 8192, 1000, 5);
    seal(w, 1, id_of(1, 1), segment, 16384, 500, 5); /* a second object with this id is refused */
    const struct mr_ostore_effect *x = effect(w, MR_OX_FREED);
    assert_int_equal(x->offset, 16384);
    assert_int_equal(x->room, 500 + MR_EXTENT_HEAD);
    assert_null(effect(w, MR_OX_REFUSED));
    unhold(w, 1, id_of(1, 1), 5);
    evicted(w, MR_OK);
    x = effect(w, MR_OX_FREED);
    assert_int_equal(x->client, 1);
    assert_int_equal(x->segment, segment);
    assert_int_equal(x->offset, 8192);
    assert_int_equal(x->room, 1000 + MR_EXTENT_HEAD);
}

static void a_large_table_keeps_no_more_than_so_many_entries_free(void **state)
{
    struct mr_ostore_config large = config;
    (void)state;
    large.objects_max = 100000;
    struct mr_ostore *s = mr_ostore_new(&large);
    assert_int_equal(mr_ostore_objects_left(s), 100000 - 1 - 4096);
    mr_ostore_free(&s);
    large.objects_max = 8 * 4096 + 8;
    s = mr_ostore_new(&large);
    assert_int_equal(mr_ostore_objects_left(s), 7 * 4096 + 7);
    mr_ostore_free(&s);
    mr_ostore_free(&s); /* nothing is left to free */
    assert_null(s);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Several gets wait with different timeouts. The core's deadline is always that of the get that
 * ends first. */
static void each_waits_as_long_as_it_said(void **state)
{
    struct world *w = *state;
    join(w, 1);
    mr_time begin = w->now;
    static const uint32_t waits[] = {500, 100, 300, 200, 400};
    for (uint32_t i = 0; i < 5; i++)
        get(w, 1, 100 + i, id_of(1, 1 + i % 2), waits[i] * MR_MS, 0);
    for (uint32_t i = 1; i <= 5; i++) {
        assert_int_equal(mr_ostore_deadline(w->s), begin + i * 100 * MR_MS);
        tick(w);
        assert_int_equal(count(w, MR_OX_GOT), 1);
        assert_int_equal(waits[effect(w, MR_OX_GOT)->request - 100], i * 100);
    }
    assert_true(mr_ostore_deadline(w->s) == MR_NEVER);
    get(w, 1, 1, id_of(1, 9), 0, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_EAGAIN);
    get(w, 1, 1, (mr_object_id){0, 0}, MR_SECOND, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_EINVAL);
}

/* A reader has pinned the object. The pin is written into shared memory, so the core learns of the
 * pin only when an eviction fails. */
static void a_deleted_object_that_stays_pinned_is_tried_less_and_less_often(void **state)
{
    static const uint32_t waits_ms[] = {20, 20, 40, 80, 160, 320, 640, 1000, 1000};
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 5);
    unhold(w, 1, id_of(1, 1), 5);
    for (size_t i = 0; i < MR_ARRAY_LEN(waits_ms); i++) {
        assert_int_equal(effect(w, MR_OX_EVICT)->flags, 1);
        evicted(w, MR_EAGAIN);
        assert_int_equal(mr_ostore_deadline(w->s), w->now + waits_ms[i] * MR_MS);
        tick(w);
    }
    evicted(w, MR_OK);
    assert_int_equal(stats_of(w).objects, 0);
}

/* A restore always ends. So a get that waits for a restore does not time out before the restore
 * ends. */
static void a_get_waits_for_the_end_of_a_restore(void **state)
{
    struct world *w = *state;
    join(w, 1);
    act(w, (struct mr_ostore_event){.type = MR_OE_RECOVERED, .id = id_of(7, 7), .bytes = 300});
    mr_time begin = w->now;
    get(w, 1, 2, id_of(7, 7), MR_SECOND, 0);
    assert_non_null(effect(w, MR_OX_RESTORE));
    assert_int_equal(mr_ostore_deadline(w->s), begin + MR_SECOND);
    tick(w);
    assert_null(effect(w, MR_OX_GOT));
    assert_int_equal(mr_ostore_deadline(w->s), begin + 11 * MR_SECOND);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(7, 7), .err = MR_ELIMIT});
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELIMIT);
    assert_true(info_of(w, id_of(7, 7)).on_disk); /* the next get restores the object again */
    assert_int_equal(mr_ostore_objects_away(w->s), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_seal_is_told_where_and_how_large),
        T(what_there_is_is_counted),
        T(objects_are_listed_in_the_order_in_which_they_came),
        T(some_holders_are_shown_and_all_counted),
        T(rows_are_used_again),
        T(too_many_gets_that_wait_are_refused),
        T(too_many_holders_and_pins_are_refused),
        T(too_many_segments_are_refused),
        T(each_waits_as_long_as_it_said),
        T(a_room_ends_with_its_segment_at_the_latest),
        T(a_room_that_is_free_again_is_told_to_its_client),
        T(a_large_table_keeps_no_more_than_so_many_entries_free),
        T(a_deleted_object_that_stays_pinned_is_tried_less_and_less_often),
        T(a_get_waits_for_the_end_of_a_restore),
        T(a_client_that_is_not_there_gets_nothing),
        T(nonsense_in_a_seal_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
