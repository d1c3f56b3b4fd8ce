/* A real mr-objectstore in a temporary directory, for tests. */
#pragma once

#include "store/arena/client.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)
#define WAIT (20 * MR_SECOND)
struct node {
    char dir[64];
    char control[96];
    char address[104];
    pid_t pid;
    bool has_disk;
    uint64_t memory;
    uint32_t objects; /* limit of the number of objects; 0: 1048576 */
};

static inline void nap_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static inline void exec_store(const struct node *n)
{
    char memory[40];
    char data[96];
    char objects[16];
    snprintf(objects, sizeof objects, "%u", n->objects ? n->objects : 1048576);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)n->memory);
    snprintf(data, sizeof data, "%s/data", n->dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = open("/dev/null", O_WRONLY);
    if (log >= 0 && !getenv("MR_TEST_LOG")) dup2(log, 2);
    execl(MR_OBJECTSTORE_PATH, "mr-objectstore", "--listen", n->address, "--socket", n->control,
        "--memory", memory, "--objects", objects, "--node", "n1",
        n->has_disk ? "--dir" : (char *)NULL, data, (char *)NULL);
    _exit(127);
}

static inline void node_start(struct node *n)
{
    fflush(NULL);
    n->pid = fork();
    assert_true(n->pid >= 0);
    if (n->pid == 0) exec_store(n);
    for (int i = 0; i < 500; i++) {
        struct mr_store *st = NULL;
        if (!mr_store_open(n->control, "probe", &st, NULL)) {
            mr_store_close(&st);
            return;
        }
        nap_ms(20);
    }
    fail_msg("the store did not start");
}

static inline void node_init_limited(
    struct node *n, uint64_t memory, bool has_disk, uint32_t objects)
{
    *n = (struct node){.memory = memory, .has_disk = has_disk, .objects = objects};
    snprintf(n->dir, sizeof n->dir, "/tmp/mr-store-XXXXXX");
    assert_non_null(mkdtemp(n->dir));
    snprintf(n->control, sizeof n->control, "%s/control", n->dir);
    snprintf(n->address, sizeof n->address, "unix:%s/grpc", n->dir);
    node_start(n);
}

static inline void node_init(struct node *n, uint64_t memory, bool has_disk)
{
    node_init_limited(n, memory, has_disk, 0);
}

static inline void node_kill(struct node *n, int signal)
{
    int status = 0;
    kill(n->pid, signal);
    assert_int_equal(waitpid(n->pid, &status, 0), n->pid);
    if (signal == SIGTERM) {
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    return (void)st, (void)type, (void)where, remove(path);
}

static inline void node_fini(struct node *n)
{
    node_kill(n, SIGTERM);
    (void)nftw(n->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline struct mr_store *node_client(const struct node *n)
{
    struct mr_store *st = NULL;
    struct mr_error e;
    if (mr_store_open(n->control, "test", &st, &e)) fail_msg("%s", e.text);
    return st;
}

/* Fills memory with a pattern that depends on `seed`. Memory of at most 32 KiB: every word is
 * written. Larger memory: only every 61st word is written. */
static inline void fill(void *p, uint64_t bytes, uint64_t seed)
{
    uint64_t *words = p;
    uint64_t n = bytes / 8;
    for (uint64_t i = 0; i < n; i += (n > 4096 ? 61 : 1))
        words[i] = seed ^ (i * 0x9e3779b97f4a7c15u);
}

static inline bool is_filled(const void *p, uint64_t bytes, uint64_t seed)
{
    const uint64_t *words = p;
    uint64_t n = bytes / 8;
    for (uint64_t i = 0; i < n; i += (n > 4096 ? 61 : 1))
        if (words[i] != (seed ^ (i * 0x9e3779b97f4a7c15u))) return false;
    return true;
}

/* Makes an object of `bytes` with the pattern of `seed`. Job `job` holds the object; 0: this client
 * holds it. */
static inline mr_object_id make(struct mr_store *st, uint64_t bytes, uint64_t seed, uint64_t job)
{
    struct mr_store_draft draft;
    struct mr_error e;
    if (mr_store_create(st, bytes, WAIT, &draft, &e)) fail_msg("%s", e.text);
    fill(draft.p, bytes, seed);
    mr_object_id id = draft.id;
    struct mr_store_owner owner = {.job = {job}};
    if (mr_store_seal(st, &draft, &owner, NULL, &e)) fail_msg("%s", e.text);
    return id;
}

static inline bool holds(
    struct mr_store *st, mr_object_id id, const char *source, uint64_t bytes, uint64_t seed)
{
    struct mr_store_view view;
    struct mr_error e;
    if (mr_store_get(st, id, source, WAIT, &view, &e)) fail_msg("%s", e.text);
    bool ok = view.bytes == bytes && is_filled(view.p, bytes, seed);
    mr_store_release(st, &view);
    return ok;
}
