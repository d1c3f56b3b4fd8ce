/* Clients in control groups that limit their memory. The kernel charges a page of shared memory to
 * the group whose process writes the page first. So the core bounds the bytes of the segments that
 * a group's clients write. When a client of a full group needs a new segment, objects of the group
 * leave memory. */
#include "tests/unit/objectstore/rig.h"

#define LIMIT (40 * MIB)
#define OWN (4 * MIB)
#define MOST (28 * MIB) /* bytes of segments in the group: 80 % of LIMIT, minus OWN */
#define SEGMENT (8 * MIB)

static void limit(struct world *w, uint32_t client, uint64_t group)
{
    act(w, (struct mr_ostore_event){
               .type = MR_OE_LIMIT, .client = client, .group = group, .bytes = LIMIT, .room = OWN});
}

/* Answers the core's request for empty segments: `client` has none. */
static void none_is_empty(struct world *w, uint32_t client)
{
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = client});
}

/* Lets time pass until the core has the effect `type`. */
static const struct mr_ostore_effect *until(struct world *w, enum mr_ostore_effect_type type)
{
    for (int i = 0; i < 200 && !effect(w, type); i++) {
        w->now += 20 * MR_MS;
        if (i % 2)
            act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
        else
            none_is_empty(w, 1);
    }
    assert_non_null(effect(w, type));
    return effect(w, type);
}

/* Seals an object that fills a new segment; job 7 holds the object. */
static void full_segment(struct world *w, uint32_t client, uint64_t number)
{
    uint32_t segment = grant(w, client, SEGMENT);
    assert_int_not_equal(segment, 0);
    seal(w, client, id_of(client, number), segment, 0, SEGMENT - MR_EXTENT_HEAD, 7);
}

/* Client 1 is in a limited group and has three segments, all full. Client 2 has no limit. */
static void begin(struct world *w)
{
    join(w, 1);
    join(w, 2);
    limit(w, 1, 77);
    full_segment(w, 2, 1); /* this object is the least recently used one of the store */
    for (uint64_t i = 1; i <= 3; i++)
        full_segment(w, 1, i);
}

static void its_own_objects_leave_for_who_is_limited(void **state)
{
    struct world *w = *state;
    begin(w);
    /* 4 segments of 8 MiB exceed MOST, which is 28 MiB. */
    assert_int_equal(grant(w, 1, SEGMENT), 0);
    assert_null(effect(w, MR_OX_GRANTED));
    none_is_empty(w, 1);
    const struct mr_ostore_effect *x = effect(w, MR_OX_WRITE);
    assert_non_null(x);
    assert_true(mr_object_id_eq(x->id, id_of(1, 1)));
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id_of(1, 1)});
    evicted(w, MR_OK);
    x = effect(w, MR_OX_FREED);
    assert_non_null(x);
    assert_int_equal(x->client, 1);
    uint32_t empty = x->segment;
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = empty});
    x = effect(w, MR_OX_GRANTED);
    assert_non_null(x);
    assert_int_equal(x->err, 0);
    assert_int_equal(x->bytes, SEGMENT);
}

static void nobody_else_waits_behind_who_is_limited(void **state)
{
    struct world *w = *state;
    begin(w);
    assert_int_equal(grant(w, 1, SEGMENT), 0);
    assert_int_not_equal(grant(w, 2, SEGMENT), 0);
    join(w, 3);
    limit(w, 3, 78); /* client 3 is in another group */
    assert_int_not_equal(grant(w, 3, SEGMENT), 0);
}

static void what_a_group_never_has_room_for_is_refused_at_once(void **state)
{
    struct world *w = *state;
    begin(w);
    assert_int_equal(grant(w, 1, MOST + 1), 0);
    const struct mr_ostore_effect *x = effect(w, MR_OX_GRANTED);
    assert_non_null(x);
    assert_int_equal(x->err, MR_ETOOBIG);
    assert_int_equal(x->bytes, MOST + 1);
    assert_int_equal(x->room, MOST);
    assert_int_equal(grant(w, 2, config.memory_bytes + 1), 0);
    x = effect(w, MR_OX_GRANTED);
    assert_int_equal(x->err, MR_ETOOBIG);
    assert_int_equal(x->room, 0); /* 0: the store's own limit refuses the grant, not a group's */
}

static void clients_of_a_group_share_what_it_allows(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    limit(w, 1, 77);
    limit(w, 2, 77); /* for 2 clients the limit is 80 % of LIMIT, minus 2 × OWN: 24 MiB */
    full_segment(w, 1, 1);
    full_segment(w, 1, 2);
    full_segment(w, 2, 1);
    assert_int_equal(grant(w, 2, MIB), 0);
    assert_null(effect(w, MR_OX_GRANTED));
    /* The segments of a dead client still count for its group. */
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 1});
    join(w, 3);
    limit(w, 3, 77);
    assert_int_equal(grant(w, 3, MIB), 0);
    assert_null(effect(w, MR_OX_GRANTED));
    unhold(w, 3, id_of(1, 1), 7);
    /* When the last object of the dead client's first segment is evicted, the segment is closed and
     * no longer counts. */
    evicted(w, MR_OK);
    assert_non_null(effect(w, MR_OX_CLOSE));
    assert_non_null(effect(w, MR_OX_GRANTED));
}

/* A client's pinned inputs and its result do not fit into the group's limit together. The request
 * for the result's segment fails, the client unpins an input, and the core spills the input before
 * the client asks again. */
static void what_was_pinned_leaves_after_the_one_that_waited_gave_up(void **state)
{
    struct world *w = *state;
    begin(w);
    for (uint64_t i = 1; i <= 3; i++)
        get(w, 1, i, id_of(1, i), MR_SECOND, 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
               .client = 1,
               .request = 9,
               .bytes = SEGMENT,
               .room = SEGMENT,
               .timeout = 60 * MR_SECOND});
    const struct mr_ostore_effect *x = until(w, MR_OX_GRANTED);
    assert_int_equal(x->err, MR_ELIMIT);
    assert_int_equal(x->room, MOST);
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(1, 2)});
    x = until(w, MR_OX_WRITE);
    assert_true(mr_object_id_eq(x->id, id_of(1, 2)));
}

/* Clients pin the objects of a full group by writing to shared memory, so no event tells the core
 * of these pins. The core learns of a pin when an attempt to evict the object fails. Each failed
 * attempt delays the next attempt. A failed attempt must not count as progress, or the request for
 * a segment would wait until its timeout. */
static void what_is_pinned_in_a_page_does_not_keep_it_waiting(void **state)
{
    struct world *w = *state;
    begin(w);
    mr_time start = w->now;
    assert_int_equal(grant(w, 1, SEGMENT), 0);
    const struct mr_ostore_effect *x = NULL;
    while (!(x = effect(w, MR_OX_GRANTED)) && w->now < start + MR_SECOND) {
        const struct mr_ostore_effect *write = effect(w, MR_OX_WRITE);
        if (effect(w, MR_OX_EVICT)) {
            evicted(w, MR_EAGAIN);
        } else if (write) {
            act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = write->id});
        } else {
            w->now += 10 * MR_MS;
            none_is_empty(w, 1);
        }
    }
    assert_non_null(x);
    assert_int_equal(x->err, MR_ELIMIT);
    /* the answer comes before the timeout of the request */
    assert_true(w->now < start + MR_SECOND);
}

static void a_limit_after_the_first_segment_is_ignored(void **state)
{
    struct world *w = *state;
    join(w, 1);
    full_segment(w, 1, 1);
    limit(w, 1, 77);
    for (uint64_t i = 2; i <= 5; i++)
        full_segment(w, 1, i);
    join(w, 2);
    act(w, (struct mr_ostore_event){.type = MR_OE_LIMIT, .client = 2, .group = 0, .bytes = LIMIT});
    act(w, (struct mr_ostore_event){
               .type = MR_OE_LIMIT, .client = 2, .group = 5, .bytes = UINT64_MAX});
    act(w, (struct mr_ostore_event){.type = MR_OE_LIMIT, .client = 4, .group = 5, .bytes = LIMIT});
    full_segment(w, 2, 1);
}

/* ---- how many bytes leave memory, and when a request for a segment is refused ---------------- */

/* Asks for a segment. Returns the answer, or NULL if the request waits. */
static const struct mr_ostore_effect *ask(
    struct world *w, uint32_t client, uint64_t bytes, mr_duration timeout)
{
    act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
               .client = client,
               .request = 100 * client,
               .bytes = bytes,
               .room = bytes,
               .timeout = timeout});
    return effect(w, MR_OX_GRANTED);
}

/* Client 1 is in a limited group and fills 24 of its 28 MiB with objects of 2 MiB. */
static void fill_with_small(struct world *w)
{
    join(w, 1);
    limit(w, 1, 77);
    for (uint64_t n = 0; n < 12; n++) {
        if (n % 4 == 0) assert_int_equal(grant(w, 1, SEGMENT), n / 4 + 1);
        seal(w, 1, id_of(1, n + 1), (uint32_t)n / 4 + 1, n % 4 * 2 * MIB, 2 * MIB - MR_EXTENT_HEAD,
            7);
    }
}

static void as_much_of_a_group_leaves_as_all_that_wait_lack(void **state)
{
    struct world *w = *state;
    fill_with_small(w);
    assert_null(ask(w, 1, 5 * MIB, MR_SECOND));
    assert_int_equal(effect(w, MR_OX_RECLAIM)->bytes, MIB);
    none_is_empty(w, 1);
    assert_int_equal(count(w, MR_OX_WRITE), 1);
    assert_null(ask(w, 1, 3 * MIB, MR_SECOND)); /* both requests together lack 4 MiB */
    assert_int_equal(count(w, MR_OX_WRITE), 1);
    /* All requests together lack 24 MiB, but at most a quarter of MOST leaves memory at a time. */
    assert_null(ask(w, 1, 20 * MIB, MR_SECOND));
    assert_int_equal(count(w, MR_OX_WRITE), 2);
    assert_true(mr_ostore_deadline(w->s) <= w->now + 20 * MR_MS);
}

/* The group has 4 MiB left. A request for 1 MiB waits behind a request for 8 MiB. One object of
 * 8 MiB is to leave memory, which makes room for both requests. */
static void a_smaller_request_behind_a_larger_one_waits_with_it(void **state)
{
    struct world *w = *state;
    begin(w);
    assert_null(ask(w, 1, SEGMENT, MR_SECOND));
    assert_null(ask(w, 1, MIB, MR_SECOND));
    none_is_empty(w, 1);
    assert_int_equal(count(w, MR_OX_WRITE), 1);
}

static void pin_all(struct world *w, uint32_t client, uint64_t objects)
{
    for (uint64_t n = 1; n <= objects; n++)
        get(w, client, n, id_of(client, n), 0, 0);
}

static mr_time refused_at(struct world *w, uint32_t client)
{
    for (uint32_t ticks = 0; !effect(w, MR_OX_GRANTED);) {
        assert_true(++ticks < 1000);
        tick(w);
    }
    assert_int_equal(effect(w, MR_OX_GRANTED)->err, MR_ELIMIT);
    assert_int_equal(effect(w, MR_OX_GRANTED)->client, client);
    return w->now;
}

static void a_request_of_a_full_group_is_refused_after_a_while(void **state)
{
    struct world *w = *state;
    begin(w);
    pin_all(w, 1, 3);
    assert_null(ask(w, 1, SEGMENT, 60 * MR_SECOND));
    none_is_empty(w, 1);
    mr_time start = w->now;
    assert_int_equal(refused_at(w, 1), start + 500 * MR_MS);
    assert_int_equal(effect(w, MR_OX_GRANTED)->room, MOST);
}

static void a_request_of_a_group_waits_on_while_memory_of_the_group_becomes_free(void **state)
{
    struct world *w = *state;
    begin(w);
    pin_all(w, 1, 3);
    assert_null(ask(w, 1, 24 * MIB, 60 * MR_SECOND));
    none_is_empty(w, 1);
    mr_time start = w->now;
    w->now = start + 400 * MR_MS;
    unhold(w, 1, id_of(1, 1), 7);
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(1, 1)});
    evicted(w, MR_OK);
    none_is_empty(w, 1);
    while (mr_ostore_deadline(w->s) < start + 800 * MR_MS) {
        tick(w);
        assert_null(effect(w, MR_OX_GRANTED));
        none_is_empty(w, 1);
        assert_null(effect(w, MR_OX_GRANTED));
    }
    w->now = start + 800 * MR_MS;
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = 2});
    assert_non_null(effect(w, MR_OX_CLOSE));
    none_is_empty(w, 1);
    assert_in_range(refused_at(w, 1), start + 1300 * MR_MS, start + 1400 * MR_MS);
}

static void each_request_of_a_group_waits_from_its_own_begin(void **state)
{
    struct world *w = *state;
    begin(w);
    pin_all(w, 1, 3);
    assert_null(ask(w, 1, SEGMENT, 60 * MR_SECOND));
    none_is_empty(w, 1);
    w->now += 100 * MR_MS;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    w->now += 300 * MR_MS;
    act(w, (struct mr_ostore_event){.type = MR_OE_CANCEL, .client = 1, .request = 100});
    assert_null(ask(w, 1, SEGMENT, 60 * MR_SECOND));
    none_is_empty(w, 1);
    mr_time start = w->now;
    assert_in_range(refused_at(w, 1), start + 500 * MR_MS, start + 540 * MR_MS);
}

static void a_request_of_a_group_waits_for_a_write_of_the_group(void **state)
{
    struct world *w = *state;
    begin(w);
    assert_null(ask(w, 1, SEGMENT, 60 * MR_SECOND));
    none_is_empty(w, 1);
    assert_true(mr_object_id_eq(effect(w, MR_OX_WRITE)->id, id_of(1, 1)));
    for (mr_time end = w->now + 3 * MR_SECOND; w->now < end; tick(w))
        assert_null(effect(w, MR_OX_GRANTED));
    pin_all(w, 1, 3);
    written(w, id_of(1, 1), 0, MR_EIO);
    mr_time failed = w->now;
    assert_in_range(refused_at(w, 1), failed + 480 * MR_MS, failed + 520 * MR_MS);
}

static void a_refusal_is_for_the_group_that_is_stuck(void **state)
{
    struct world *w = *state;
    begin(w);
    pin_all(w, 1, 3);
    join(w, 3);
    limit(w, 3, 78);
    for (uint64_t n = 1; n <= 3; n++)
        full_segment(w, 3, n);
    pin_all(w, 3, 3);
    assert_null(ask(w, 1, SEGMENT, 60 * MR_SECOND));
    none_is_empty(w, 1);
    mr_time start = w->now;
    w->now += 100 * MR_MS;
    assert_null(ask(w, 3, SEGMENT, 60 * MR_SECOND));
    none_is_empty(w, 3);
    assert_int_equal(refused_at(w, 1), start + 500 * MR_MS);
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    assert_int_equal(refused_at(w, 3), start + 600 * MR_MS);
}

/* Requests of a full group wait for memory of the group. Other requests wait for memory of the
 * store. In both queues the youngest request is refused. */
static void a_refusal_is_for_one_of_those_that_lack_the_same_memory(void **state)
{
    struct world *w = *state;
    begin(w);
    for (uint64_t n = 2; n <= 4; n++)
        full_segment(w, 2, n);
    pin_all(w, 1, 3);
    pin_all(w, 2, 4);
    assert_null(ask(w, 1, SEGMENT, 60 * MR_SECOND));
    assert_null(ask(w, 2, 10 * MIB, 60 * MR_SECOND)); /* 8 MiB of the store are left */
    for (uint32_t i = 1; i <= 2; i++)
        assert_null(ask(w, 1, i * MIB, 60 * MR_SECOND));
    none_is_empty(w, 1);
    none_is_empty(w, 2);
    mr_time start = w->now;
    while (!effect(w, MR_OX_GRANTED))
        tick(w);
    assert_int_equal(w->now, start + 500 * MR_MS);
    assert_int_equal(count(w, MR_OX_GRANTED), 2);
    for (size_t i = 0; i < w->fx.n; i++) {
        const struct mr_ostore_effect *x = &w->fx.items[i];
        if (x->type != MR_OX_GRANTED) continue;
        assert_int_equal(x->bytes, x->client == 1 ? 2 * MIB : 10 * MIB);
        assert_int_equal(x->room, x->client == 1 ? MOST : 0);
    }
}

/* The store is full, but the client's group is not. */
static void a_client_of_a_group_that_is_refused_by_the_store_is_not_told_of_the_group(void **state)
{
    struct world *w = *state;
    join(w, 1);
    limit(w, 1, 77);
    join(w, 2);
    assert_true(grant(w, 2, 62 * MIB));
    assert_int_equal(ask(w, 1, 3 * MIB, 0)->err, MR_ELIMIT);
    assert_int_equal(effect(w, MR_OX_GRANTED)->room, 0);
}

static void a_share_is_of_whole_pages(void **state)
{
    struct world *w = *state;
    join(w, 1);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_LIMIT, .client = 1, .group = 77, .bytes = 1000000, .room = 0});
    assert_null(effect(w, MR_OX_GRANTED));
    assert_int_equal(ask(w, 1, 800000, 0)->err, MR_ETOOBIG);
    assert_int_equal(effect(w, MR_OX_GRANTED)->room, 195 * 4096);
    act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
               .client = 1,
               .request = 5,
               .bytes = MIB,
               .room = 100,
               .timeout = 0});
    assert_int_equal(effect(w, MR_OX_GRANTED)->bytes, 195 * 4096);
}

/* A group whose clients have gone keeps its row in the table until its last segment is closed. */
static void so_many_groups_are_limited_and_a_place_is_used_again(void **state)
{
    struct world *w = *state;
    for (uint32_t c = 11; c <= 26; c++) {
        join(w, c);
        limit(w, c, 100 + c);
        assert_int_equal(ask(w, c, MOST + 4096, 0)->err, MR_ETOOBIG);
        seal(w, c, id_of(c, 1), grant(w, c, MIB), 0, 1000, 7);
        act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = c});
    }
    join(w, 50);
    limit(w, 50, 200);
    /* The table of groups is full, so the client has no limit. */
    assert_true(grant(w, 50, MOST + 4096));
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 50});
    unhold(w, 1, id_of(15, 1), 7);
    evicted(w, MR_OK);
    assert_non_null(effect(w, MR_OX_CLOSE));
    join(w, 51);
    limit(w, 51, 201);
    assert_int_equal(ask(w, 51, MOST + 4096, 0)->err, MR_ETOOBIG);
    join(w, 52);
    limit(w, 52, 202);
    assert_true(grant(w, 52, MOST + 4096));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(its_own_objects_leave_for_who_is_limited),
        T(nobody_else_waits_behind_who_is_limited),
        T(what_a_group_never_has_room_for_is_refused_at_once),
        T(clients_of_a_group_share_what_it_allows),
        T(what_was_pinned_leaves_after_the_one_that_waited_gave_up),
        T(what_is_pinned_in_a_page_does_not_keep_it_waiting),
        T(a_limit_after_the_first_segment_is_ignored),
        T(as_much_of_a_group_leaves_as_all_that_wait_lack),
        T(a_smaller_request_behind_a_larger_one_waits_with_it),
        T(a_request_of_a_full_group_is_refused_after_a_while),
        T(a_request_of_a_group_waits_on_while_memory_of_the_group_becomes_free),
        T(each_request_of_a_group_waits_from_its_own_begin),
        T(a_request_of_a_group_waits_for_a_write_of_the_group),
        T(a_client_of_a_group_that_is_refused_by_the_store_is_not_told_of_the_group),
        T(a_share_is_of_whole_pages),
        T(so_many_groups_are_limited_and_a_place_is_used_again),
        T(a_refusal_is_for_the_group_that_is_stuck),
        T(a_refusal_is_for_one_of_those_that_lack_the_same_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
