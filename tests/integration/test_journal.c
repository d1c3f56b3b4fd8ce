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
    (void)why;
    atomic_store(&((struct fixture *)ctx)->here, here);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
