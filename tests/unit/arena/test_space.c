/* Compares store/arena/space with a simple model, a list of rooms. A room is a block of a segment
 * of shared memory. */
#include "store/arena/space.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SLAB ((uint64_t)4 << 20)
#define SEGMENT ((uint64_t)64 << 20)
#define ROOMS_MAX 4000

static void small_objects_share_a_slab(void **state)
{
    (void)state;
    struct mr_space s;
    mr_space_init(&s, SLAB);
    struct mr_room a;
    struct mr_room b;
    assert_false(mr_space_take(&s, 1000, &a));
    mr_space_add(&s, 7, SEGMENT);
    assert_true(mr_space_take(&s, 1000, &a));
    assert_true(mr_space_take(&s, 1000, &b));
    assert_int_equal(a.segment, 7);
    assert_int_equal(b.offset, a.offset + a.bytes);
    assert_true(a.bytes >= 1000);
    assert_int_equal(a.offset % 64, 0);
    assert_int_equal(mr_space_give(&s, &a), MR_OK);
    assert_int_equal(mr_space_give(&s, &a), MR_EINVAL);
    mr_space_check(&s);
    mr_space_fini(&s);
}

static void an_empty_segment_is_given_up_and_a_used_one_is_not(void **state)
{
    (void)state;
    struct mr_space s;
    mr_space_init(&s, SLAB);
    mr_space_add(&s, 1, SEGMENT);
    struct mr_room room;
    uint32_t number = 0;
    assert_true(mr_space_take(&s, SEGMENT, &room));
    assert_false(mr_space_drop_empty(&s, &number));
    assert_int_equal(mr_space_give(&s, &room), MR_OK);
    assert_true(mr_space_take(&s, 100, &room));
    assert_false(mr_space_drop_empty(&s, &number));
    assert_int_equal(mr_space_give(&s, &room), MR_OK);
    /* The segment counts as empty: its only slab, which the space keeps, has no objects. */
    assert_true(mr_space_drop_empty(&s, &number));
    assert_int_equal(number, 1);
    mr_space_check(&s);
    mr_space_fini(&s);
}

static void what_was_never_given_out_is_refused(void **state)
{
    (void)state;
    struct mr_space s;
    mr_space_init(&s, SLAB);
    mr_space_add(&s, 1, SEGMENT);
    struct mr_room room;
    assert_true(mr_space_take(&s, 1 << 20, &room));
    struct mr_room wrong[] = {
        {2, room.offset, room.bytes},
        {1, room.offset + 4096, room.bytes},
        {1, room.offset, room.bytes - 4096},
        {1, SEGMENT, room.bytes},
        {1, UINT64_MAX, UINT64_MAX},
        {1, room.offset + room.bytes, 4096},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(mr_space_give(&s, &wrong[i]), MR_EINVAL);
    mr_space_check(&s);
    mr_space_fini(&s);
}

struct model {
    struct mr_room rooms[ROOMS_MAX];
    uint64_t asked[ROOMS_MAX];
    uint32_t count;
    uint64_t live_bytes;
};

static bool overlaps(const struct mr_room *a, const struct mr_room *b)
{
    return a->segment == b->segment && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

static uint64_t some_size(struct mr_rng *r)
{
    uint64_t top = (uint64_t)1 << (6 + mr_rng_below(r, 16)); /* a power of two from 64 B to 2 MiB */
    return 1 + mr_rng_below(r, top);
}

static void take_one(struct mr_space *s, struct model *m, struct mr_rng *r, uint32_t *segments)
{
    uint64_t bytes = some_size(r);
    struct mr_room room;
    if (!mr_space_take(s, bytes, &room)) {
        mr_space_add(s, ++*segments, SEGMENT);
        assert_true(mr_space_take(s, bytes, &room));
    }
    assert_true(room.bytes >= bytes);
    assert_true(room.offset + room.bytes <= SEGMENT);
    for (uint32_t i = 0; i < m->count; i++)
        assert_false(overlaps(&room, &m->rooms[i]));
    m->asked[m->count] = bytes;
    m->rooms[m->count++] = room;
    m->live_bytes += bytes;
}

static void rooms_never_overlap_and_all_come_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct mr_rng r;
        mr_rng_init(&r, seed);
        struct mr_space s;
        mr_space_init(&s, SLAB);
        struct model *m = mr_alloc(sizeof *m);
        uint32_t segments = 0;
        for (int i = 0; i < 6000; i++) {
            uint32_t aim = i / 1500 % 2 ? 100 : 900;
            if (m->count < aim || (m->count && mr_rng_below(&r, 2))) {
                if (m->count < ROOMS_MAX) take_one(&s, m, &r, &segments);
            }
            if (m->count > aim || mr_rng_below(&r, 3) == 0) {
                if (!m->count) continue;
                uint32_t at = (uint32_t)mr_rng_below(&r, m->count);
                assert_int_equal(mr_space_give(&s, &m->rooms[at]), MR_OK);
                m->live_bytes -= m->asked[at];
                m->count--;
                m->rooms[at] = m->rooms[m->count];
                m->asked[at] = m->asked[m->count];
            }
            if (i % 100 == 0) mr_space_check(&s);
        }
        while (m->count)
            assert_int_equal(mr_space_give(&s, &m->rooms[--m->count]), MR_OK);
        uint32_t number;
        for (uint32_t i = 0; i < segments; i++)
            assert_true(mr_space_drop_empty(&s, &number));
        assert_false(mr_space_drop_empty(&s, &number));
        assert_int_equal(s.committed_bytes, 0);
        mr_release(m);
        mr_space_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_objects_share_a_slab),
        cmocka_unit_test(an_empty_segment_is_given_up_and_a_used_one_is_not),
        cmocka_unit_test(what_was_never_given_out_is_refused),
        cmocka_unit_test(rooms_never_overlap_and_all_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
