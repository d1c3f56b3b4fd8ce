/* store/meta against a real redis-server on a private socket: what is acknowledged is read back,
 * nothing is written twice, an empty Redis asks for a snapshot, a higher epoch refuses. */
#include "base/alloc.h"
#include "store/meta/journal.h"
#include "store/meta/redis.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    char address[128];
    pid_t redis;
    atomic_ullong acked;
    atomic_uint rewinds;
    atomic_uint refused;
    atomic_int here;
    atomic_uint told; /* how often the state was */
    char why[200];    /* of the last time it was away; written before `here` */
    uint64_t loaded;
    char last[64];
};

static void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void redis_start(struct fixture *f, bool keep)
{
    f->redis = fork();
    assert_true(f->redis >= 0);
    if (f->redis == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, 1);
        (void)execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", f->address + 5,
            "--dir", f->dir, "--save", "", "--appendonly", keep ? "yes" : "no", "--appendfsync",
            "always", (char *)NULL);
        _exit(127);
    }
}

static void redis_stop(struct fixture *f)
{
    (void)kill(f->redis, SIGKILL);
    (void)waitpid(f->redis, NULL, 0);
}

static int setup(void **state)
{
    struct fixture *f = mr_alloc(sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/mr-journal-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->address, sizeof f->address, "unix:%s/redis.sock", f->dir);
    redis_start(f, true);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    redis_stop(f);
    MR_AUTO(mr_free_ptr) char *command = mr_format("%s", f->dir);
    pid_t rm = fork();
    if (rm == 0) {
        (void)execlp("rm", "rm", "-rf", "--", command, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(rm, NULL, 0);
    mr_release(f);
    return 0;
}

static void on_acked(void *ctx, uint64_t sequence)
{
    atomic_store(&((struct fixture *)ctx)->acked, sequence);
}

static void on_rewind(void *ctx)
{
    atomic_fetch_add(&((struct fixture *)ctx)->rewinds, 1);
}

static void on_refused(void *ctx, uint32_t epoch)
{
    atomic_store(&((struct fixture *)ctx)->refused, epoch);
}

static void on_state(void *ctx, bool here, const char *why)
{
    struct fixture *f = ctx;
    if (!here) (void)snprintf(f->why, sizeof f->why, "%s", why);
    atomic_fetch_add(&f->told, 1);
    atomic_store(&f->here, here);
}

static int on_record(void *ctx, uint64_t sequence, struct mr_str record)
{
    struct fixture *f = ctx;
    f->loaded++;
    (void)sequence;
    (void)snprintf(f->last, sizeof f->last, "%.*s", MR_STR_ARG(record));
    return MR_OK;
}

static struct mr_journal *journal_open(struct fixture *f, struct mr_journal_info *info)
{
    const struct mr_journal_config config = {.address = f->address,
        .on_acked = on_acked,
        .on_state = on_state,
        .on_rewind = on_rewind,
        .on_refused = on_refused,
        .ctx = f};
    struct mr_journal *j = NULL;
    struct mr_error e = {0};
    f->loaded = 0;
    int err = mr_journal_open(&config, 10 * MR_SECOND, on_record, &j, info, &e);
    if (err) (void)fprintf(stderr, "%s\n", e.text);
    assert_int_equal(err, MR_OK);
    return j;
}

static void append(struct mr_journal *j, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i <= to; i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "record %u", (unsigned)i);
        mr_journal_append(j, i, mr_str_of(text, (size_t)n));
    }
    mr_journal_flush(j);
}

static void wait_acked(struct fixture *f, uint64_t sequence)
{
    for (int i = 0; i < 5000 && atomic_load(&f->acked) < sequence; i++)
        nap();
    assert_int_equal(atomic_load(&f->acked), sequence);
}

static void what_is_acknowledged_is_read_back_in_order(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    assert_int_equal(info.epoch, 1);
    append(j, 1, 5000);
    wait_acked(f, 5000);
    mr_journal_set_base(j, 2001);
    append(j, 5001, 5001);
    wait_acked(f, 5001);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.sequence, 5001);
    assert_int_equal(f->loaded, 3001);
    assert_string_equal(f->last, "record 5001");
    mr_journal_close(&j);
}

static void a_restart_of_redis_loses_and_repeats_nothing(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 100);
    wait_acked(f, 100);
    redis_stop(f);
    for (int i = 0; i < 2000 && atomic_load(&f->here); i++)
        nap();
    assert_false(mr_journal_is_here(j));
    append(j, 101, 300);
    assert_true(mr_journal_unacked_bytes(j) > 0);
    redis_start(f, true);
    wait_acked(f, 300);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, 300);
    assert_int_equal(atomic_load(&f->rewinds), 0);
    mr_journal_close(&j);
}

static void an_empty_redis_asks_for_a_snapshot_even_when_idle(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 100);
    wait_acked(f, 100);
    redis_stop(f);
    MR_AUTO(mr_free_ptr) char *aof = mr_format("%s/appendonlydir", f->dir);
    MR_AUTO(mr_free_ptr) char *gone = mr_format("%s/gone", f->dir);
    assert_int_equal(rename(aof, gone), 0);
    redis_start(f, true);
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

static void an_older_epoch_is_refused(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *old = journal_open(f, &info);
    append(old, 1, 3);
    wait_acked(f, 3);
    struct mr_journal *young = journal_open(f, &info);
    assert_int_equal(info.epoch, 2);
    append(old, 4, 4);
    for (int i = 0; i < 5000 && !atomic_load(&f->refused); i++)
        nap();
    assert_int_equal(atomic_load(&f->refused), 2);
    append(young, 4, 4);
    wait_acked(f, 4);
    uint32_t epoch = 0;
    assert_int_equal(mr_journal_raise_epoch(young, 9, &epoch, NULL), MR_OK);
    assert_int_equal(epoch, 9);
    mr_journal_close(&old);
    mr_journal_close(&young);
}

/* One command on a connection of its own. */
static void command(struct fixture *f, size_t argc, const struct mr_str *argv)
{
    const struct mr_redis_config config = {.address = f->address};
    struct mr_redis *r = NULL;
    struct mr_reply *reply = NULL;
    assert_int_equal(mr_redis_open(&config, &r, NULL), MR_OK);
    assert_int_equal(mr_redis_wait(r, 10 * MR_SECOND), MR_OK);
    assert_int_equal(mr_redis_call(r, argc, argv, &reply, NULL), MR_OK);
    mr_reply_free(&reply);
    mr_redis_close(&r);
}

static void a_redis_that_forgot_the_script_learns_it_again(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 10);
    wait_acked(f, 10);
    const struct mr_str forget[] = {MR_STR("SCRIPT"), MR_STR("FLUSH")};
    command(f, MR_ARRAY_LEN(forget), forget);
    for (uint64_t i = 11; i <= 20; i++)
        append(j, i, i); /* several calls under way */
    wait_acked(f, 20);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, 20);
    assert_int_equal(atomic_load(&f->rewinds), 0);
    mr_journal_close(&j);
}

static void out_of_memory_counts_as_away_and_loses_nothing(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 10);
    wait_acked(f, 10);
    struct mr_str limit[] = {
        MR_STR("CONFIG"), MR_STR("SET"), MR_STR("maxmemory"), MR_STR("100000")};
    command(f, MR_ARRAY_LEN(limit), limit);
    for (uint64_t i = 11; i <= 40; i++)
        append(j, i, i);
    bool away = false;
    for (int i = 0; i < 2000 && !away; i++) {
        nap();
        away = !atomic_load(&f->here);
    }
    assert_true(away);
    assert_int_equal(atomic_load(&f->acked), 10);
    limit[3] = MR_STR("0");
    command(f, MR_ARRAY_LEN(limit), limit);
    wait_acked(f, 40);
    assert_int_equal(atomic_load(&f->rewinds), 0);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, 40);
    mr_journal_close(&j);
}

static void records_larger_than_a_socket_keep_their_place(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    size_t n = (size_t)1 << 20;
    MR_AUTO(mr_free_ptr) char *large = mr_alloc(n);
    memset(large, 'x', n);
    for (uint64_t i = 1; i <= 30; i++) {
        mr_journal_append(j, i, i % 3 ? mr_str("small") : mr_str_of(large, n));
        mr_journal_flush(j);
    }
    wait_acked(f, 30);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, 30);
    mr_journal_close(&j);
}

#define SNAPSHOT_RECORDS 40 /* of 1 MiB: a call carries four */

/* In a process of its own: appends to an empty journal's old records, loses them (or has them
 * lost to it), writes a snapshot and dies at the first acknowledgement from `dies_at` on. */
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

static int ignore_record(void *ctx, uint64_t sequence, struct mr_str record)
{
    (void)ctx;
    (void)sequence;
    (void)record;
    return MR_OK;
}

static void snapshot_and_die(struct fixture *f, uint64_t dies_after)
{
    struct mortal m = {f, UINT64_MAX};
    struct mr_journal_info info;
    struct mr_journal *j = NULL;
    const struct mr_journal_config config = {
        .address = f->address, .on_acked = die_when_acked, .ctx = &m};
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
    _exit(2); /* not reached */
}

static void a_snapshot_takes_the_journal_s_place_whole_or_not_at_all(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    uint32_t olds = 0;
    uint32_t news = 0;
    for (uint64_t dies_after = 1; dies_after <= SNAPSHOT_RECORDS + 1; dies_after += 4) {
        struct mr_journal *j = journal_open(f, &info);
        mr_journal_rewind(j); /* begin anew: the old journal is three records */
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
        uint64_t next = info.sequence + 1; /* and it can be written to */
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
        if (atomic_load(&f->acked) >= 10 + SNAPSHOT_RECORDS) break; /* it was faster */
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
    redis_stop(f);
    redis_start(f, true);
    wait_acked(f, 10 + SNAPSHOT_RECORDS);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, SNAPSHOT_RECORDS);
    assert_int_equal(info.sequence, 10 + SNAPSHOT_RECORDS);
    mr_journal_close(&j);
}

/* Runs a program to its end. */
static void run(const char *program, const char *a, const char *b, const char *c)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execlp(program, program, a, b, c, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void a_writer_that_dies_while_it_mends_an_old_redis_leaves_the_old_journal(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    MR_AUTO(mr_free_ptr) char *aof = mr_format("%s/appendonlydir", f->dir);
    MR_AUTO(mr_free_ptr) char *old = mr_format("%s/old", f->dir);
    append(j, 1, 10);
    wait_acked(f, 10);
    run("cp", "-r", aof, old);
    append(j, 11, 20);
    wait_acked(f, 20);
    redis_stop(f);
    run("rm", "-rf", "--", aof);
    assert_int_equal(rename(old, aof), 0);
    redis_start(f, true);
    for (int i = 0; i < 5000 && !atomic_load(&f->rewinds); i++)
        nap();
    assert_int_equal(atomic_load(&f->rewinds), 1); /* it knows 10 of 20 */
    mr_journal_close(&j);                          /* the owner dies before it says anything, */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) snapshot_and_die(f, 4); /* or in the middle of it */
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

static uint64_t cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * MR_SECOND + (uint64_t)t.tv_nsec;
}

/* Puts a text where one of our keys belongs, and later takes it away again. */
static void a_foreign_key_is_named_and_waited_for(struct fixture *f, const char *key)
{
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    uint64_t at = info.sequence;
    append(j, at + 1, at + 10);
    wait_acked(f, at + 10);
    MR_AUTO(mr_free_ptr) char *aside = mr_format("%s.aside", key);
    const struct mr_str away[] = {MR_STR("RENAME"), mr_str(key), mr_str(aside)};
    const struct mr_str put[] = {MR_STR("SET"), mr_str(key), MR_STR("not yours")};
    const struct mr_str back[] = {MR_STR("RENAME"), mr_str(aside), mr_str(key)};
    const struct mr_str reset[] = {MR_STR("CONFIG"), MR_STR("RESETSTAT")};
    command(f, MR_ARRAY_LEN(away), away);
    command(f, MR_ARRAY_LEN(put), put);
    command(f, MR_ARRAY_LEN(reset), reset);
    append(j, at + 11, at + 11);
    for (int i = 0; i < 2000 && atomic_load(&f->here); i++)
        nap();
    assert_false(atomic_load(&f->here));
    assert_false(mr_journal_is_here(j));
    assert_non_null(strstr(f->why, "WRONGTYPE"));
    assert_non_null(strstr(f->why, key));
    uint64_t before = cpu_ns();
    uint32_t told = atomic_load(&f->told);
    for (uint64_t i = 12; i < 512; i++) {
        append(j, at + i, at + i);
        nap();
    }
    assert_true(cpu_ns() - before < MR_SECOND / 2); /* of a second and more */
    assert_int_equal(atomic_load(&f->told), told);  /* once is enough */
    assert_int_equal(atomic_load(&f->rewinds), 0);
    command(f, MR_ARRAY_LEN(back), back);
    wait_acked(f, at + 511);
    for (int i = 0; i < 2000 && !atomic_load(&f->here); i++)
        nap();
    assert_true(atomic_load(&f->here));
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(info.sequence, at + 511);
    assert_int_equal(f->loaded, at + 511);
    mr_journal_close(&j);
}

static void a_foreign_key_in_our_place_is_waited_for_and_named(void **state)
{
    a_foreign_key_is_named_and_waited_for(*state, "millrace:journal");
    a_foreign_key_is_named_and_waited_for(*state, "millrace:cluster");
}

static void an_open_that_finds_a_foreign_key_names_it(void **state)
{
    struct fixture *f = *state;
    struct mr_journal *j = NULL;
    struct mr_journal_info info;
    struct mr_error e = {0};
    const struct mr_journal_config config = {.address = f->address, .ctx = f};
    const struct mr_str put[] = {MR_STR("SET"), MR_STR("millrace:journal"), MR_STR("not yours")};
    command(f, MR_ARRAY_LEN(put), put);
    int err = mr_journal_open(&config, 10 * MR_SECOND, ignore_record, &j, &info, &e);
    assert_int_equal(err, MR_EINTERNAL);
    assert_non_null(strstr(e.text, "millrace:journal"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            what_is_acknowledged_is_read_back_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_restart_of_redis_loses_and_repeats_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            an_empty_redis_asks_for_a_snapshot_even_when_idle, setup, teardown),
        cmocka_unit_test_setup_teardown(an_older_epoch_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_redis_that_forgot_the_script_learns_it_again, setup, teardown),
        cmocka_unit_test_setup_teardown(
            out_of_memory_counts_as_away_and_loses_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            records_larger_than_a_socket_keep_their_place, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_snapshot_takes_the_journal_s_place_whole_or_not_at_all, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_redis_that_loses_half_a_snapshot_gets_another, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_writer_that_dies_while_it_mends_an_old_redis_leaves_the_old_journal, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_restart_of_redis_in_the_middle_of_a_snapshot_costs_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_foreign_key_in_our_place_is_waited_for_and_named, setup, teardown),
        cmocka_unit_test_setup_teardown(an_open_that_finds_a_foreign_key_names_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
