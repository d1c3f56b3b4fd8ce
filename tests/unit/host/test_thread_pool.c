#include "host/crew.h"

#include "base/defs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ITEMS 500

struct work {
    uint32_t done[ITEMS]; /* times */
    uint32_t hand[ITEMS];
    uint32_t in_hand[8]; /* items that a hand has done: nobody else counts there */
};

static void do_one(void *ctx, uint32_t item, uint32_t hand)
{
    struct work *w = ctx;
    w->done[item]++;
    w->hand[item] = hand;
    w->in_hand[hand]++;
}

static void every_item_is_done_once_and_seen_by_the_caller(void **state)
{
    (void)state;
    for (uint32_t hands = 1; hands <= 5; hands += 2) {
        struct mr_crew *c = mr_crew_new(hands);
        assert_int_equal(mr_crew_hands(c), hands);
        for (uint32_t round = 0; round < 200; round++) {
            struct work w = {.done = {0}};
            uint32_t count = round % 4 ? round % ITEMS : round / 4, all = 0;
            mr_crew_run(c, do_one, &w, count);
            for (uint32_t i = 0; i < ITEMS; i++) {
                assert_int_equal(w.done[i], i < count);
                assert_true(w.hand[i] < hands);
            }
            for (uint32_t i = 0; i < MR_ARRAY_LEN(w.in_hand); i++)
                all += w.in_hand[i];
            assert_int_equal(all, count);
        }
        mr_crew_free(&c);
        assert_null(c);
    }
}

static void there_is_a_hand_on_every_machine(void **state)
{
    (void)state;
    assert_int_equal(mr_crew_hands_here(1), 1);
    uint32_t n = mr_crew_hands_here(4);
    assert_true(n >= 1 && n <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_done_once_and_seen_by_the_caller),
        cmocka_unit_test(there_is_a_hand_on_every_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
