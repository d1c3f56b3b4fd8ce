/* Replaces a journal by a snapshot, in a real redis-server that is killed, emptied or set back to
 * an older state meanwhile. At any time Redis has either the whole old journal or the whole
 * snapshot. */
#include "tests/integration/journal_rig.h"

#define SNAPSHOT_RECORDS 40 /* number of records of 1 MiB each; a call to Redis carries four */

/* Context of a child process, which kills itself when record `dies_at`, or a later one, is
 * acknowledged. */
struct mortal {
    struct fixture *f;
    uint64_t dies_at;
};

static void die_when_acked(void *ctx, uint64_t sequence)
{
    struct mortal *m = ctx;
    atomic_store(&m->f->acked, sequence);
    if (sequence >= m->dies_at) (void)kill(getpid(), SIGKILL);
}

/* Runs in a child process. Replaces the journal by a snapshot of SNAPSHOT_RECORDS records, and
 * kills the process when the snapshot's record number `dies_after`, or a later one, is
 * acknowledged. */
static void snapshot_and_die(struct fixture *f, uint64_t dies_after)
{
    struct mortal m = {f, UINT64_MAX};
    struct mr_journal_info info;
    struct mr_journal *j = NULL;
    const struct mr_journal_config config = {
        .address = f->server.address, .on_acked = die_when_acked, .ctx = &m};
    if (mr_journal_open(&config, 10 * MR_SECOND, ignore_record, &j, &info, NULL)) _exit(1);
    size_t n = (size_t)1 << 20;
    char *large = mr_alloc(n);
    memset(large, 'n', n);
    m.dies_at = info.sequence + dies_after;
    mr_journal_rewind(j);
    for (uint64_t i = 1; i <= SNAPSHOT_RECORDS; i++)
        mr_journal_append(j, info.sequence + i, mr_str_of(large, n));
    mr_journal_rewound(j);
    mr_journal_append(j, info.sequence + SNAPSHOT_RECORDS + 1, MR_STR("after it"));
    mr_journal_flush(j);
    for (int i = 0; i < 10000; i++)
        nap();
    _exit(2); /* never reached: die_when_acked kills the process */
}

static void an_empty_redis_asks_for_a_snapshot_even_when_idle(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 100);
    wait_acked(f, 100);
    redis_stop(&f->server);
    MR_AUTO(mr_free_ptr) char *aof = mr_format("%s/appendonlydir", f->server.dir);
    MR_AUTO(mr_free_ptr) char *gone = mr_format("%s/gone", f->server.dir);
    assert_int_equal(rename(aof, gone), 0);
    redis_start(&f->server);
    for (int i = 0; i < 5000 && !atomic_load(&f->rewinds); i++)
        nap();
    assert_int_equal(atomic_load(&f->rewinds), 1);
    mr_journal_rewind(j);
    append(j, 101, 103);
    mr_journal_rewound(j);
    mr_journal_flush(j);
    wait_acked(f, 103);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, 3);
    assert_int_equal(info.sequence, 103);
    assert_string_equal(f->last, "record 103");
    mr_journal_close(&j);
}

static void a_snapshot_takes_the_journal_s_place_whole_or_not_at_all(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    uint32_t olds = 0;
    uint32_t news = 0;
    for (uint64_t dies_after = 1; dies_after <= SNAPSHOT_RECORDS + 1; dies_after += 4) {
        struct mr_journal *j = journal_open(f, &info);
        /* The three records replace the journal, and are this round's old journal. */
        mr_journal_rewind(j);
        append(j, info.sequence + 1, info.sequence + 3);
        mr_journal_rewound(j);
        mr_journal_flush(j);
        uint64_t old = info.sequence + 3;
        wait_acked(f, old);
        mr_journal_close(&j);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) snapshot_and_die(f, dies_after);
        int status = 0;
        (void)waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        j = journal_open(f, &info);
        if (info.sequence == old) {
            olds++;
            assert_int_equal(f->loaded, 3);
        } else {
            news++;
            assert_true(info.sequence >= old + SNAPSHOT_RECORDS);
            assert_int_equal(f->loaded, info.sequence - old);
        }
        uint64_t next = info.sequence + 1; /* the journal that was found takes more records */
        append(j, next, next);
        wait_acked(f, next);
        mr_journal_close(&j);
    }
    assert_true(olds >= 3);
    assert_true(news >= 1);
}

static void a_redis_that_loses_half_a_snapshot_gets_another(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 10);
    wait_acked(f, 10);
    size_t n = (size_t)1 << 20;
    MR_AUTO(mr_free_ptr) char *large = mr_alloc(n);
    mr_journal_rewind(j);
    for (uint64_t i = 11; i <= 10 + SNAPSHOT_RECORDS; i++)
        mr_journal_append(j, i, mr_str_of(large, n));
    mr_journal_rewound(j);
    mr_journal_flush(j);
    for (int i = 0; i < 5000 && atomic_load(&f->acked) == 10; i++)
        nap();
    struct mr_str flush[] = {MR_STR("DEL"), MR_STR("millrace:journal:new")};
    if (atomic_load(&f->acked) < 10 + SNAPSHOT_RECORDS) command(f, 2, flush);
    for (int i = 0; i < 5000 && !atomic_load(&f->rewinds); i++) {
        nap();
        /* The snapshot was complete before the DEL, so Redis lacks nothing. */
        if (atomic_load(&f->acked) >= 10 + SNAPSHOT_RECORDS) break;
    }
    if (atomic_load(&f->rewinds)) {
        mr_journal_rewind(j);
        append(j, 11 + SNAPSHOT_RECORDS, 12 + SNAPSHOT_RECORDS);
        mr_journal_rewound(j);
        mr_journal_flush(j);
        wait_acked(f, 12 + SNAPSHOT_RECORDS);
    }
    bool again = atomic_load(&f->rewinds) > 0;
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, again ? 2 : SNAPSHOT_RECORDS);
    mr_journal_close(&j);
}

static void a_restart_of_redis_in_the_middle_of_a_snapshot_costs_nothing(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 10);
    wait_acked(f, 10);
    size_t n = (size_t)1 << 20;
    MR_AUTO(mr_free_ptr) char *large = mr_alloc(n);
    mr_journal_rewind(j);
    for (uint64_t i = 11; i <= 10 + SNAPSHOT_RECORDS; i++)
        mr_journal_append(j, i, mr_str_of(large, n));
    mr_journal_rewound(j);
    mr_journal_flush(j);
    for (int i = 0; i < 5000 && atomic_load(&f->acked) == 10; i++)
        nap();
    redis_stop(&f->server);
    redis_start(&f->server);
    wait_acked(f, 10 + SNAPSHOT_RECORDS);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, SNAPSHOT_RECORDS);
    assert_int_equal(info.sequence, 10 + SNAPSHOT_RECORDS);
    mr_journal_close(&j);
}

static void a_writer_that_dies_while_it_mends_an_old_redis_leaves_the_old_journal(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    MR_AUTO(mr_free_ptr) char *aof = mr_format("%s/appendonlydir", f->server.dir);
    MR_AUTO(mr_free_ptr) char *old = mr_format("%s/old", f->server.dir);
    append(j, 1, 10);
    wait_acked(f, 10);
    run("cp", "-r", aof, old);
    append(j, 11, 20);
    wait_acked(f, 20);
    redis_stop(&f->server);
    run("rm", "-rf", "--", aof);
    assert_int_equal(rename(old, aof), 0);
    redis_start(&f->server);
    for (int i = 0; i < 5000 && !atomic_load(&f->rewinds); i++)
        nap();
    assert_int_equal(atomic_load(&f->rewinds), 1); /* Redis has 10 of the 20 records */
    /* This process closes the journal without writing the snapshot that on_rewind asks for. It
     * stands for a writer that dies. */
    mr_journal_close(&j);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) snapshot_and_die(f, 4); /* a second writer dies amid its snapshot */
    (void)waitpid(pid, NULL, 0);
    j = journal_open(f, &info);
    assert_int_equal(info.sequence, 10);
    assert_int_equal(f->loaded, 10);
    assert_string_equal(f->last, "record 10");
    mr_journal_rewind(j);
    append(j, 11, 13);
    mr_journal_rewound(j);
    mr_journal_flush(j);
    for (int i = 0; i < 5000 && atomic_load(&f->acked) != 13; i++)
        nap();
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(info.sequence, 13);
    assert_int_equal(f->loaded, 3);
    mr_journal_close(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_redis_asks_for_a_snapshot_even_when_idle),
        TEST(a_snapshot_takes_the_journal_s_place_whole_or_not_at_all),
        TEST(a_redis_that_loses_half_a_snapshot_gets_another),
        TEST(a_restart_of_redis_in_the_middle_of_a_snapshot_costs_nothing),
        TEST(a_writer_that_dies_while_it_mends_an_old_redis_leaves_the_old_journal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
