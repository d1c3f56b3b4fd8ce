/* The object store's core: which segments clients are granted, how long clients wait for them, and
 * which objects leave memory (are evicted) to make room for new segments. */
#include "tests/unit/objectstore/rig.h"

static const struct mr_ostore_effect *ask(
    struct world *w, uint32_t client, uint64_t bytes, uint64_t least, mr_duration timeout)
{
    static uint64_t request = 1000;
    act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
               .client = client,
               .request = ++request,
               .bytes = bytes,
               .room = least,
               .timeout = timeout});
    const struct mr_ostore_effect *x = effect(w, MR_OX_GRANTED);
    if (x && x->request == request) assert_int_equal(x->client, client);
    return x && x->request == request ? x : NULL;
}

static void a_grant_is_of_whole_pages_and_at_most_what_there_is(void **state)
{
    struct world *w = *state;
    join(w, 1);
    /* The last argument is the timeout. With timeout 0 the core answers at once: it grants a
     * segment, or it refuses. */
    assert_int_equal(ask(w, 1, 5000, 5000, 0)->bytes, 8192);
    assert_int_equal(ask(w, 1, 128 * MIB, 100, 0)->bytes, 64 * MIB - 8192);
    assert_int_equal(ask(w, 1, 4096, 4096, 0)->err, MR_ELIMIT);
    assert_null(ask(w, 1, 4096, 4096, MR_SECOND));
    assert_int_equal(ask(w, 1, 4096, 0, MR_SECOND)->err, MR_ETOOBIG);
    assert_int_equal(ask(w, 1, 4096, 4097, MR_SECOND)->err, MR_ETOOBIG);
    assert_int_equal(ask(w, 1, 65 * MIB, 65 * MIB, MR_SECOND)->err, MR_ETOOBIG);
    assert_null(ask(w, 4, 4096, 4096, MR_SECOND)); /* client 4 has not joined */
}

static void a_grant_that_waits_too_long_is_refused(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    seal(w, 2, id_of(2, 1), ask(w, 2, 64 * MIB, 64 * MIB, 0)->segment, 0, 60 * MIB, 5);
    get(w, 2, 3, id_of(2, 1), 0, 0);
    assert_null(ask(w, 1, 4096, 4096, 100 * MR_MS));
    assert_null(ask(w, 1, 8192, 8192, 300 * MR_MS));
    mr_time begin = w->now;
    for (uint32_t refused = 0, ticks = 0; refused < 2;) {
        assert_true(++ticks < 1000);
        tick(w);
        const struct mr_ostore_effect *x = effect(w, MR_OX_GRANTED);
        if (!x) continue;
        assert_int_equal(x->err, MR_ELIMIT);
        assert_int_equal(x->bytes, refused ? 8192 : 4096);
        assert_int_equal(w->now, begin + (refused ? 300 : 100) * MR_MS);
        refused++;
    }
}

static void a_cancelled_grant_is_not_answered(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = ask(w, 1, 64 * MIB, 64 * MIB, 0)->segment;
    for (uint64_t request = 1; request <= 3; request++)
        act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
                   .client = 1,
                   .request = request,
                   .bytes = 4096,
                   .room = 4096,
                   .timeout = MR_SECOND});
    act(w, (struct mr_ostore_event){.type = MR_OE_CANCEL, .client = 2, .request = 1});
    act(w, (struct mr_ostore_event){.type = MR_OE_CANCEL, .client = 1, .request = 2});
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = segment});
    assert_int_equal(count(w, MR_OX_GRANTED), 2);
    for (size_t i = 0; i < w->fx.n; i++)
        if (w->fx.items[i].type == MR_OX_GRANTED) assert_int_not_equal(w->fx.items[i].request, 2);
    (void)ask(w, 1, 64 * MIB, 8 * MIB, 0);
    for (uint64_t request = 4; request <= 5; request++)
        act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
                   .client = 1,
                   .request = request,
                   .bytes = 4096,
                   .room = 4096,
                   .timeout = MR_SECOND});
    for (int i = 0; i < 2; i++)
        act(w, (struct mr_ostore_event){.type = MR_OE_CANCEL, .client = 1, .request = 5});
    w->now += MR_SECOND;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    assert_int_equal(count(w, MR_OX_GRANTED), 1);
    assert_int_equal(effect(w, MR_OX_GRANTED)->request, 4);
}

static void so_many_grants_wait_and_no_more(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    (void)ask(w, 1, 64 * MIB, 64 * MIB, 0);
    for (uint32_t i = 0; i < 1024; i++)
        assert_null(ask(w, 1 + i % 2, 4096, 4096, MR_SECOND));
    assert_int_equal(ask(w, 1, 4096, 4096, MR_SECOND)->err, MR_ELIMIT);
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 2});
    assert_null(ask(w, 1, 4096, 4096, MR_SECOND));
}

/* If an object has to leave memory, objects that a client read lately stay. */
static void what_was_used_lately_leaves_last(void **state)
{
    struct world *w = *state;
    uint32_t objects[5];
    join(w, 1);
    for (uint64_t n = 1; n <= 4; n++) {
        seal(w, 1, id_of(1, n), ask(w, 1, 16 * MIB, 16 * MIB, 0)->segment, 0, 13 * MIB, 5);
        objects[n] = effect(w, MR_OX_PUBLISH)->object;
    }
    for (uint32_t n = 1; n <= 2; n++)
        act(w, (struct mr_ostore_event){.type = MR_OE_USED, .object = objects[n]});
    act(w, (struct mr_ostore_event){.type = MR_OE_USED, .object = 0});
    act(w, (struct mr_ostore_event){.type = MR_OE_USED, .object = 77});
    assert_null(ask(w, 1, 8 * MIB, 8 * MIB, MR_SECOND));
    /* Client 1 answers that it has no empty segment. */
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1});
    assert_true(mr_object_id_eq(effect(w, MR_OX_WRITE)->id, id_of(1, 3)));
}

/* ---- which objects leave memory -------------------------------------------------------------- */

/* Answers a RECLAIM: the client has no empty segment left. */
static void none_is_empty(struct world *w, uint32_t client)
{
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = client});
}

/* Client 1 fills `segments` segments of 8 MiB with 4 objects each. */
static void fill(struct world *w, uint32_t segments)
{
    join(w, 1);
    for (uint64_t n = 0; n < (uint64_t)segments * 4; n++) {
        if (n % 4 == 0) assert_int_equal(grant(w, 1, 8 * MIB), n / 4 + 1);
        seal(w, 1, id_of(1, n + 1), (uint32_t)n / 4 + 1, n % 4 * 2 * MIB, 2 * MIB - MR_EXTENT_HEAD,
            5);
    }
    assert_null(effect(w, MR_OX_WRITE));
}

static void as_much_leaves_as_all_that_wait_lack(void **state)
{
    struct world *w = *state;
    fill(w, 7); /* 8 MiB stay free */
    join(w, 2);
    assert_null(ask(w, 2, 9 * MIB, 9 * MIB, MR_SECOND));
    assert_int_equal(effect(w, MR_OX_RECLAIM)->bytes, MIB);
    assert_int_equal(count(w, MR_OX_RECLAIM), 2);
    none_is_empty(w, 1);
    assert_int_equal(count(w, MR_OX_WRITE), 0);
    none_is_empty(w, 2);
    assert_int_equal(count(w, MR_OX_WRITE), 1);
    assert_true(mr_object_id_eq(effect(w, MR_OX_WRITE)->id, id_of(1, 1)));
    assert_int_equal(effect(w, MR_OX_WRITE)->object, 1);
    assert_int_equal(effect(w, MR_OX_WRITE)->flags, 0);
    assert_null(ask(w, 2, 3 * MIB, 3 * MIB, MR_SECOND)); /* both requests together lack 4 MiB */
    assert_int_equal(count(w, MR_OX_WRITE), 1);
    /* At most 8 MiB, an eighth of the store's memory, leave at a time: four objects of 2 MiB. Two
     * objects are leaving already, so two more are written. */
    assert_null(ask(w, 2, 30 * MIB, 30 * MIB, MR_SECOND));
    assert_int_equal(count(w, MR_OX_WRITE), 2);
    written(w, id_of(1, 1), 0, MR_OK);
    assert_int_equal(effect(w, MR_OX_EVICT)->flags, 0);
}

static void so_many_objects_are_written_at_a_time_and_no_more(void **state)
{
    struct world *w = *state;
    fill(w, 7);
    join(w, 2);
    assert_null(ask(w, 2, 64 * MIB, 64 * MIB, 10 * MR_SECOND));
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    assert_int_equal(count(w, MR_OX_WRITE), 16);
    written(w, id_of(1, 3), 0, MR_OK);
    assert_int_equal(count(w, MR_OX_WRITE), 1);
    assert_true(mr_object_id_eq(effect(w, MR_OX_WRITE)->id, id_of(1, 17)));
}

/* A reader has pinned the objects in a page of shared memory. The core learns of such a pin only
 * when an eviction fails. */
static void what_was_found_pinned_is_tried_again_in_a_moment(void **state)
{
    struct world *w = *state;
    fill(w, 7);
    join(w, 2);
    assert_null(ask(w, 2, 9 * MIB, 9 * MIB, 400 * MR_MS));
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    /* Each object is written, and is then found to be pinned. */
    for (uint64_t n = 1; n <= 28; n++) {
        if (n > 1) assert_true(mr_object_id_eq(effect(w, MR_OX_WRITE)->id, id_of(1, n)));
        written(w, id_of(1, n), 0, MR_OK);
        evicted(w, MR_EAGAIN);
    }
    assert_null(effect(w, MR_OX_EVICT));
    mr_time tried = w->now;
    w->now += 20 * MR_MS - 1;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    assert_null(effect(w, MR_OX_EVICT));
    w->now++;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    assert_non_null(effect(w, MR_OX_EVICT));
    assert_int_equal(w->now, tried + 20 * MR_MS);
    get(w, 2, 6, id_of(1, 1), MR_SECOND, 0); /* the answer waits for the end of the eviction */
    assert_null(effect(w, MR_OX_GOT));
    act(w, (struct mr_ostore_event){.type = MR_OE_EVICT_DONE, .object = 1, .err = MR_EAGAIN});
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
    assert_int_equal(effect(w, MR_OX_GOT)->request, 6);
}

static void a_store_without_a_disk_drops_copies_only(void **state)
{
    struct world *w = *state;
    struct mr_ostore_config other = config;
    other.may_spill = false;
    begin_with(w, &other);
    fill(w, 7);
    join(w, 9);
    get(w, 1, 1, id_of(50, 1), MR_SECOND, 3);
    uint32_t segment = grant(w, 9, 8 * MIB);
    seal(w, 9, id_of(50, 1), segment, 0, 8 * MIB - MR_EXTENT_HEAD, 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(50, 1)});
    act(w, (struct mr_ostore_event){.type = MR_OE_PLACED, .id = id_of(50, 1)});
    assert_null(ask(w, 1, 4096, 4096, MR_SECOND));
    none_is_empty(w, 1);
    none_is_empty(w, 9);
    assert_null(effect(w, MR_OX_WRITE));
    assert_int_equal(effect(w, MR_OX_EVICT)->flags, 0);
    get(w, 1, 7, id_of(50, 1), MR_SECOND, 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_EVICT_DONE, .object = 29});
    assert_true(mr_object_id_eq(effect(w, MR_OX_UNPLACE)->id, id_of(50, 1)));
    assert_int_equal(there(w, id_of(50, 1)), MR_ENOENT);
    persist(w, 4, id_of(1, 1));
    assert_int_equal(effect(w, MR_OX_DONE)->err, MR_ESTATE);
    act(w, (struct mr_ostore_event){.type = MR_OE_DRAIN});
    assert_null(effect(w, MR_OX_WRITE));
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Client 1 fills the store and pins all objects, so no object can leave memory. */
static void fill_pinned(struct world *w)
{
    join(w, 1);
    for (uint64_t n = 1; n <= 8; n++) {
        seal(w, 1, id_of(1, n), grant(w, 1, 8 * MIB), 0, 7 * MIB, 5);
        get(w, 1, n, id_of(1, n), 0, 0);
    }
    join(w, 2);
}

static mr_time refused_at(struct world *w, uint32_t client)
{
    for (uint32_t ticks = 0; !effect(w, MR_OX_GRANTED);) {
        assert_true(++ticks < 1000);
        tick(w);
    }
    assert_int_equal(effect(w, MR_OX_GRANTED)->err, MR_ELIMIT);
    assert_int_equal(effect(w, MR_OX_GRANTED)->client, client);
    assert_int_equal(effect(w, MR_OX_GRANTED)->room, 0);
    return w->now;
}

/* Lets time pass until `end`, and checks that no request is answered meanwhile. Clients 1 and 2
 * answer that they have no empty segment. */
static void waits_until(struct world *w, mr_time end)
{
    while (mr_ostore_deadline(w->s) < end) {
        tick(w);
        assert_null(effect(w, MR_OX_GRANTED));
        for (uint32_t client = 1; client <= 2; client++) {
            none_is_empty(w, client);
            assert_null(effect(w, MR_OX_GRANTED));
        }
    }
    w->now = end;
}

static void a_grant_is_refused_when_nothing_could_leave_for_a_while(void **state)
{
    struct world *w = *state;
    fill_pinned(w);
    assert_null(ask(w, 2, 4096, 4096, 60 * MR_SECOND));
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    mr_time begin = w->now;
    assert_int_equal(refused_at(w, 2), begin + 500 * MR_MS);
}

/* A request that waits for a segment is not refused while memory becomes free, because more memory
 * may follow. */
static void a_grant_waits_on_while_memory_becomes_free(void **state)
{
    struct world *w = *state;
    fill_pinned(w);
    assert_null(ask(w, 2, 32 * MIB, 32 * MIB, 60 * MR_SECOND));
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    mr_time begin = w->now;
    w->now = begin + 400 * MR_MS;
    unhold(w, 1, id_of(1, 1), 5);
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(1, 1)});
    /* The eviction makes room in a segment. */
    act(w, (struct mr_ostore_event){.type = MR_OE_EVICT_DONE, .object = 1});
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    waits_until(w, begin + 800 * MR_MS);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = 1});
    assert_non_null(effect(w, MR_OX_CLOSE));
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    assert_in_range(refused_at(w, 2), begin + 1300 * MR_MS, begin + 1400 * MR_MS);
}

/* The time that a cancelled request has waited does not count for the next request. */
static void each_grant_waits_from_its_own_begin(void **state)
{
    struct world *w = *state;
    fill_pinned(w);
    act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
               .client = 2,
               .request = 7,
               .bytes = 4096,
               .room = 4096,
               .timeout = 60 * MR_SECOND});
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    w->now += 100 * MR_MS;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    w->now += 300 * MR_MS;
    act(w, (struct mr_ostore_event){.type = MR_OE_CANCEL, .client = 2, .request = 7});
    assert_null(ask(w, 2, 4096, 4096, 60 * MR_SECOND));
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    mr_time begin = w->now;
    assert_in_range(refused_at(w, 2), begin + 500 * MR_MS, begin + 540 * MR_MS);
}

static void a_grant_waits_for_a_write_that_is_running(void **state)
{
    struct world *w = *state;
    fill(w, 7);
    join(w, 2);
    assert_null(ask(w, 2, 9 * MIB, 9 * MIB, 60 * MR_SECOND));
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    for (mr_time end = w->now + 3 * MR_SECOND; w->now < end; tick(w))
        assert_null(effect(w, MR_OX_GRANTED));
    for (uint64_t n = 2; n <= 28; n++)
        get(w, 1, n, id_of(1, n), 0, 0); /* pins the object, so that it cannot leave */
    written(w, id_of(1, 1), 0, MR_EIO);
    mr_time failed = w->now;
    assert_in_range(refused_at(w, 2), failed + 480 * MR_MS, failed + 520 * MR_MS);
}

/* While a grant waits, all clients are asked for empty segments again and again. */
static void clients_are_asked_again_for_empty_segments(void **state)
{
    struct world *w = *state;
    fill_pinned(w);
    mr_time begin = w->now;
    assert_null(ask(w, 2, 4096, 4096, 60 * MR_SECOND));
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    do {
        assert_null(effect(w, MR_OX_GRANTED));
        tick(w);
    } while (!effect(w, MR_OX_RECLAIM));
    assert_int_equal(count(w, MR_OX_RECLAIM), 2);
    assert_int_equal(w->now, begin + 300 * MR_MS);
}

/* A client that has returned an empty segment is asked again, because the client possibly has
 * another one. */
static void a_client_that_gave_a_segment_is_asked_for_the_next(void **state)
{
    struct world *w = *state;
    fill(w, 7); /* 8 MiB stay free */
    join(w, 2);
    for (uint32_t n = 1; n <= 8; n++) {
        unhold(w, 1, id_of(1, n), 5);
        evicted(w, MR_OK);
    }
    assert_null(ask(w, 2, 24 * MIB, 24 * MIB, MR_SECOND));
    none_is_empty(w, 2);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = 1});
    none_is_empty(w, 1); /* ends client 1's answer */
    assert_int_equal(effect(w, MR_OX_RECLAIM)->client, 1);
    assert_null(effect(w, MR_OX_WRITE));
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = 2});
    assert_int_equal(effect(w, MR_OX_GRANTED)->bytes, 24 * MIB);
}

static void a_client_that_has_sealed_nothing_yet_is_asked_for_its_segment(void **state)
{
    struct world *w = *state;
    fill(w, 6); /* 16 MiB stay free */
    join(w, 2);
    act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
               .client = 2,
               .request = 7,
               .bytes = 20 * MIB,
               .room = 20 * MIB,
               .timeout = MR_SECOND});
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    act(w, (struct mr_ostore_event){.type = MR_OE_CANCEL, .client = 2, .request = 7});
    assert_int_equal(ask(w, 1, 16 * MIB, 16 * MIB, 0)->err, MR_OK);
    assert_null(ask(w, 2, 8 * MIB, 8 * MIB, MR_SECOND));
    assert_int_equal(count(w, MR_OX_RECLAIM), 1);
    assert_int_equal(effect(w, MR_OX_RECLAIM)->client, 1);
}

/* ---- segments -------------------------------------------------------------------------------- */

static void a_grant_is_of_whole_pages_of_any_memory(void **state)
{
    struct world *w = *state;
    struct mr_ostore_config other = config;
    other.memory_bytes = 1000000;
    begin_with(w, &other);
    join(w, 1);
    assert_int_equal(ask(w, 1, 2 * MIB, 100, 0)->bytes, 244 * 4096);
}

static void a_segment_that_was_given_back_is_no_segment(void **state)
{
    struct world *w = *state;
    join(w, 1);
    (void)grant(w, 1, 8 * MIB);
    uint32_t segment = grant(w, 1, 8 * MIB);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = segment});
    assert_int_equal(effect(w, MR_OX_CLOSE)->segment, segment);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    assert_int_equal(w->fx.n, 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = segment});
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = MR_SEGMENTS_MAX});
    assert_int_equal(w->fx.n, 0);
}

/* A client returns a segment that still has an object, which is a mistake of the client. */
static void a_segment_that_is_given_back_with_an_object_is_closed_when_it_is_empty(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 2, .segment = segment});
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = segment});
    assert_null(effect(w, MR_OX_CLOSE));
    assert_int_equal(there(w, id_of(1, 1)), MR_OK);
    seal(w, 1, id_of(1, 2), segment, 8192, 1000, 5);
    assert_int_equal(there(w, id_of(1, 2)), MR_ENOENT);
    unhold(w, 1, id_of(1, 1), 5);
    evicted(w, MR_OK);
    assert_int_equal(effect(w, MR_OX_CLOSE)->segment, segment);
    assert_null(effect(w, MR_OX_FREED));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_grant_is_of_whole_pages_and_at_most_what_there_is),
        T(a_grant_that_waits_too_long_is_refused),
        T(a_cancelled_grant_is_not_answered),
        T(so_many_grants_wait_and_no_more),
        T(what_was_used_lately_leaves_last),
        T(as_much_leaves_as_all_that_wait_lack),
        T(so_many_objects_are_written_at_a_time_and_no_more),
        T(what_was_found_pinned_is_tried_again_in_a_moment),
        T(a_store_without_a_disk_drops_copies_only),
        T(a_grant_is_refused_when_nothing_could_leave_for_a_while),
        T(a_grant_waits_on_while_memory_becomes_free),
        T(each_grant_waits_from_its_own_begin),
        T(a_grant_waits_for_a_write_that_is_running),
        T(clients_are_asked_again_for_empty_segments),
        T(a_grant_is_of_whole_pages_of_any_memory),
        T(a_segment_that_was_given_back_is_no_segment),
        T(a_segment_that_is_given_back_with_an_object_is_closed_when_it_is_empty),
        T(a_client_that_gave_a_segment_is_asked_for_the_next),
        T(a_client_that_has_sealed_nothing_yet_is_asked_for_its_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
