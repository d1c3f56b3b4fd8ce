/* lib/rpc/server/unix_listener: which users may connect to a UNIX socket, and when the socket file
 * is removed. */
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
#include "rpc/server/unix_listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRANGER 65534
#define TIMEOUT (20 * MR_SECOND)

struct place {
    char directory[32];
    char path[64];
    struct mr_inbox *entered;
};

static int setup(void **state)
{
    struct place *p = mr_alloc(sizeof *p);
    (void)snprintf(p->directory, sizeof p->directory, "/tmp/mr-door-XXXXXX");
    assert_non_null(mkdtemp(p->directory));
    assert_int_equal(chmod(p->directory, 0755), 0);
    (void)snprintf(p->path, sizeof p->path, "%s/s", p->directory);
    p->entered = mr_inbox_new(8, sizeof(int));
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    mr_inbox_free(&p->entered);
    (void)unlink(p->path);
    (void)rmdir(p->directory);
    mr_release(p);
    return 0;
}

static void on_accept(void *ctx, int fd)
{
    (void)!write(fd, "hello", 5);
    (void)close(fd);
    int one = 1;
    (void)mr_inbox_push(ctx, &one);
}

/* Connects to the listener as user `uid` in a child process, which makes only calls that are safe
 * after fork. Returns the number of bytes read; -1: the connection is refused; 100 or more: another
 * call failed. */
static int visit(const char *path, uid_t uid)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, path, strlen(path));
    pid_t child = fork();
    if (child == 0) {
        char text[8];
        if (uid != geteuid() && setuid(uid)) _exit(100);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (const struct sockaddr *)&at, sizeof at)) _exit(101);
        ssize_t n = read(fd, text, sizeof text);
        _exit(n < 0 ? 102 : (int)n);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    int code = WEXITSTATUS(status);
    return code == 101 ? -1 : code;
}

static void our_own_processes_come_in(void **state)
{
    struct place *p = *state;
    struct mr_peer_rules rules = {0};
    struct mr_unix_listener *d = NULL;
    assert_int_equal(mr_unix_listener_open(p->path, &rules, &d, NULL), MR_OK);
    struct stat st;
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    mr_unix_listener_start(d, on_accept, p->entered);
    assert_int_equal(visit(p->path, geteuid()), 5);
    int one = 0;
    assert_int_equal(mr_inbox_wait(p->entered, mr_clock_now() + TIMEOUT, &one, 1), 1);
    mr_unix_listener_close(&d);
    assert_int_not_equal(access(p->path, F_OK), 0);
}

static void a_stranger_is_shown_out_unless_listed(void **state)
{
    struct place *p = *state;
    if (geteuid() != 0) skip(); /* only root can become another user */
    mr_log_set_level(MR_ERROR);
    struct mr_peer_rules rules = {.uids = {12345}, .uids_count = 1};
    struct mr_unix_listener *d = NULL;
    assert_int_equal(mr_unix_listener_open(p->path, &rules, &d, NULL), MR_OK);
    mr_unix_listener_start(d, on_accept, p->entered);
    assert_int_equal(visit(p->path, 12345), 5);
    assert_int_equal(visit(p->path, STRANGER), 0); /* the listener closed the connection at once */
    mr_unix_listener_close(&d);
    rules = (struct mr_peer_rules){.any_uid = true};
    assert_int_equal(mr_unix_listener_open(p->path, &rules, &d, NULL), MR_OK);
    mr_unix_listener_start(d, on_accept, p->entered);
    assert_int_equal(visit(p->path, STRANGER), 5);
    mr_unix_listener_close(&d);
    rules = (struct mr_peer_rules){0};
    assert_int_equal(mr_unix_listener_open(p->path, &rules, &d, NULL), MR_OK);
    mr_unix_listener_start(d, on_accept, p->entered);
    assert_int_equal(visit(p->path, STRANGER), -1); /* the socket file has mode 0600 */
    mr_unix_listener_close(&d);
}

static void a_dead_servers_socket_is_replaced_and_nothing_else(void **state)
{
    struct place *p = *state;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, p->path, strlen(p->path));
    int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(dead, (const struct sockaddr *)&at, sizeof at), 0);
    (void)close(dead);
    struct mr_peer_rules rules = {0};
    struct mr_unix_listener *d = NULL, *second = NULL;
    struct mr_error e;
    assert_int_equal(mr_unix_listener_open(p->path, &rules, &d, &e), MR_OK);
    assert_int_equal(mr_unix_listener_open(p->path, &rules, &second, &e), MR_EEXIST);
    assert_non_null(strstr(e.text, "another server listens"));
    mr_unix_listener_close(&d);
    assert_int_equal(mr_file_write(p->path, MR_STR("data"), 0600, &e), MR_OK);
    assert_int_equal(mr_unix_listener_open(p->path, &rules, &d, &e), MR_EEXIST);
    assert_int_equal(access(p->path, F_OK), 0);
    assert_int_equal(mr_unix_listener_open("/nonexistent/s", &rules, &d, &e), MR_EIO);
    char large[200];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    assert_int_equal(mr_unix_listener_open(large, &rules, &d, &e), MR_EINVAL);
    assert_null(d);
}

static void a_path_that_no_client_could_name_is_refused(void **state)
{
    (void)state;
    struct mr_peer_rules rules = {0};
    struct mr_unix_listener *d = NULL;
    struct mr_error e;
    assert_int_equal(mr_unix_listener_open("/tmp/mr-a,b", &rules, &d, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "\"unix:/tmp/mr-a,b\" has a comma"));
    assert_null(d);
}

static void a_successors_socket_file_is_left_alone(void **state)
{
    struct place *p = *state;
    struct mr_peer_rules rules = {0};
    struct mr_unix_listener *first = NULL, *second = NULL;
    assert_int_equal(mr_unix_listener_open(p->path, &rules, &first, NULL), MR_OK);
    assert_int_equal(unlink(p->path), 0);
    assert_int_equal(mr_unix_listener_open(p->path, &rules, &second, NULL), MR_OK);
    mr_unix_listener_close(&first);
    assert_int_equal(access(p->path, F_OK), 0);
    mr_unix_listener_close(&second);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(our_own_processes_come_in),
        T(a_stranger_is_shown_out_unless_listed),
        T(a_dead_servers_socket_is_replaced_and_nothing_else),
        T(a_path_that_no_client_could_name_is_refused),
        T(a_successors_socket_file_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
