/* Issue 11, 10: Clients in control groups that limit their memory. The kernel charges a page of
 * shared memory to the group that writes it first. So the core bounds the bytes of the segments
 * that a group's clients write, and objects leave memory when a client of a full group needs a new
 * segment. */
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

static void tick(struct world *w)
{
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
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
            tick(w);
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
    full_segment(w, 2, 1); /* the least recently used object of the store */
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
    assert_int_equal(x->room, 0); /* 0: the limit is the store's own, not a group's */
}

static void clients_of_a_group_share_what_it_allows(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    limit(w, 1, 77);
    limit(w, 2, 77); /* 2 clients: 80 % of LIMIT - 2 × OWN = 24 MiB */
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
    /* When its last object is evicted, the segment is closed and no longer counts. */
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

/* As above, but the pins are in shared pages, which the core sees only when it tries to evict. Each
 * failed attempt delays the next one. It must not count as progress, or the request would wait
 * until its timeout. */
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
    assert_true(w->now < start + MR_SECOND); /* before the timeout of the request */
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
