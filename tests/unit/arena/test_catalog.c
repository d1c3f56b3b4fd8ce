/* Tests store/arena/catalog within one process: the shared directory of objects, and the pages on
 * which clients pin objects. */
#include "store/arena/catalog.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ENTRIES 300u

struct fixture {
    void *memory;
    struct mr_catalog writer;
    struct mr_catalog reader;
    struct mr_pin_page *page;
};

static int setup(void **state)
{
    struct fixture *f = mr_alloc(sizeof *f);
    f->memory = mr_alloc_aligned(mr_catalog_bytes(ENTRIES), 64);
    mr_catalog_format(&f->writer, f->memory, ENTRIES, (mr_node_id){42});
    assert_int_equal(
        mr_catalog_attach(&f->reader, f->memory, mr_catalog_bytes(ENTRIES), NULL), MR_OK);
    f->page = mr_alloc_aligned(mr_align_up(sizeof *f->page, 64), 64);
    mr_pin_page_format(f->page);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mr_release(f->page);
    mr_release(f->memory);
    mr_release(f);
    return 0;
}

static mr_object_id id_of(uint64_t n)
{
    return (mr_object_id){99, n};
}

static void only_a_published_object_can_be_pinned(void **state)
{
    struct fixture *f = *state;
    struct mr_dir_place at;
    mr_catalog_add(&f->writer, 5, id_of(1));
    assert_false(mr_catalog_pin(&f->reader, id_of(1), &f->page->slots[0], &at));
    mr_catalog_publish(&f->writer, 5, 3, 4096, 77);
    assert_true(mr_catalog_pin(&f->reader, id_of(1), &f->page->slots[0], &at));
    assert_int_equal(at.entry, 5);
    assert_int_equal(at.segment, 3);
    assert_int_equal(at.offset, 4096);
    assert_int_equal(at.bytes, 77);
    assert_false(mr_catalog_pin(&f->reader, id_of(2), &f->page->slots[1], &at));
    mr_catalog_mark(&f->writer, 5);
    assert_false(mr_catalog_pin(&f->reader, id_of(1), &f->page->slots[1], &at));
    assert_int_equal(atomic_load(&f->page->slots[1]), 0);
    mr_catalog_back_off(&f->writer, 5);
    assert_true(mr_catalog_pin(&f->reader, id_of(1), &f->page->slots[1], &at));
}

static void count_seen(void *ctx, uint32_t entry)
{
    (void)entry;
    ++*(uint32_t *)ctx;
}

static void a_scan_sees_pins_of_this_generation_only(void **state)
{
    struct fixture *f = *state;
    struct mr_dir_place at;
    mr_catalog_add(&f->writer, 5, id_of(1));
    mr_catalog_publish(&f->writer, 5, 3, 4096, 77);
    assert_true(mr_catalog_pin(&f->reader, id_of(1), &f->page->slots[0], &at));
    f->page->slots_used = 1;
    uint32_t seen = 0;
    mr_catalog_mark(&f->writer, 5);
    mr_pin_page_scan(&f->writer, f->page, count_seen, &seen);
    assert_int_equal(seen, 1);
    /* A real evictor would not commit now, because the scan has found a pin. The test commits, so
     * that the pin becomes stale. */
    mr_catalog_commit(&f->writer, 5);
    seen = 0;
    mr_pin_page_scan(&f->writer, f->page, count_seen, &seen);
    assert_int_equal(seen, 0);
}

static void a_page_full_of_nonsense_is_harmless(void **state)
{
    struct fixture *f = *state;
    struct mr_rng r;
    mr_rng_init(&r, 5);
    uint64_t *words = (uint64_t *)(void *)f->page;
    for (size_t i = 0; i < sizeof *f->page / 8; i++)
        words[i] = mr_rng_next(&r);
    uint32_t seen = 0;
    uint32_t from = 0;
    mr_pin_page_scan(&f->writer, f->page, count_seen, &seen);
    mr_pin_page_recent(&f->writer, f->page, &from, count_seen, &seen);
    assert_int_equal(seen, 0);
    assert_false(mr_pin_page_is_valid(f->page));
}

static void a_directory_cut_short_is_refused(void **state)
{
    struct fixture *f = *state;
    struct mr_catalog d;
    uint64_t bytes = mr_catalog_bytes(ENTRIES);
    assert_int_equal(mr_catalog_attach(&d, f->memory, 10, NULL), MR_EFORMAT);
    assert_int_equal(mr_catalog_attach(&d, f->memory, bytes - 8192, NULL), MR_EFORMAT);
    f->writer.head->slots_count = 63;
    assert_int_equal(mr_catalog_attach(&d, f->memory, bytes, NULL), MR_EFORMAT);
}

static void every_object_is_found_after_much_coming_and_going(void **state)
{
    struct fixture *f = *state;
    struct mr_rng r;
    mr_rng_init(&r, 11);
    uint64_t in[ENTRIES] = {0};
    uint64_t next = 0;
    for (int i = 0; i < 20000; i++) {
        uint32_t entry = 1 + (uint32_t)mr_rng_below(&r, ENTRIES - 1);
        struct mr_dir_place at;
        if (!in[entry]) {
            in[entry] = ++next;
            mr_catalog_add(&f->writer, entry, id_of(next));
            mr_catalog_publish(&f->writer, entry, 1, entry * 64, entry);
        } else {
            assert_true(mr_catalog_pin(&f->reader, id_of(in[entry]), &f->page->slots[0], &at));
            assert_int_equal(at.entry, entry);
            assert_int_equal(at.bytes, entry);
            mr_catalog_mark(&f->writer, entry);
            mr_catalog_commit(&f->writer, entry);
            mr_catalog_remove(&f->writer, entry);
            assert_false(mr_catalog_pin(&f->reader, id_of(in[entry]), &f->page->slots[0], &at));
            in[entry] = 0;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_a_published_object_can_be_pinned, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scan_sees_pins_of_this_generation_only, setup, teardown),
        cmocka_unit_test_setup_teardown(a_page_full_of_nonsense_is_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_cut_short_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(
            every_object_is_found_after_much_coming_and_going, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
