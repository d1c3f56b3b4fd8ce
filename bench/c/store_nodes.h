/* Common parts of the object store's benchmarks: nodes in processes of their own, and rows of
 * results. Included by one file of a program. */
#pragma once

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "store/arena/client.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS 5
#define WAIT (30 * MR_SECOND)

struct node {
    char control[128];
    char address[2][128]; /* [0]: UNIX socket; [1]: TCP */
    pid_t pid;
};

static char folder[80]; /* directory of the benchmark, beneath TMPDIR */
static bool as_json;

static void die(const char *what, const struct mr_error *e)
{
    fprintf(stderr, "store_bench: %s: %s\n", what, e ? e->text : "");
    exit(1);
}

static void start(struct node *n, const char *program, int number)
{
    snprintf(n->control, sizeof n->control, "%s/control-%d", folder, number);
    snprintf(n->address[0], sizeof n->address[0], "unix:%s/rpc-%d", folder, number);
    snprintf(n->address[1], sizeof n->address[1], "127.0.0.1:%d",
        20000 + (int)(getpid() % 20000) + number);
    n->pid = fork();
    mr_assert(n->pid >= 0);
    if (n->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("MILLRACE_LOG", "error", 1);
        execl(program, program, "--listen", n->address[0], "--listen", n->address[1], "--socket",
            n->control, "--memory", "4GiB", (char *)NULL);
        _exit(127);
    }
}

static struct mr_store *client(const struct node *n)
{
    struct mr_store *st = NULL;
    struct mr_error e;
    for (int i = 0; i < 300; i++) {
        if (!mr_store_open(n->control, "bench", &st, &e)) return st;
        mr_clock_sleep(20 * MR_MS);
    }
    die("open", &e);
    return NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static void stop(struct node *n)
{
    kill(n->pid, SIGTERM);
    waitpid(n->pid, NULL, 0);
}

static void clean_up(void)
{
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void row(const char *name, const char *unit, const double unsorted[RUNS])
{
    double runs[RUNS];
    memcpy(runs, unsorted, sizeof runs);
    qsort(runs, RUNS, sizeof *runs, by_value);
    if (as_json)
        printf(
            "{\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.4g, \"min\": %.4g, \"max\": %.4g}\n",
            name, unit, runs[RUNS / 2], runs[0], runs[RUNS - 1]);
    else
        printf("%-52s %10.3f %-5s (%.3f - %.3f)\n", name, runs[RUNS / 2], unit, runs[0],
            runs[RUNS - 1]);
    fflush(stdout);
}

static double gb_per_s(uint64_t bytes, mr_time from)
{
    return (double)bytes / (double)(mr_clock_now() - from);
}

static mr_object_id put(struct mr_store *st, const void *from, uint64_t bytes)
{
    struct mr_store_draft draft;
    struct mr_error e;
    if (mr_store_create(st, bytes, WAIT, &draft, &e)) die("create", &e);
    memcpy(draft.p, from, bytes);
    mr_object_id id = draft.id;
    if (mr_store_seal(st, &draft, NULL, NULL, &e)) die("seal", &e);
    return id;
}

static void drop(struct mr_store *st, mr_object_id id)
{
    struct mr_error e;
    if (mr_store_delete(st, &id, 1, true, &e)) die("delete", &e);
}

/* Checks that the arguments name the store's program, and reads whether results are printed as
 * JSON. Makes the directory `folder`. Returns `bytes` bytes of data. */
static char *begin(int argc, char **argv, uint64_t bytes)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s MR-OBJECTSTORE [json]\n", argv[0]);
        exit(2);
    }
    as_json = argc > 2 && !strcmp(argv[2], "json");
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.60s/mr-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) die("mkdtemp", NULL);
    double load[1] = {0};
    (void)getloadavg(load, 1);
    if (!as_json) printf("load average %.2f\n", load[0]);
    char *data = mr_alloc(bytes);
    for (uint64_t i = 0; i < bytes; i += 8)
        memcpy(data + i, &i, 8);
    return data;
}
