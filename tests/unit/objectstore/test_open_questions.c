/* services/objectstore/control: when the store stops, it also answers the questions that its core
 * has not answered yet. */
#include "services/objectstore/control/disk_threads.h"

#include "base/alloc.h"
#include "host/flag.h"
#include "host/os/process_dir.h"
#include "host/thread.h"
#include "services/objectstore/control/local_client.h"
#include "store/arena/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

/* A question is part of a larger struct, as in the gRPC calls of the store. */
struct call {
    uint64_t before;
    struct mr_ask ask;
    struct mr_flag is_answered;
};

static void answered(struct mr_ask *ask)
{
    struct call *c = ask->ctx;
    mr_flag_set(&c->is_answered, true);
}

static void answer_at_once(void *ctx, struct mr_ask *ask)
{
    (void)ctx;
    ask->done(ask);
}

static struct call call_of(enum mr_ask_type type, mr_object_id id)
{
    struct call c = {.ask = {.type = type, .done = answered}};
    c.ask.ev.type = MR_OE_PERSIST;
    c.ask.ev.id = id;
    return c;
}

static void a_write_that_never_ends_is_answered_when_the_store_stops(void **state)
{
    (void)state;
    char path[MR_PROCESS_DIR_PATH_MAX + 8];
    struct mr_error e = {0};
    struct mr_process_dir dir = {0};
    assert_int_equal(mr_process_dir_open(&dir, "/tmp", "mr-questions", &e), MR_OK);
    (void)snprintf(path, sizeof path, "%s/s", dir.path);
    struct mr_ostore_shell_config config = {.socket_path = path,
        .node = "n",
        .dir = dir.path,
        .memory_bytes = 64 * MIB,
        .objects_max = 1000};
    struct mr_ostore_shell *sh = NULL;
    struct mr_disk *disk = NULL;
    struct mr_store *self = NULL;
    int socket = -1;
    mr_object_id id = {0};
    if (mr_ostore_shell_open(&config, &sh, &e)) fail_msg("%s", e.text);
    sh->answer = answer_at_once;
    /* The disk's threads are not started, so no write ends. */
    assert_int_equal(mr_disk_open(sh, dir.path, &disk, &e), MR_OK);
    sh->disk = disk;
    assert_int_equal(mr_ostore_shell_connect(sh, &socket, &e), MR_OK);
    struct mr_thread *control = mr_thread_start("control", mr_ostore_shell_run, sh);
    assert_int_equal(mr_store_open_socket(socket, "test", true, &self, &e), MR_OK);
    assert_int_equal(mr_store_put(self, "value", 5, NULL, 10 * MR_SECOND, &id, &e), MR_OK);

    struct call persist = call_of(MR_ASK_EVENT, id), stat = call_of(MR_ASK_STAT, id);
    persist.ask.ctx = &persist;
    stat.ask.ctx = &stat;
    assert_int_equal(mr_ostore_shell_ask(sh, &persist.ask), MR_OK);
    assert_int_equal(mr_ostore_shell_ask(sh, &stat.ask), MR_OK);
    while (!mr_flag_is_set(&stat.is_answered)) /* the core takes questions in order */
        (void)usleep(1000);
    assert_false(mr_flag_is_set(&persist.is_answered));

    mr_ostore_shell_stop(sh);
    mr_thread_join(&control);
    mr_ostore_shell_end_asks(sh);
    assert_true(mr_flag_is_set(&persist.is_answered));
    assert_int_equal(persist.ask.err, MR_EAWAY);

    mr_local_clients_close(sh);
    mr_disk_stop(disk);
    mr_store_stop(self);
    mr_store_close(&self);
    mr_disk_close(&disk);
    mr_ostore_shell_close(&sh);
    mr_release(stat.ask.infos);
    mr_process_dir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_never_ends_is_answered_when_the_store_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
