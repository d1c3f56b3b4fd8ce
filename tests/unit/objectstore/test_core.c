/* The object store's core, event by event. */
#include "tests/unit/objectstore/rig.h"

static void a_get_before_the_seal_is_answered_by_the_seal(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    get(w, 2, 77, id_of(1, 1), MR_SECOND, 0);
    assert_null(effect(w, MR_OX_GOT));
    uint32_t segment = grant(w, 1, 8 * MIB);
    assert_true(segment);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    assert_non_null(effect(w, MR_OX_PUBLISH));
    const struct mr_ostore_effect *got = effect(w, MR_OX_GOT);
    assert_non_null(got);
    assert_int_equal(got->request, 77);
    assert_int_equal(got->err, MR_OK);
    assert_int_equal(got->bytes, 1000);
}

static void a_get_of_what_never_comes_times_out(void **state)
{
    struct world *w = *state;
    join(w, 1);
    get(w, 1, 5, id_of(1, 1), MR_SECOND, 0);
    assert_int_equal(mr_ostore_deadline(w->s), w->now + MR_SECOND);
    w->now += MR_SECOND;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ETIMEOUT);
    assert_non_null(effect(w, MR_OX_REMOVE));
}

static void one_pull_is_under_way_however_many_ask(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    get(w, 1, 1, id_of(50, 1), MR_SECOND, 3);
    assert_int_equal(effect(w, MR_OX_PULL)->source, 3);
    get(w, 1, 2, id_of(50, 1), MR_SECOND, 3);
    assert_null(effect(w, MR_OX_PULL));
    uint32_t segment = grant(w, 9, 8 * MIB);
    seal(w, 9, id_of(50, 1), segment, 0, 5000, 0);
    size_t answers = 0, told = 0;
    for (size_t i = 0; i < w->fx.n; i++) {
        if (w->fx.items[i].type != MR_OX_GOT || w->fx.items[i].err) continue;
        answers++;
        told += w->fx.items[i].flags == MR_OSTORE_PULLED;
    }
    assert_int_equal(answers, 2);
    /* Exactly one answer is marked PULLED, so that the transfer is counted once. */
    assert_int_equal(told, 1);
    for (uint64_t request = 3; request <= 4; request++)
        get(w, 1, request, id_of(50, 2), MR_SECOND, 3);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(50, 2), .err = MR_EAWAY});
    assert_null(effect(w, MR_OX_PULL)); /* the same source is not tried again */
    assert_int_equal(count(w, MR_OX_GOT), 2);
}

static void what_nobody_has_yet_is_waited_for_after_the_search(void **state)
{
    struct world *w = *state;
    join(w, 1);
    get(w, 1, 1, id_of(1, 1), 10 * MR_SECOND, MR_OSTORE_SEEK);
    assert_int_equal(effect(w, MR_OX_PULL)->source, MR_OSTORE_SEEK);
    struct mr_ostore_event unknown = {
        .type = MR_OE_FETCH_FAILED, .id = id_of(1, 1), .err = MR_EAGAIN};
    act(w, unknown);
    assert_null(effect(w, MR_OX_GOT));
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 5000, 5);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
}

static void a_second_source_is_tried_when_the_first_fails(void **state)
{
    struct world *w = *state;
    join(w, 1);
    get(w, 1, 1, id_of(1, 1), 10 * MR_SECOND, MR_OSTORE_SEEK);
    get(w, 1, 2, id_of(1, 1), 10 * MR_SECOND, 4);
    get(w, 1, 3, id_of(1, 1), 10 * MR_SECOND, 0);
    get(w, 1, 4, id_of(1, 1), 10 * MR_SECOND, MR_OSTORE_SEEK);
    /* There is no second pull: the core pulls an object from one source at a time. */
    assert_null(effect(w, MR_OX_PULL));
    struct mr_ostore_event unknown = {
        .type = MR_OE_FETCH_FAILED, .id = id_of(1, 1), .err = MR_EAGAIN};
    act(w, unknown);
    assert_int_equal(effect(w, MR_OX_PULL)->source, 4);
    unknown.err = MR_EAWAY;
    act(w, unknown);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_EAWAY);
    assert_null(effect(w, MR_OX_PULL));
}

static void the_last_holder_frees_the_object_unless_it_is_pinned(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    get(w, 1, 2, id_of(1, 1), 0, 0); /* GOT pins the object for client 1 */
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
    unhold(w, 1, id_of(1, 1), 5);
    assert_null(effect(w, MR_OX_EVICT));
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(1, 1)});
    assert_int_equal(effect(w, MR_OX_EVICT)->flags, 1);
    /* The shell cannot evict the object, because a page of pins still names it. */
    evicted(w, MR_EAGAIN);
    w->now = mr_ostore_deadline(w->s);
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    evicted(w, MR_OK);
    assert_non_null(effect(w, MR_OX_FREED));
    assert_non_null(effect(w, MR_OX_REMOVE));
}

static void a_held_object_is_deleted_only_by_force(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    struct mr_ostore_event ev = {.type = MR_OE_DELETE, .client = 1, .id = id_of(1, 1)};
    act(w, ev);
    assert_int_equal(effect(w, MR_OX_DONE)->err, MR_ESTATE);
    assert_int_equal(effect(w, MR_OX_DONE)->holder.kind, MR_HOLD_JOB);
    assert_int_equal(effect(w, MR_OX_DONE)->holder.key, 5);
    ev.flags = MR_OSTORE_FORCE;
    act(w, ev);
    assert_int_equal(effect(w, MR_OX_DONE)->err, MR_OK);
    assert_non_null(effect(w, MR_OX_EVICT));
}

static void a_dead_client_takes_only_what_it_held_alone(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 0);    /* client 1 alone holds this object */
    seal(w, 1, id_of(1, 2), segment, 8192, 1000, 5); /* job 5 holds this object */
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 1});
    evicted(w, MR_OK);
    struct mr_ostore_info info;
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_ENOENT);
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 2), &info), MR_OK);
    unhold(w, 2, id_of(1, 2), 5);
    evicted(w, MR_OK);
    /* The segment is empty and its writer is gone, so the core closes it. */
    assert_int_equal(effect(w, MR_OX_CLOSE)->segment, segment);
}

static void what_only_a_dead_client_vouches_for_is_offered_then_freed(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    seal(w, 1, id_of(1, 2), segment, 8192, 1000, 5);
    mr_object_id ids[4];
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 4), 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 1});
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 4), 2);
    for (uint64_t n = 1; n <= 2; n++)
        act(w, (struct mr_ostore_event){.type = MR_OE_OFFERED, .id = id_of(1, n)});
    /* The scheduler claims the second object. */
    act(w, (struct mr_ostore_event){
               .type = MR_OE_HOLD, .id = id_of(1, 2), .holder = {MR_HOLD_JOB, 0}});
    w->now += config.orphan_ns + 2 * MR_SECOND;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    evicted(w, MR_OK);
    struct mr_ostore_info info;
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_ENOENT);
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 2), &info), MR_OK);
}

static void writers_are_held_back_before_the_places_are_gone(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    uint32_t made = 0;
    while (mr_ostore_objects_left(w->s)) {
        made++;
        seal(w, 1, id_of(1, made), segment, made * 1024, 100, 5);
    }
    assert_int_equal(made, config.objects_max - 1 - config.objects_max / 8);
    /* Clients had begun these creates before the store reported itself full. The creates fill the
     * table. */
    for (; made < config.objects_max - 1; made++) {
        /* An object with this id exists already. */
        seal(w, 1, id_of(1, 1), segment, 5 * MIB, 100, 5);
        assert_null(effect(w, MR_OX_REFUSED));
        seal(w, 1, id_of(1, made + 1), segment, (made + 1) * 1024, 100, 5);
    }
    assert_null(effect(w, MR_OX_REFUSED));
    act(w, (struct mr_ostore_event){.type = MR_OE_RECOVERED, .id = id_of(7, 7), .bytes = 300});
    assert_int_equal(w->fx.n, 0); /* the file stays on disk, unknown to the core */
    seal(w, 1, id_of(1, 9999), segment, 4 * MIB, 100, 5);
    assert_true(mr_object_id_eq(effect(w, MR_OX_REFUSED)->id, id_of(1, 9999)));
    assert_int_equal(effect(w, MR_OX_REFUSED)->client, 1);
    assert_true(mr_object_id_eq(effect(w, MR_OX_LOST)->id, id_of(1, 9999)));
    assert_non_null(effect(w, MR_OX_FREED));
    struct mr_store_stats stats;
    mr_ostore_stats(w->s, &stats);
    assert_int_equal(stats.seals_refused, 1);
    for (uint64_t n = 1; n <= 60; n++) {
        unhold(w, 1, id_of(1, n), 5);
        evicted(w, MR_OK);
    }
    assert_true(mr_ostore_objects_left(w->s) > 0);
}

static void pinned_bytes_are_those_of_pinned_objects(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    struct mr_store_stats stats;
    for (uint64_t request = 1; request <= 2; request++) {
        get(w, 1, request, id_of(1, 1), 0, 0);
        mr_ostore_stats(w->s, &stats);
        assert_int_equal(stats.pinned_bytes, 1000);
    }
    for (int left = 1; left >= 0; left--) {
        act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(1, 1)});
        mr_ostore_stats(w->s, &stats);
        assert_int_equal(stats.pinned_bytes, left * 1000);
    }
}

static void a_scheduler_hears_of_what_jobs_lose(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    seal(w, 1, id_of(1, 2), segment, 8192, 1000, 5);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_DELETE, .client = 1, .id = id_of(1, 1), .flags = MR_OSTORE_FORCE});
    assert_true(mr_object_id_eq(effect(w, MR_OX_LOST)->id, id_of(1, 1)));
    /* Key 0 ends the holds of all jobs. So no job is left that could lose the object. */
    unhold(w, 1, id_of(1, 2), 0);
    assert_null(effect(w, MR_OX_LOST));
    assert_non_null(effect(w, MR_OX_EVICT));
}

/* Each of two clients has pinned half of the memory and wants more. The younger request fails, so
 * that its client unpins. */
static void when_nothing_can_leave_the_youngest_lets_go(void **state)
{
    struct world *w = *state;
    for (uint32_t c = 1; c <= 2; c++) {
        join(w, c);
        uint32_t segment = grant(w, c, 32 * MIB);
        seal(w, c, id_of(c, 1), segment, 0, 31 * MIB, 5);
        get(w, c, 7, id_of(c, 1), 0, 0); /* GOT pins the object for client c */
    }
    /* Object (2, 1) was written ahead of need: it is on disk and still in memory. */
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id_of(2, 1)});
    for (uint32_t c = 1; c <= 2; c++)
        act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
                   .client = c,
                   .request = 70 + c,
                   .bytes = 8 * MIB,
                   .room = 8 * MIB,
                   .timeout = 60 * MR_SECOND});
    mr_time start = w->now;
    const struct mr_ostore_effect *x = NULL;
    while (!(x = effect(w, MR_OX_GRANTED)) && w->now < start + 10 * MR_SECOND) {
        w->now = mr_ostore_deadline(w->s);
        act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    }
    assert_non_null(x);
    assert_int_equal(x->err, MR_ELIMIT);
    assert_int_equal(x->client, 2);
    assert_true(w->now >= start + MR_SECOND / 4 && w->now <= start + 5 * MR_SECOND);
}

static void a_full_store_spills_the_least_used_and_restores_it(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    for (uint64_t n = 1; n <= 8; n++) {
        uint32_t segment = grant(w, 1, 8 * MIB);
        assert_true(segment);
        seal(w, 1, id_of(1, n), segment, 0, 6 * MIB, 5);
    }
    get(w, 1, 3, id_of(1, 1), 0, 0); /* pinned objects cannot be spilled */
    assert_false(grant(w, 9, 8 * MIB));
    /* Before the core spills objects, it asks all clients for their empty segments. */
    assert_int_equal(effect(w, MR_OX_RECLAIM)->client, 1);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1});
    assert_null(effect(w, MR_OX_WRITE));
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 9});
    const struct mr_ostore_effect *x = effect(w, MR_OX_WRITE);
    assert_true(mr_object_id_eq(x->id, id_of(1, 2)));
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id_of(1, 2)});
    evicted(w, MR_OK);
    assert_non_null(effect(w, MR_OX_FREED));
    assert_non_null(effect(w, MR_OX_RECLAIM));
    uint32_t segment = effect(w, MR_OX_FREED)->segment;
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = segment});
    assert_int_equal(effect(w, MR_OX_GRANTED)->client, 9);
    uint32_t mine = effect(w, MR_OX_GRANTED)->segment;
    get(w, 1, 4, id_of(1, 2), MR_SECOND, 0);
    assert_true(mr_object_id_eq(effect(w, MR_OX_RESTORE)->id, id_of(1, 2)));
    seal(w, 9, id_of(1, 2), mine, 0, 6 * MIB, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
}

/* Client 9 asks for a segment of `bytes`. */
static void nine_asks(struct world *w, uint64_t bytes)
{
    act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
               .client = 9,
               .request = 1,
               .bytes = bytes,
               .room = bytes,
               .timeout = 60 * MR_SECOND});
}

/* Client 1 has seven segments in use and an empty one. The core asks client 1 for the empty
 * segment, and client 1 does not answer yet. */
static void ask_for_empty(struct world *w)
{
    join(w, 1);
    join(w, 9);
    for (uint64_t n = 1; n <= 8; n++)
        seal(w, 1, id_of(1, n), grant(w, 1, 8 * MIB), 0, 6 * MIB, 5);
    unhold(w, 1, id_of(1, 8), 5);
    evicted(w, MR_OK);
    nine_asks(w, 8 * MIB);
    assert_int_equal(effect(w, MR_OX_RECLAIM)->client, 1);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 9});
}

static void nothing_is_spilled_while_a_busy_client_has_an_empty_segment(void **state)
{
    struct world *w = *state;
    ask_for_empty(w);
    for (mr_time end = w->now + MR_SECOND / 2; w->now < end; tick(w))
        assert_null(effect(w, MR_OX_WRITE));
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = 8});
    assert_int_equal(effect(w, MR_OX_GRANTED)->client, 9);
}

static void the_empty_segments_of_a_stopped_client_are_not_waited_for(void **state)
{
    struct world *w = *state;
    ask_for_empty(w);
    mr_time start = w->now;
    while (!effect(w, MR_OX_WRITE) && w->now < start + 10 * MR_SECOND)
        tick(w);
    assert_in_range(w->now - start, MR_SECOND, MR_SECOND + MR_SECOND / 10);
}

static void the_empty_segments_of_several_busy_clients_count_together(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    join(w, 9);
    for (uint32_t n = 1; n <= 8; n++) {
        uint32_t client = n < 5 ? 1 : 2;
        seal(w, client, id_of(client, n), grant(w, client, 8 * MIB), 0, 6 * MIB, 5);
        if (n % 4) continue;
        /* The last segment of each client is empty. */
        unhold(w, client, id_of(client, n), 5);
        evicted(w, MR_OK);
    }
    nine_asks(w, 16 * MIB);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 9});
    for (mr_time end = w->now + MR_SECOND / 2; w->now < end; tick(w))
        assert_null(effect(w, MR_OX_WRITE));
    /* Client 1 answers that it has no empty segment. */
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1});
    assert_non_null(effect(w, MR_OX_WRITE));
}

static void a_busy_client_is_not_waited_for_when_its_empty_segments_are_not_enough(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    for (uint64_t n = 1; n <= 8; n++)
        seal(w, 1, id_of(1, n), grant(w, 1, 8 * MIB), 0, 6 * MIB, 5);
    assert_false(grant(w, 9, 8 * MIB));
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 9});
    w->now += MR_SECOND / 10;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    assert_non_null(effect(w, MR_OX_WRITE));
}

#define LARGE (7 * MIB - 4096)

/* Fills a store of 64 MiB with 49 MiB of large objects, last used at second 1, and with small
 * objects, last used at second 2. */
static void fill(struct world *w)
{
    join(w, 1);
    for (uint64_t n = 1; n <= 7; n++)
        seal(w, 1, id_of(1, n), grant(w, 1, 7 * MIB), 0, LARGE, 5);
    w->now += MR_SECOND;
    uint32_t segment = grant(w, 1, 8 * MIB);
    for (uint64_t n = 0; n < 16; n++)
        seal(w, 1, id_of(1, 101 + n), segment, n * MIB / 4, MR_SMALL_BYTES_MAX - 4096, 5);
    assert_null(effect(w, MR_OX_WRITE));
}

static void objects_leave_before_anybody_waits_and_large_ones_rather(void **state)
{
    struct world *w = *state;
    fill(w);
    uint32_t segment = grant(w, 1, 7 * MIB);
    assert_true(segment);
    seal(w, 1, id_of(1, 8), segment, 0, LARGE, 5);
    assert_true(mr_object_id_eq(effect(w, MR_OX_WRITE)->id, id_of(1, 1)));
}

static void what_is_in_use_does_not_leave_for_being_large(void **state)
{
    struct world *w = *state;
    fill(w);
    w->now += MR_SECOND;
    for (uint64_t n = 1; n <= 7; n++) {
        get(w, 1, n, id_of(1, n), 0, 0);
        act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(1, n)});
    }
    w->now += MR_SECOND / 10;
    seal(w, 1, id_of(1, 8), grant(w, 1, 7 * MIB), 0, LARGE, 5);
    assert_true(mr_object_id_eq(effect(w, MR_OX_WRITE)->id, id_of(1, 101)));
}

static void what_is_wanted_comes_back_before_anybody_gets_it(void **state)
{
    struct world *w = *state;
    fill(w);
    join(w, 9);
    seal(w, 1, id_of(1, 8), grant(w, 1, 7 * MIB), 0, LARGE, 5);
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id_of(1, 1)});
    evicted(w, MR_OK);
    struct mr_ostore_event want = {.type = MR_OE_WANT, .id = id_of(1, 1)};
    act(w, want);
    assert_non_null(effect(w, MR_OX_RESTORE));
    act(w, want);
    assert_null(effect(w, MR_OX_RESTORE)); /* the object is being restored already */
    want.id = id_of(1, 2);
    want.flags = MR_OSTORE_AT_ONCE;
    act(w, want);
    assert_null(effect(w, MR_OX_RESTORE)); /* the object is in memory */
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(1, 1), .err = MR_ELIMIT});
    get(w, 1, 3, id_of(1, 1), MR_SECOND, 0);
    assert_non_null(effect(w, MR_OX_RESTORE));
}

/* While the disk is full, the core tries to write one object from time to time, and no others. A
 * write that succeeds shows that the disk has room again. */
static void a_full_disk_is_tried_again_with_one_object_at_a_time(void **state)
{
    struct world *w = *state;
    ask_for_empty(w);
    /* Client 1 answers that it has no empty segment. */
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1});
    for (int i = 0; i < 100 && !effect(w, MR_OX_WRITE); i++)
        tick(w);
    mr_object_id ids[8];
    size_t n = 0;
    for (size_t i = 0; i < w->fx.n; i++)
        if (w->fx.items[i].type == MR_OX_WRITE) ids[n++] = w->fx.items[i].id;
    assert_true(n > 0);
    assert_false(mr_ostore_disk(w->s).is_full);
    for (size_t i = 0; i < n; i++)
        act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = ids[i], .err = MR_EDISKFULL});
    assert_true(mr_ostore_disk(w->s).is_full);
    assert_int_equal(mr_ostore_disk(w->s).write_failures, n);
    mr_time failed = w->now;
    for (int i = 0; i < 100000 && !effect(w, MR_OX_WRITE); i++) {
        w->now += 10 * MR_MS;
        act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
        /* The earlier request of client 9 may have failed, so client 9 asks again. */
        if (i % 100 == 0 && !effect(w, MR_OX_WRITE)) nine_asks(w, 8 * MIB);
    }
    assert_non_null(effect(w, MR_OX_WRITE));
    assert_true(w->now >= failed + 200 * MR_MS);
    size_t writes = 0;
    for (size_t i = 0; i < w->fx.n; i++)
        writes += w->fx.items[i].type == MR_OX_WRITE;
    assert_int_equal(writes, 1);
    ids[0] = effect(w, MR_OX_WRITE)->id;
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = ids[0]});
    assert_false(mr_ostore_disk(w->s).is_full);
}

static void what_is_persisted_outlives_its_holders(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_PERSIST, .client = 1, .request = 3, .id = id_of(1, 1)});
    assert_null(effect(w, MR_OX_DONE));
    assert_int_equal(effect(w, MR_OX_WRITE)->flags, MR_OSTORE_PERSISTED);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_WRITTEN, .id = id_of(1, 1), .flags = MR_OSTORE_PERSISTED});
    assert_int_equal(effect(w, MR_OX_DONE)->err, MR_OK);
    unhold(w, 1, id_of(1, 1), 5);
    struct mr_ostore_info info;
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_OK);
    assert_true(info.persisted);
    /* An object that has had a name is removed when its last holder is gone. */
    struct mr_ostore_event name = {
        .type = MR_OE_HOLD, .id = id_of(1, 1), .holder = {MR_HOLD_NAME, 77}};
    act(w, name);
    name.type = MR_OE_UNHOLD;
    act(w, name);
    evicted(w, MR_OK);
    assert_non_null(effect(w, MR_OX_ERASE));
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_ENOENT);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_get_before_the_seal_is_answered_by_the_seal),
        T(a_get_of_what_never_comes_times_out),
        T(one_pull_is_under_way_however_many_ask),
        T(what_nobody_has_yet_is_waited_for_after_the_search),
        T(a_second_source_is_tried_when_the_first_fails),
        T(the_last_holder_frees_the_object_unless_it_is_pinned),
        T(a_held_object_is_deleted_only_by_force),
        T(a_dead_client_takes_only_what_it_held_alone),
        T(what_only_a_dead_client_vouches_for_is_offered_then_freed),
        T(a_scheduler_hears_of_what_jobs_lose),
        T(writers_are_held_back_before_the_places_are_gone),
        T(pinned_bytes_are_those_of_pinned_objects),
        T(a_full_store_spills_the_least_used_and_restores_it),
        T(nothing_is_spilled_while_a_busy_client_has_an_empty_segment),
        T(the_empty_segments_of_a_stopped_client_are_not_waited_for),
        T(the_empty_segments_of_several_busy_clients_count_together),
        T(a_busy_client_is_not_waited_for_when_its_empty_segments_are_not_enough),
        T(objects_leave_before_anybody_waits_and_large_ones_rather),
        T(what_is_in_use_does_not_leave_for_being_large),
        T(what_is_wanted_comes_back_before_anybody_gets_it),
        T(when_nothing_can_leave_the_youngest_lets_go),
        T(a_full_disk_is_tried_again_with_one_object_at_a_time),
        T(what_is_persisted_outlives_its_holders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
