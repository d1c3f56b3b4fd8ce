/* Tests store/arena/segment: mapping, sealing, and populating pages before they are written. */
#include "store/arena/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

struct segment {
    int fd;
    uint64_t bytes;
    unsigned char *p;
};

static struct segment make(uint64_t bytes)
{
    struct segment g = {.bytes = bytes};
    void *p = NULL;
    assert_int_equal(mr_segment_make("test", bytes, &g.fd, NULL), MR_OK);
    assert_int_equal(mr_segment_map(g.fd, bytes, true, &p, NULL), MR_OK);
    assert_int_equal(mr_segment_seal(g.fd, NULL), MR_OK);
    g.p = p;
    return g;
}

static void drop(struct segment *g)
{
    mr_segment_unmap(g->p, g->bytes);
    (void)close(g->fd);
}

/* Returns the number of pages in [from, to) that are in memory. */
static uint64_t resident(const struct segment *g, uint64_t from, uint64_t to)
{
    static unsigned char there[8192];
    uint64_t pages = (to - from + 4095) / 4096, n = 0;
    assert_true(pages <= sizeof there);
    assert_int_equal(mincore(g->p + from, to - from, there), 0);
    for (uint64_t i = 0; i < pages; i++)
        n += there[i] & 1;
    return n;
}

static void a_large_segment_begins_at_a_huge_page(void **state)
{
    (void)state;
    struct segment g = make(5 * MIB + 4096);
    assert_int_equal((uintptr_t)g.p % MR_HUGE_BYTES, 0);
    void *reader = NULL;
    assert_int_equal(mr_segment_map(g.fd, g.bytes, false, &reader, NULL), MR_OK);
    assert_int_equal((uintptr_t)reader % MR_HUGE_BYTES, 0);
    memcpy(g.p + 5 * MIB, "the end", 7);
    assert_memory_equal((unsigned char *)reader + 5 * MIB, "the end", 7);
    mr_segment_unmap(reader, g.bytes);
    drop(&g);
}

static uint64_t address_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    (void)fclose(f);
    return (uint64_t)pages * 4096;
}

static void no_address_space_stays_behind_a_segment(void **state)
{
    (void)state;
    uint64_t before = address_space();
    for (int i = 0; i < 50; i++) {
        struct segment g = make(3 * MIB + 4096);
        assert_true(address_space() - before < 4 * MIB);
        drop(&g);
    }
    assert_true(address_space() - before < MIB);
}

static void pages_are_there_before_they_are_written(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        struct segment g = make(20 * MIB + 12288);
        bool huge = with;
        uint64_t end = mr_segment_warm(g.p, g.bytes, MIB + 100, g.bytes, &huge);
        assert_int_equal(end, g.bytes);
        assert_true(with || !huge);
        uint64_t from = MIB;
        assert_int_equal(resident(&g, from, g.bytes), (g.bytes - from) / 4096);
        if (!with) assert_int_equal(resident(&g, 0, from), 0);
        drop(&g);
    }
}

static void what_is_written_stays_when_more_pages_come(void **state)
{
    (void)state;
    struct segment g = make(12 * MIB);
    memset(g.p, 7, 3 * MIB + 5);
    bool huge = true;
    uint64_t end = mr_segment_warm(g.p, g.bytes, 3 * MIB + 5, 9 * MIB, &huge);
    assert_true(end >= 9 * MIB && end <= 10 * MIB);
    for (uint64_t i = 0; i < 3 * MIB + 5; i++)
        if (g.p[i] != 7) fail_msg("byte %llu has changed", (unsigned long long)i);
    for (uint64_t i = 3 * MIB + 5; i < 9 * MIB; i++)
        if (g.p[i]) fail_msg("byte %llu is not zero", (unsigned long long)i);
    drop(&g);
}

static void a_range_below_a_page_is_no_trouble(void **state)
{
    (void)state;
    struct segment g = make(8192);
    bool huge = true;
    assert_int_equal(mr_segment_warm(g.p, g.bytes, 10, 20, &huge), 20);
    assert_int_equal(resident(&g, 0, 4096), 1);
    assert_int_equal(mr_segment_warm(g.p, g.bytes, 20, 20, &huge), 20);
    drop(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_segment_begins_at_a_huge_page),
        cmocka_unit_test(no_address_space_stays_behind_a_segment),
        cmocka_unit_test(pages_are_there_before_they_are_written),
        cmocka_unit_test(what_is_written_stays_when_more_pages_come),
        cmocka_unit_test(a_range_below_a_page_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
