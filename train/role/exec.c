/* train.exec: a role that is a foreign program, such as a script for TensorFlow or PyTorch. The
 * role joins with the address of a free port, waits until all members have joined, and runs the
 * program. Environment variables, which the trainer makes, list the members. The role does not know
 * what the program computes. The role has finished when the program ends with status 0.
 *
 * When a member is replaced, the other programs find its new address in a file. If the roles have
 * "restart": true in the session's document, all programs start again instead: each role ends its
 * program, waits until all programs have ended, and starts its own anew. */
#include "train/role/exec.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "host/os/process_dir.h"
#include "host/os/subprocess.h"
#include "train/role/exec_members.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORDS_MAX 4096 /* limit of the number of the program's environment variables */
#define SAID_MAX 600   /* limit of the program's output that an error text shows, in bytes */
/* After a program has failed, its role waits for the length of a lease plus this time: the trainer
 * may notice the loss of another member, which may be the cause. */
#define BLAME_TIME (2 * MR_SECOND)

struct foreign {
    struct mr_role r;
    int port_fd; /* holds the port until the program starts; -1: none */
    char address[MR_ADDRESS_BYTES_MAX];
    char *env[WORDS_MAX + 1];
    uint32_t env_count;
    bool is_halted;   /* the role ended the program because the session stops */
    bool is_outdated; /* the program ended because a member was lost, so it starts again */
    uint32_t started; /* the session's generation when the program started */
    uint64_t team;    /* value of mr_exec_team when the program started */
    const char *dir;
};

/* Writes the host part of `address` to `out`. `address` is the one at which the process that runs
 * this role serves other processes. If `address` begins with "unix:" or has no port, the function
 * writes 127.0.0.1. */
static void host_of(const char *address, char *out, size_t bytes)
{
    const char *colon = strrchr(address, ':');
    bool is_tcp = colon && strncmp(address, "unix:", 5) != 0;
    (void)snprintf(
        out, bytes, "%.*s", is_tcp ? (int)(colon - address) : 9, is_tcp ? address : "127.0.0.1");
}

/* Reserves a free port by keeping a socket bound until the program starts. */
static int reserve(struct foreign *f, const char *own, struct mr_error *e)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    char host[256];
    host_of(own, host, sizeof host);
    f->port_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (f->port_fd < 0 || bind(f->port_fd, (struct sockaddr *)&at, size) ||
        getsockname(f->port_fd, (struct sockaddr *)&at, &size))
        return mr_fail(e, MR_EIO, "no port is free for the program");
    (void)snprintf(f->address, sizeof f->address, "%s:%u", host, ntohs(at.sin_port));
    return MR_OK;
}

static void env_add(struct foreign *f, char *pair)
{
    if (f->env_count < WORDS_MAX)
        f->env[f->env_count++] = pair;
    else
        mr_release(pair);
}

static bool env_has(const struct foreign *f, const char *name)
{
    size_t n = strlen(name);
    for (uint32_t i = 0; i < f->env_count; i++)
        if (!strncmp(f->env[i], name, n) && f->env[i][n] == '=') return true;
    return false;
}

static void env_clear(struct foreign *f)
{
    for (uint32_t i = 0; i < f->env_count; i++)
        mr_release(f->env[i]);
    f->env_count = 0;
}

/* Makes the whole environment of the program: the path of the file that lists the members, the
 * generation, the trainer's variables, those of the session's document, and defaults for PATH and
 * HOME. */
static void env_fill(struct foreign *f)
{
    const Millrace__V1__JoinResponse *m = f->r.members->m;
    env_clear(f);
    env_add(f, mr_format("MILLRACE_MEMBERS=%s/%s", f->dir, MR_EXEC_MEMBERS));
    env_add(f, mr_format("MILLRACE_GENERATION=%u", m->generation));
    for (size_t i = 0; i < m->n_environment; i++)
        env_add(f, mr_format("%s=%s", m->environment[i]->key, m->environment[i]->value));
    for (char **pair = f->r.plan.exec_env; pair && *pair; pair++)
        env_add(f, mr_copy_text(*pair));
    if (!env_has(f, "PATH")) env_add(f, mr_copy_text("PATH=/usr/local/bin:/usr/bin:/bin"));
    if (!env_has(f, "HOME")) env_add(f, mr_copy_text("HOME=/nonexistent"));
    f->env[f->env_count] = NULL;
}

/* True: the program has to be ended. Called every few milliseconds while the program runs. */
static bool should_end(void *ctx)
{
    struct foreign *f = ctx;
    bool is_new = false;
    if (mr_role_look(&f->r, &is_new)) return true;
    f->is_halted = f->r.view.phase == MR_ROLE_HALT;
    if (is_new && mr_exec_members_write(&f->r, f->dir, NULL))
        mr_log(MR_WARN, "members.write_failed", "session=%s why=\"cannot write %s/%s\"",
            f->r.session, f->dir, MR_EXEC_MEMBERS);
    if (is_new && f->r.plan.exec_restart) f->is_outdated = mr_exec_team(&f->r) != f->team;
    return f->is_halted || f->is_outdated;
}

/* True: the program failed because another member was lost. Programs that communicate usually fail
 * before the trainer notices the loss, so this function waits for a new generation. False: none
 * came in time, the session has halted, the role has to end, or programs are not started again. */
static bool is_excused(struct foreign *f)
{
    mr_time until = mr_time_after(mr_clock_now(), f->r.plan.lease + BLAME_TIME);
    while (f->r.plan.exec_restart && mr_clock_now() < until && !mr_role_look(&f->r, NULL)) {
        if (f->r.view.phase != MR_ROLE_RUN) return false;
        if (f->r.view.generation != f->started) return true;
        mr_role_wait(&f->r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
    }
    return false;
}

/* Runs the program once. */
static int run_once(struct foreign *f, struct mr_error *e)
{
    struct mr_op_call *call = f->r.call;
    f->is_outdated = false;
    f->started = f->r.members->m->generation;
    f->team = mr_exec_team(&f->r);
    int err = mr_exec_members_write(&f->r, f->dir, e);
    if (err) return err;
    env_fill(f);
    if (f->port_fd >= 0) (void)close(f->port_fd);
    f->port_fd = -1;
    struct mr_process p = {
        .argv = f->r.plan.exec, .env = f->env, .dir = f->dir, .is_cancelled = should_end, .ctx = f};
    struct mr_error why;
    err = mr_process_run(&p, &why);
    if (err && err != MR_ECANCELED) f->is_outdated = is_excused(f);
    const struct mr_buf *said = p.err.n ? &p.err : &p.out;
    size_t n = MR_MIN(said->n, (size_t)SAID_MAX);
    const char *end = n ? (const char *)said->p + said->n - n : "";
    if (said->n)
        call->does->log(call, "%.*s", (int)MR_MIN(said->n, (size_t)32768),
            (const char *)said->p + said->n - MR_MIN(said->n, (size_t)32768));
    if (err && !(err == MR_ECANCELED && f->is_halted) && !f->is_outdated)
        err = mr_fail(
            e, err, "%s%s%.*s", why.text, n ? "; the end of its output: " : "", (int)n, end);
    else
        err = MR_OK;
    mr_process_fini(&p);
    return err;
}

static int run_it(struct foreign *f, struct mr_error *e)
{
    struct mr_process_dir dir = {0};
    if (!f->r.plan.exec) return mr_fail(e, MR_EINVAL, "roles: this role has no \"exec\"");
    mr_process_files_begin();
    int err = mr_process_dir_open(&dir, "/tmp", MR_PROCESS_DIR_KIND, e);
    mr_process_files_end();
    if (err) return err;
    f->dir = dir.path;
    do {
        if (f->r.plan.exec_restart) err = mr_exec_meet(&f->r);
        bool runs = f->r.view.phase == MR_ROLE_RUN || !f->r.plan.exec_restart;
        f->is_outdated = false;
        if (!err && runs) err = run_once(f, e);
    } while (!err && f->is_outdated);
    mr_process_files_begin();
    mr_process_dir_close(&dir);
    mr_process_files_end();
    return err;
}

/* Called when the program has ended. Until the session ends, reports each phase as finished at
 * once. This also holds for the phase in which a model is saved: the program saves its own. */
static int linger(struct foreign *f)
{
    struct mr_role *r = &f->r;
    r->post.exhausted = true;
    mr_agent_report(r->agent, &r->post);
    for (;;) {
        int err = mr_role_look(r, NULL);
        if (err) return err;
        mr_agent_report_finished(r->agent, r->view.phase, NULL, NULL);
        mr_role_wait(r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
    }
}

/* Returns the role that the task's key names, as in "worker/3". A key of another form means a
 * worker. */
static Millrace__V1__TrainingRole kind_of(const struct mr_op_call *call)
{
    struct mr_str key = call->task.key;
    if (key.n > 3 && !memcmp(key.p, "ps/", 3)) return MR_ROLE_PS;
    if (key.n > 7 && !memcmp(key.p, "scorer/", 7)) return MR_ROLE_SCORER;
    return MR_ROLE_WORKER;
}

static int exec_run(struct mr_op_call *call)
{
    struct mr_error e;
    struct mr_error *words = &e;
    e.text[0] = 0;
    struct foreign *f = call->does->scratch(call, sizeof *f);
    if (!f) return MR_ELIMIT;
    f->port_fd = -1;
    int err = reserve(f, mr_role_env()->address, &e);
    if (err) return mr_role_refuse(call, err, &e);
    err = mr_role_begin(call, &f->r, kind_of(call), "", f->address);
    if (err) words = NULL;
    if (!err) err = run_it(f, &e);
    if (!err) err = linger(f);
    if (f->port_fd >= 0) (void)close(f->port_fd);
    env_clear(f);
    return mr_role_end(&f->r, err, words);
}

static const struct mr_op_param params[] = {
    {"session", MR_TAKES_TEXT, NULL, "Id of the training session."},
    {"index", MR_TAKES_INT, NULL, "Index among the roles of this kind, from 0."},
    {"trainer", MR_TAKES_TEXT, NULL, "Address of the trainer."},
    {"data", MR_TAKES_NIL | MR_TAKES_DICT, "null", "Not used."},
};

const struct mr_op_desc mr_train_exec_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_BY_REFERENCE | MR_OP_LONG_RUNNING | MR_OP_MAY_BLOCK,
    .name = "train.exec",
    .summary = "Runs a role of a training session as a program; started by the trainer.",
    .result = "null",
    .params = params,
    .params_count = MR_ARRAY_LEN(params),
    .cost_ns = 1000000000,
    .run = exec_run};
