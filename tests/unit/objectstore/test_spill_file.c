/* The places of objects in a spill file are compared with a model. Damage to the file on disk is
 * noticed. */
#include "services/objectstore/disk/spill_file.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/rng.h"
#include "services/objectstore/disk/object_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)
#define OBJECTS 200u

struct rig {
    char dir[64];
    char path[96];
    char kept[96];
    struct mr_spill *spill;
};

static int set_up(void **state)
{
    struct rig *r = mr_alloc(sizeof *r);
    snprintf(r->dir, sizeof r->dir, "/tmp/mr-spill-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    snprintf(r->path, sizeof r->path, "%s/0", r->dir);
    snprintf(r->kept, sizeof r->kept, "%s/kept", r->dir);
    assert_int_equal(mr_spill_open(r->path, &r->spill, NULL), MR_OK);
    *state = r;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *r = *state;
    mr_spill_close(&r->spill);
    assert_int_equal(access(r->path, F_OK), -1);
    (void)unlink(r->kept);
    rmdir(r->dir);
    mr_release(r);
    return 0;
}

static mr_object_id id_of(uint64_t number)
{
    return (mr_object_id){77, number};
}

static unsigned char *bytes_of(uint64_t number, uint64_t n)
{
    unsigned char *p = mr_alloc(n ? n : 1);
    for (uint64_t i = 0; i < n; i++)
        p[i] = (unsigned char)(number * 31 + i * 7 + (i >> 12));
    return p;
}

static void put(struct rig *r, uint64_t number, uint64_t n)
{
    MR_AUTO(mr_free_ptr) unsigned char *p = bytes_of(number, n);
    assert_int_equal(mr_spill_write(r->spill, id_of(number), p, n, NULL), MR_OK);
}

static int get(struct rig *r, uint64_t number, uint64_t n)
{
    MR_AUTO(mr_free_ptr) unsigned char *p = bytes_of(number, n);
    MR_AUTO(mr_free_ptr) unsigned char *q = mr_alloc(n ? n : 1);
    struct mr_error e;
    int err = mr_spill_read(r->spill, id_of(number), q, n, &e);
    if (!err) assert_memory_equal(p, q, n);
    return err;
}

static void what_was_written_is_read_back_whatever_its_size(void **state)
{
    struct rig *r = *state;
    static const uint64_t sizes[] = {0, 1, 4031, 4032, 4033, 4096, 100000, MIB - 72, MIB - 1, MIB,
        MIB + 1, 2 * MIB, 3 * MIB + 4000, 5 * MIB - 104};
    for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        put(r, i, sizes[i]);
    mr_spill_check(r->spill);
    for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_int_equal(get(r, i, sizes[i]), MR_OK);
    assert_int_equal(get(r, 99, 1), MR_ENOENT);
    assert_int_equal(get(r, 5, 4095), MR_EFORMAT);
}

static void a_place_is_used_again_and_an_empty_file_has_no_bytes(void **state)
{
    struct rig *r = *state;
    put(r, 1, 100000);
    put(r, 2, 100000);
    struct mr_spill_stats before, after;
    mr_spill_stats(r->spill, &before);
    assert_true(mr_spill_erase(r->spill, id_of(1)));
    assert_false(mr_spill_erase(r->spill, id_of(1)));
    put(r, 3, 99000);
    mr_spill_stats(r->spill, &after);
    assert_int_equal(after.file_bytes, before.file_bytes);
    assert_int_equal(get(r, 1, 100000), MR_ENOENT);
    assert_int_equal(get(r, 2, 100000), MR_OK);
    assert_int_equal(get(r, 3, 99000), MR_OK);
    assert_true(mr_spill_erase(r->spill, id_of(2)));
    assert_true(mr_spill_erase(r->spill, id_of(3)));
    struct stat st;
    assert_int_equal(stat(r->path, &st), 0);
    assert_int_equal(st.st_size, 0);
    mr_spill_check(r->spill);
}

static void pages_of_free_places_go_back_when_they_are_many(void **state)
{
    struct rig *r = *state;
    put(r, 1, 4096);
    for (uint64_t i = 2; i < 12; i++)
        put(r, i, 32 * MIB);
    struct stat st;
    for (uint64_t i = 2; i < 12; i++)
        assert_true(mr_spill_erase(r->spill, id_of(i)));
    assert_int_equal(stat(r->path, &st), 0);
    assert_true((uint64_t)st.st_blocks * 512 < 200 * MIB);
    mr_spill_check(r->spill);
    put(r, 20, 32 * MIB);
    mr_spill_check(r->spill);
    assert_int_equal(get(r, 20, 32 * MIB), MR_OK);
    assert_int_equal(get(r, 1, 4096), MR_OK);
}

static void damaged_bytes_are_an_error(void **state)
{
    struct rig *r = *state;
    put(r, 1, 3 * MIB);
    put(r, 2, 5000);
    int fd = open(r->path, O_RDWR);
    unsigned char x = 0;
    assert_int_equal(pread(fd, &x, 1, 2 * (off_t)MIB + 5), 1);
    x ^= 1;
    assert_int_equal(pwrite(fd, &x, 1, 2 * (off_t)MIB + 5), 1);
    assert_int_equal(get(r, 1, 3 * MIB), MR_EFORMAT);
    assert_int_equal(get(r, 2, 5000), MR_OK);
    struct mr_error e;
    assert_int_equal(mr_spill_keep(r->spill, id_of(1), r->kept, &e), MR_EFORMAT);
    assert_int_equal(access(r->kept, F_OK), -1);
    /* The file is cut short, so the bytes of object 2 are missing. */
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(get(r, 2, 5000), MR_EFORMAT);
    close(fd);
}

static void what_is_kept_moves_to_a_file_of_its_own(void **state)
{
    struct rig *r = *state;
    put(r, 1, 2 * MIB + 77);
    assert_int_equal(mr_spill_keep(r->spill, id_of(1), r->kept, NULL), MR_OK);
    assert_int_equal(mr_spill_keep(r->spill, id_of(1), r->kept, NULL), MR_ENOENT);
    assert_int_equal(get(r, 1, 2 * MIB + 77), MR_ENOENT);
    MR_AUTO(mr_free_ptr) unsigned char *p = bytes_of(1, 2 * MIB + 77);
    MR_AUTO(mr_free_ptr) unsigned char *q = mr_alloc(2 * MIB + 77);
    assert_int_equal(mr_disk_file_read(r->kept, id_of(1), q, 2 * MIB + 77, NULL), MR_OK);
    assert_memory_equal(p, q, 2 * MIB + 77);
}

static void the_first_bytes_can_be_had_alone(void **state)
{
    struct rig *r = *state;
    put(r, 1, 3 * MIB);
    unsigned char head[64];
    struct mr_object_start start = {.p = head, .room = 64};
    assert_int_equal(mr_spill_peek(r->spill, id_of(1), &start, NULL), MR_OK);
    assert_int_equal(start.n, 64);
    assert_int_equal(start.bytes, 3 * MIB);
    MR_AUTO(mr_free_ptr) unsigned char *p = bytes_of(1, 64);
    assert_memory_equal(head, p, 64);
    assert_int_equal(mr_spill_peek(r->spill, id_of(2), &start, NULL), MR_ENOENT);
}

static void places_do_not_overlap_whatever_comes_and_goes(void **state)
{
    struct rig *r = *state;
    struct mr_rng rng;
    mr_rng_init(&rng, 20261121);
    uint64_t size[OBJECTS] = {0};
    bool there[OBJECTS] = {0};
    for (uint32_t i = 0; i < 3000; i++) {
        uint64_t x = mr_rng_below(&rng, OBJECTS);
        if (there[x]) {
            assert_int_equal(get(r, x, size[x]), MR_OK);
            assert_true(mr_spill_erase(r->spill, id_of(x)));
        } else {
            size[x] = mr_rng_below(&rng, (uint64_t)1 << (4 + mr_rng_below(&rng, 14)));
            put(r, x, size[x]);
        }
        there[x] = !there[x];
        if (i % 100 == 0) mr_spill_check(r->spill);
    }
    for (uint64_t x = 0; x < OBJECTS; x++)
        assert_int_equal(get(r, x, size[x]), there[x] ? MR_OK : MR_ENOENT);
    mr_spill_check(r->spill);
}

/* /dev/full stands for a full disk: every write to it fails with ENOSPC. */
static void a_full_disk_is_called_by_its_name(void **state)
{
    const struct rig *r = *state;
    struct mr_spill *full = NULL;
    struct mr_error e;
    MR_AUTO(mr_free_ptr) char *spill = mr_format("%s/full", r->dir);
    MR_AUTO(mr_free_ptr) char *kept = mr_format("%s/kept.tmp", r->dir);
    MR_AUTO(mr_free_ptr) unsigned char *p = bytes_of(1, 100000);
    assert_int_equal(symlink("/dev/full", spill), 0);
    assert_int_equal(symlink("/dev/full", kept), 0);
    assert_int_equal(mr_spill_open(spill, &full, NULL), MR_OK);
    assert_int_equal(mr_spill_write(full, id_of(1), p, 100000, &e), MR_EDISKFULL);
    assert_non_null(strstr(e.text, "No space left"));
    mr_spill_check(full);
    mr_spill_close(&full);
    assert_int_equal(mr_disk_file_write(r->kept, id_of(1), p, 100000, &e), MR_EDISKFULL);
    assert_int_equal(access(r->kept, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            what_was_written_is_read_back_whatever_its_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_place_is_used_again_and_an_empty_file_has_no_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            pages_of_free_places_go_back_when_they_are_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_bytes_are_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_disk_is_called_by_its_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_kept_moves_to_a_file_of_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_bytes_can_be_had_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            places_do_not_overlap_whatever_comes_and_goes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
