/* host/os: counters, files, log lines and signals; host/limit/quota; processor preference of
 * threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/file.h"
#include "host/inbox.h"
#include "host/os/log.h"
#include "host/limit/quota.h"
#include "host/os/signal.h"
#include "host/os/stats.h"
#include "host/thread.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has(const struct mr_buf *b, const char *text)
{
    return memmem(b->p, b->n, text, strlen(text)) != NULL;
}

static void counters_are_written_as_prometheus_reads_them(void **state)
{
    (void)state;
    struct mr_stats *stats = mr_stats_new();
    struct mr_counter *done = mr_stats_counter(stats, "x_tasks_total", "Tasks.", "state=\"done\"");
    struct mr_counter *lost = mr_stats_counter(stats, "x_tasks_total", "Tasks.", "state=\"lost\"");
    struct mr_gauge *jobs = mr_stats_gauge(stats, "x_jobs", "Jobs.", NULL);
    assert_ptr_equal(done, mr_stats_counter(stats, "x_tasks_total", "Tasks.", "state=\"done\""));
    static const double bounds[] = {0.001, 0.01};
    struct mr_histogram *h =
        mr_stats_histogram(stats, "x_seconds", "Time.", "op=\"add\"", bounds, 2, 1e-9);
    mr_counter_add(done, 3);
    mr_counter_add(lost, 1);
    mr_gauge_set(jobs, 5);
    mr_gauge_add(jobs, -7);
    mr_histogram_add(h, 500000);     /* 0.5 ms */
    mr_histogram_add(h, 2000000);    /* 2 ms */
    mr_histogram_add(h, 2000000000); /* 2 s */
    struct mr_buf b;
    mr_buf_init(&b, 65536);
    mr_stats_write(stats, &b);
    assert_true(has(&b, "# TYPE x_tasks_total counter\nx_tasks_total{state=\"done\"} 3\n"
                        "x_tasks_total{state=\"lost\"} 1\n"));
    assert_true(has(&b, "# HELP x_jobs Jobs.\n# TYPE x_jobs gauge\nx_jobs -2\n"));
    assert_true(has(&b, "x_seconds_bucket{op=\"add\",le=\"0.001\"} 1\n"
                        "x_seconds_bucket{op=\"add\",le=\"0.01\"} 2\n"
                        "x_seconds_bucket{op=\"add\",le=\"+Inf\"} 3\n"
                        "x_seconds_sum{op=\"add\"} 2.0025\nx_seconds_count{op=\"add\"} 3\n"));
    assert_true(has(&b, "# TYPE process_cpu_seconds_total counter\n"));
    mr_buf_fini(&b);
    mr_stats_free(&stats);
}

struct files {
    char directory[32];
    char *path;
};

static int make_directory(void **state)
{
    struct files *f = mr_alloc(sizeof *f);
    (void)snprintf(f->directory, sizeof f->directory, "/tmp/mr-host-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    f->path = mr_format("%s/file", f->directory);
    *state = f;
    return 0;
}

static int remove_directory(void **state)
{
    struct files *f = *state;
    (void)unlink(f->path);
    (void)rmdir(f->directory);
    mr_release(f->path);
    mr_release(f);
    return 0;
}

static void a_written_file_is_read_back_within_the_limit(void **state)
{
    struct files *f = *state;
    struct mr_error e;
    assert_int_equal(mr_file_write(f->path, MR_STR("old"), 0644, &e), MR_OK);
    assert_int_equal(mr_file_write(f->path, MR_STR("hello"), 0600, &e), MR_OK);
    struct mr_buf b;
    mr_buf_init(&b, 5);
    assert_int_equal(mr_file_read(f->path, &b, &e), MR_OK);
    assert_true(mr_str_eq(mr_buf_str(&b), MR_STR("hello")));
    mr_buf_fini(&b);
    mr_buf_init(&b, 4);
    assert_int_equal(mr_file_read(f->path, &b, &e), MR_ETOOBIG);
    mr_buf_fini(&b);
    mr_buf_init(&b, 4);
    assert_int_equal(mr_file_read("/nonexistent/x", &b, &e), MR_ENOENT);
    assert_non_null(strstr(e.text, "\"/nonexistent/x\""));
    assert_int_equal(mr_file_write("/nonexistent/x", MR_STR(""), 0600, &e), MR_ENOENT);
    mr_buf_fini(&b);
}

static void a_secret_that_others_can_read_is_refused(void **state)
{
    struct files *f = *state;
    struct mr_error e;
    struct mr_buf b;
    mr_buf_init(&b, 100);
    assert_int_equal(mr_file_write(f->path, MR_STR("token\n"), 0644, &e), MR_OK);
    assert_int_equal(mr_file_read_secret(f->path, &b, &e), MR_EPERM);
    assert_non_null(strstr(e.text, "chmod 600"));
    assert_int_equal(chmod(f->path, 0600), 0);
    assert_int_equal(mr_file_read_secret(f->path, &b, &e), MR_OK);
    assert_true(mr_str_eq(mr_buf_str(&b), MR_STR("token")));
    assert_int_equal(mr_file_write(f->path, MR_STR("\n"), 0600, &e), MR_OK);
    assert_int_equal(mr_file_read_secret(f->path, &b, &e), MR_EINVAL);
    mr_buf_fini(&b);
}

static void directories_are_made_with_their_parents(void **state)
{
    struct files *f = *state;
    struct mr_error e;
    MR_AUTO(mr_free_ptr) char *deep = mr_format("%s/a/b", f->directory);
    assert_int_equal(mr_file_make_dirs(deep, 0700, &e), MR_OK);
    assert_int_equal(mr_file_make_dirs(deep, 0700, &e), MR_OK);
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(mr_file_write(deep, MR_STR("x"), 0600, &e), MR_OK);
    assert_int_equal(mr_file_make_dirs(deep, 0700, &e), MR_EEXIST);
    assert_int_equal(unlink(deep), 0);
    MR_AUTO(mr_free_ptr) char *a = mr_format("%s/a", f->directory);
    assert_int_equal(rmdir(a), 0);
}

static void a_directory_is_copied_with_its_files(void **state)
{
    struct files *f = *state;
    struct mr_error e;
    struct mr_buf b;
    mr_buf_init(&b, 100);
    MR_AUTO(mr_free_ptr) char *from = mr_format("%s/from", f->directory);
    MR_AUTO(mr_free_ptr) char *deep = mr_format("%s/from/deep", f->directory);
    MR_AUTO(mr_free_ptr) char *one = mr_format("%s/from/deep/one", f->directory);
    MR_AUTO(mr_free_ptr) char *link = mr_format("%s/from/link", f->directory);
    MR_AUTO(mr_free_ptr) char *to = mr_format("%s/to", f->directory);
    MR_AUTO(mr_free_ptr) char *to_deep = mr_format("%s/to/deep", f->directory);
    MR_AUTO(mr_free_ptr) char *to_one = mr_format("%s/to/deep/one", f->directory);
    assert_int_equal(mr_file_copy_tree(from, to, &e), MR_ENOENT);
    assert_non_null(strstr(e.text, from));
    assert_int_equal(mr_file_make_dirs(deep, 0700, &e), MR_OK);
    assert_int_equal(mr_file_write(one, MR_STR("content"), 0644, &e), MR_OK);
    assert_int_equal(symlink(one, link), 0);
    assert_int_equal(mr_file_copy_tree(from, to, &e), MR_OK);
    assert_int_equal(mr_file_read(to_one, &b, &e), MR_OK);
    assert_true(mr_str_eq(mr_buf_str(&b), MR_STR("content")));
    assert_int_equal(mr_file_copy_tree(from, to, &e), MR_EIO); /* the copy exists already */
    assert_non_null(strstr(e.text, to_one));
    const char *const files[] = {one, link, to_one}, *const directories[] = {
                                                         deep, from, to_deep, to};
    for (size_t i = 0; i < MR_ARRAY_LEN(files); i++)
        assert_int_equal(unlink(files[i]), 0);
    for (size_t i = 0; i < MR_ARRAY_LEN(directories); i++)
        assert_int_equal(rmdir(directories[i]), 0); /* the link was not copied */
    mr_buf_fini(&b);
}

static void a_log_line_is_one_line_whatever_is_in_it(void **state)
{
    struct files *f = *state;
    int saved = dup(STDERR_FILENO);
    int fd = open(f->path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    mr_log_set_level(MR_INFO);
    char quoted[64];
    mr_log(MR_WARN, "lease.lost", "key=%s raw=a\nb", mr_log_quote(MR_STR("a \"b\""), quoted, 64));
    mr_log(MR_DEBUG, "hidden", "n=%d", 1);
    mr_log(MR_INFO, "bare", "%s", "");
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    (void)close(fd);
    struct mr_buf b;
    mr_buf_init(&b, 4096);
    assert_int_equal(mr_file_read(f->path, &b, NULL), MR_OK);
    assert_true(has(&b, "level=warn event=lease.lost key=\"a \\\"b\\\"\" raw=a\\x0ab\n"));
    assert_false(has(&b, "hidden"));
    assert_true(has(&b, "event=bare"));
    mr_buf_fini(&b);
}

static void push_number(void *ctx, int number)
{
    (void)mr_inbox_push(ctx, &number);
}

static void signals_arrive_on_a_thread_of_their_own(void **state)
{
    (void)state;
    struct mr_inbox *in = mr_inbox_new(4, sizeof(int));
    mr_signal_block();
    struct mr_signals *signals = mr_signal_open(push_number, in);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    int number = 0;
    assert_int_equal(mr_inbox_wait(in, mr_clock_now() + 20 * MR_SECOND, &number, 1), 1);
    assert_int_equal(number, SIGTERM);
    mr_signal_close(&signals);
    mr_inbox_free(&in);
}

/* A program that is starting must end at SIGTERM, whatever it waits for. A program that has started
 * gets SIGTERM through its inbox. */
static void a_program_that_starts_ends_at_once_and_one_that_has_started_is_told(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        mr_signal_block();
        (void)mr_signal_open(NULL, NULL);
        (void)kill(getpid(), SIGTERM);
        for (;;)
            (void)pause();
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);

    struct mr_inbox *in = mr_inbox_new(4, sizeof(int));
    mr_signal_block();
    struct mr_signals *signals = mr_signal_open(NULL, NULL);
    mr_signal_hand(signals, push_number, in);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    int number = 0;
    assert_int_equal(mr_inbox_wait(in, mr_clock_now() + 20 * MR_SECOND, &number, 1), 1);
    assert_int_equal(number, SIGTERM);
    mr_signal_close(&signals);
    mr_inbox_free(&in);
}

/* A quota limits how many places a key takes at a time. Each key is counted by itself, and a place
 * that is given back can be taken again. */
static void a_quota_counts_each_by_its_key(void **state)
{
    (void)state;
    struct mr_quota *q = mr_quota_new(2), *without = mr_quota_new(0);
    struct mr_str a = MR_STR("aaaa"), b = MR_STR("bbbb");
    for (int i = 0; i < 2; i++) {
        assert_true(mr_quota_has_room(q, a));
        mr_quota_add(q, a);
        mr_quota_add(without, a);
    }
    assert_false(mr_quota_has_room(q, a));
    assert_true(mr_quota_has_room(q, b));
    assert_true(mr_quota_has_room(without, a));
    mr_quota_remove(q, a);
    assert_true(mr_quota_has_room(q, a));
    mr_quota_remove(q, a);
    mr_quota_free(&q);
    mr_quota_free(&without);
}

struct homely {
    bool is_free, came;
};

static void bind_to(int processor)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)processor, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

/* Puts this thread on the last processor, then lets it return to its preferred processor, the
 * first. Returns true if the thread returned in one of 50 attempts, else false. */
static bool comes_home(const cpu_set_t *all)
{
    int first = 0, last = CPU_SETSIZE - 1;
    while (!CPU_ISSET((size_t)first, all))
        first++;
    while (!CPU_ISSET((size_t)last, all))
        last--;
    for (int i = 0; i < 50; i++) {
        /* mr_thread_cpu_return moves a thread at most 20 times a second. */
        mr_clock_sleep(60 * MR_MS);
        bind_to(last);
        (void)sched_setaffinity(0, sizeof *all, all);
        bool was_away = sched_getcpu() != first;
        mr_thread_cpu_return();
        if (sched_getcpu() == first && (was_away || first == last)) return true;
    }
    return false;
}

static void stay_home(void *ctx)
{
    struct homely *h = ctx;
    cpu_set_t before, after;
    int err = sched_getaffinity(0, sizeof before, &before);
    mr_thread_cpu_return(); /* does nothing: the thread has no preference */
    mr_thread_cpu_prefer(0);
    h->came = !err && comes_home(&before);
    err |= sched_getaffinity(0, sizeof after, &after);
    h->is_free = !err && CPU_EQUAL(&before, &after);
    mr_thread_cpu_clear();
}

static void a_thread_comes_home_and_is_not_bound_to_it(void **state)
{
    (void)state;
    struct homely h = {0};
    struct mr_thread *t = mr_thread_start("home", stay_home, &h);
    mr_thread_join(&t);
    assert_true(h.came);
    assert_true(h.is_free);
}

int main(void)
{
#define F(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_are_written_as_prometheus_reads_them),
        F(a_written_file_is_read_back_within_the_limit),
        F(a_secret_that_others_can_read_is_refused),
        F(directories_are_made_with_their_parents),
        F(a_directory_is_copied_with_its_files),
        F(a_log_line_is_one_line_whatever_is_in_it),
        cmocka_unit_test(signals_arrive_on_a_thread_of_their_own),
        cmocka_unit_test(a_program_that_starts_ends_at_once_and_one_that_has_started_is_told),
        cmocka_unit_test(a_quota_counts_each_by_its_key),
        cmocka_unit_test(a_thread_comes_home_and_is_not_bound_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
