/* Tests store/meta/journal with a real redis-server on a private socket. Acknowledged records are
 * read back; no record is written twice; a higher epoch refuses writes of a lower one; the error
 * about a key with foreign content names the key. */
#include "base/id.h"
#include "tests/integration/journal_rig.h"

#include "host/clock.h"

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

static void a_base_inside_of_a_call_hides_what_stands_before_it(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 300); /* one call of append makes one entry of the stream */
    wait_acked(f, 300);
    mr_journal_set_base(j, 151);
    append(j, 301, 301);
    wait_acked(f, 301);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, 151);
    assert_string_equal(f->last, "record 301");
    mr_journal_close(&j);
}

/* Reads the answers of Redis as a polling thread does: without sleep, and no other thread reads
 * them. */
static void read_until(struct fixture *f, struct mr_journal *j, uint64_t sequence)
{
    mr_time until = mr_time_after(mr_clock_now(), 20 * MR_SECOND);
    while (atomic_load(&f->acked) < sequence && mr_clock_now() < until)
        mr_journal_look(j);
    assert_int_equal(atomic_load(&f->acked), sequence);
}

static void who_attends_reads_the_answers(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    mr_journal_attend(j, true);
    append(j, 1, 1);
    read_until(f, j, 1);
    assert_true(pthread_equal(f->acker, pthread_self()));
    redis_stop(&f->server);
    append(j, 2, 100);
    for (int i = 0; i < 2000 && atomic_load(&f->here); i++) {
        mr_journal_look(j);
        nap();
    }
    assert_false(atomic_load(&f->here));
    redis_start(&f->server);
    read_until(f, j, 100);
    append(j, 101, 101);
    /* from now on the connection's thread reads the answers of Redis */
    mr_journal_attend(j, false);
    wait_acked(f, 101);
    assert_int_equal(atomic_load(&f->rewinds), 0);
    mr_journal_close(&j);
}

static void count_answer(void *ctx, int err, const struct mr_reply *reply)
{
    (void)reply;
    atomic_fetch_add((atomic_uint *)ctx, err ? 1000 : 1);
}

static void who_attends_may_be_busy_for_longer_than_an_answer_takes(void **state)
{
    struct fixture *f = *state;
    const struct mr_redis_config config = {
        .address = f->server.address, .reply_timeout_ns = MR_SECOND};
    const struct mr_str ping[] = {MR_STR("PING")};
    struct mr_redis *r = NULL;
    atomic_uint answers = 0;
    assert_int_equal(mr_redis_open(&config, &r, NULL), MR_OK);
    assert_int_equal(mr_redis_wait(r, 10 * MR_SECOND), MR_OK);
    for (int i = 0; i < 100 && mr_redis_send(r, 1, ping, count_answer, &answers); i++)
        nap();
    mr_redis_attend(r, true);
    (void)mr_redis_send(r, 1, ping, count_answer, &answers);
    for (int i = 0; i < 5000 && atomic_load(&answers) < 2; i++)
        nap(); /* this thread has called mr_redis_attend, but never reads the answers */
    assert_int_equal(atomic_load(&answers), 2);
    mr_redis_close(&r);
}

static void a_restart_of_redis_loses_and_repeats_nothing(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 100);
    wait_acked(f, 100);
    redis_stop(&f->server);
    for (int i = 0; i < 2000 && atomic_load(&f->here); i++)
        nap();
    assert_false(mr_journal_is_here(j));
    append(j, 101, 300);
    redis_start(&f->server);
    wait_acked(f, 300);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_int_equal(f->loaded, 300);
    assert_int_equal(atomic_load(&f->rewinds), 0);
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
    mr_journal_raise_epoch(young, 9);
    append(young, 5, 5);
    wait_acked(f, 5);
    mr_journal_close(&old);
    old = journal_open(f, &info);
    assert_int_equal(info.epoch, 10);
    mr_journal_close(&old);
    mr_journal_close(&young);
}

/* Sets up a Redis with an older copy of the journal, on which another scheduler has continued. The
 * sequence numbers in this copy mean other records. */
static void another_lineage_is_never_gone_on_with(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info first, info;
    struct mr_journal *j = journal_open(f, &first);
    append(j, 1, 3);
    wait_acked(f, 3);
    mr_journal_close(&j);
    j = journal_open(f, &info);
    assert_true(info.incarnation != first.incarnation);
    assert_true(info.incarnation >> 32 >= MR_TAG_DRAWN_MIN);
    append(j, 4, 4);
    wait_acked(f, 4);
    const struct mr_str older[] = {MR_STR("HSET"), MR_STR("millrace:cluster"), MR_STR("epoch"),
        MR_STR("1"), MR_STR("incarnation"), MR_STR("00f4240000000001"), MR_STR("sequence"),
        MR_STR("9")};
    command(f, MR_ARRAY_LEN(older), older);
    /* Redis has sequence number 9. By this number alone, Redis would skip record 5 as a record that
     * it has already. */
    append(j, 5, 5);
    for (int i = 0; i < 5000 && !atomic_load(&f->rewinds); i++)
        nap();
    assert_int_equal(atomic_load(&f->rewinds), 1);
    assert_int_equal(atomic_load(&f->acked), 4);
    mr_journal_rewind(j);
    append(j, 6, 7);
    mr_journal_rewound(j);
    mr_journal_flush(j);
    wait_acked(f, 7);
    append(j, 8, 8);
    wait_acked(f, 8);
    const struct mr_str same[] = {MR_STR("HSET"), MR_STR("millrace:cluster"), MR_STR("incarnation"),
        MR_STR("00f4240000000001")};
    command(f, MR_ARRAY_LEN(same), same);
    append(j, 9, 9);
    for (int i = 0; i < 5000 && !atomic_load(&f->refused); i++)
        nap();
    assert_int_equal(atomic_load(&f->refused), 2);
    mr_journal_close(&j);
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
        append(j, i, i); /* several calls of the script are under way at once */
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

static uint64_t cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * MR_SECOND + (uint64_t)t.tv_nsec;
}

/* Replaces one of the journal's keys by a text, and restores the key later. */
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
    /* Waiting, for a second or more, costs little processor time. */
    assert_true(cpu_ns() - before < MR_SECOND / 2);
    assert_int_equal(atomic_load(&f->told), told); /* the state is reported once */
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
    const struct mr_journal_config config = {.address = f->server.address, .ctx = f};
    const struct mr_str put[] = {MR_STR("SET"), MR_STR("millrace:journal"), MR_STR("not yours")};
    command(f, MR_ARRAY_LEN(put), put);
    int err = mr_journal_open(&config, 10 * MR_SECOND, ignore_record, &j, &info, &e);
    assert_int_equal(err, MR_EINTERNAL);
    assert_non_null(strstr(e.text, "millrace:journal"));
}

static void a_journal_of_a_later_program_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    struct mr_journal_info info;
    struct mr_journal *j = journal_open(f, &info);
    append(j, 1, 3);
    wait_acked(f, 3);
    mr_journal_close(&j);
    const struct mr_str later[] = {
        MR_STR("HSET"), MR_STR("millrace:cluster"), MR_STR("format"), MR_STR("99")};
    command(f, MR_ARRAY_LEN(later), later);
    struct mr_error e = {0};
    const struct mr_journal_config config = {.address = f->server.address, .ctx = f};
    int err = mr_journal_open(&config, 10 * MR_SECOND, ignore_record, &j, &info, &e);
    assert_int_equal(err, MR_ESTATE);
    assert_non_null(strstr(e.text, "format 99"));
    assert_non_null(strstr(e.text, "millrace:cluster"));
    const struct mr_str ours[] = {MR_STR("HDEL"), MR_STR("millrace:cluster"), MR_STR("format")};
    command(f, MR_ARRAY_LEN(ours), ours);
    j = journal_open(f, &info);
    assert_int_equal(info.epoch, 2); /* the refused process has claimed no epoch */
    assert_int_equal(info.sequence, 3);
    mr_journal_close(&j);
}

static void an_entry_of_unknown_fields_is_refused(void **state)
{
    struct fixture *f = *state;
    struct mr_journal *j = NULL;
    struct mr_journal_info info;
    struct mr_error e = {0};
    const struct mr_journal_config config = {.address = f->server.address, .ctx = f};
    const struct mr_str put[] = {MR_STR("XADD"), MR_STR("millrace:journal"), MR_STR("2-0"),
        MR_STR("r"), MR_STR("one"), MR_STR("z"), MR_STR("two")};
    command(f, MR_ARRAY_LEN(put), put);
    int err = mr_journal_open(&config, 10 * MR_SECOND, ignore_record, &j, &info, &e);
    assert_int_equal(err, MR_EFORMAT);
    assert_non_null(strstr(e.text, "millrace:journal"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_acknowledged_is_read_back_in_order),
        TEST(a_base_inside_of_a_call_hides_what_stands_before_it),
        TEST(who_attends_reads_the_answers),
        TEST(who_attends_may_be_busy_for_longer_than_an_answer_takes),
        TEST(a_restart_of_redis_loses_and_repeats_nothing),
        TEST(an_older_epoch_is_refused),
        TEST(another_lineage_is_never_gone_on_with),
        TEST(a_redis_that_forgot_the_script_learns_it_again),
        TEST(out_of_memory_counts_as_away_and_loses_nothing),
        TEST(records_larger_than_a_socket_keep_their_place),
        TEST(a_foreign_key_in_our_place_is_waited_for_and_named),
        TEST(an_open_that_finds_a_foreign_key_names_it),
        TEST(a_journal_of_a_later_program_is_refused_and_left_alone),
        TEST(an_entry_of_unknown_fields_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
