/* train.exec: a role that is a foreign program, such as a script for TensorFlow or PyTorch. Joins
 * with an address that is free for it, waits until all are there, and runs it with the environment
 * that the trainer made of who is where. What it computes is its own business: it has finished when
 * it ends with status 0. */
#include "services/worker/process.h"
#include "services/worker/role_parts.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/scratch.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORDS_MAX 4096 /* of its environment */
#define SAID_MAX 600   /* the end of its output, in a reason */

struct foreign {
    struct mr_role r;
    int port_fd; /* keeps the port until the program starts; -1: none */
    char address[MR_ADDRESS_BYTES_MAX];
    char *env[WORDS_MAX + 1];
    uint32_t env_count;
    bool is_halted; /* ended by us, as the session stops */
};

/* Where others reach this machine: the host of the process's own address. */
static void host_of(const char *address, char *out, size_t bytes)
{
    const char *colon = strrchr(address, ':');
    bool is_tcp = colon && strncmp(address, "unix:", 5) != 0;
    (void)snprintf(
        out, bytes, "%.*s", is_tcp ? (int)(colon - address) : 9, is_tcp ? address : "127.0.0.1");
}

/* A port that is free now, kept bound until the program starts. */
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

/* Only what is declared: by the trainer and in the document. */
static void env_fill(struct foreign *f)
{
    const Millrace__V1__JoinResponse *m = f->r.members->m;
    for (size_t i = 0; i < m->n_environment; i++)
        env_add(f, mr_format("%s=%s", m->environment[i]->key, m->environment[i]->value));
    for (char **pair = f->r.plan.exec_env; pair && *pair; pair++)
        env_add(f, mr_copy_text(*pair));
    if (!env_has(f, "PATH")) env_add(f, mr_copy_text("PATH=/usr/local/bin:/usr/bin:/bin"));
    if (!env_has(f, "HOME")) env_add(f, mr_copy_text("HOME=/nonexistent"));
}

/* Asked every few milliseconds while it runs. */
static bool should_end(void *ctx)
{
    struct foreign *f = ctx;
    if (mr_role_look(&f->r, NULL)) return true;
    f->is_halted = f->r.view.phase == MR_ROLE_HALT;
    return f->is_halted;
}

static int run_it(struct foreign *f, struct mr_error *e)
{
    struct mr_op_call *call = f->r.call;
    struct mr_scratch dir = {0};
    if (!f->r.plan.exec) return mr_fail(e, MR_EINVAL, "roles: this role has no \"exec\"");
    int err = mr_scratch_open(&dir, "/tmp", MR_PROCESS_SCRATCH, e);
    if (err) return err;
    env_fill(f);
    (void)close(f->port_fd);
    f->port_fd = -1;
    struct mr_process p = {.argv = f->r.plan.exec,
        .env = f->env,
        .dir = dir.path,
        .is_cancelled = should_end,
        .ctx = f};
    struct mr_error why;
    err = mr_process_run(&p, &why);
    const struct mr_buf *said = p.err.n ? &p.err : &p.out;
    size_t n = MR_MIN(said->n, (size_t)SAID_MAX);
    const char *end = n ? (const char *)said->p + said->n - n : "";
    if (said->n)
        call->does->log(call, "%.*s", (int)MR_MIN(said->n, (size_t)32768),
            (const char *)said->p + said->n - MR_MIN(said->n, (size_t)32768));
    if (err && !(err == MR_ECANCELED && f->is_halted))
        err = mr_fail(
            e, err, "%s%s%.*s", why.text, n ? "; the end of its output: " : "", (int)n, end);
    else
        err = MR_OK;
    mr_process_fini(&p);
    mr_scratch_close(&dir);
    return err;
}

/* It has ended, whatever the phase: says so until the session does. A foreign keeper keeps its
 * model itself. */
static int linger(struct foreign *f)
{
    struct mr_role *r = &f->r;
    r->post.exhausted = true;
    mr_agent_say(r->agent, &r->post);
    for (;;) {
        int err = mr_role_look(r, NULL);
        if (err) return err;
        mr_agent_say_finished(r->agent, r->view.phase, NULL, NULL);
        mr_agent_wait(r->agent, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
    }
}

/* The key of its task says what it is: "worker/3". */
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
    for (uint32_t i = 0; i < f->env_count; i++)
        mr_release(f->env[i]);
    return mr_role_end(&f->r, err, words);
}

static const struct mr_op_param params[] = {
    {"session", MR_TAKES_TEXT, NULL, "the training session"},
    {"index", MR_TAKES_INT, NULL, "which one of its role it is, from 0"},
    {"trainer", MR_TAKES_TEXT, NULL, "address of the trainer"},
    {"data", MR_TAKES_NIL | MR_TAKES_DICT, "null", "not used"},
};

const struct mr_op_desc mr_train_exec_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_BY_REFERENCE | MR_OP_LONG_RUNNING | MR_OP_MAY_BLOCK,
    .name = "train.exec",
    .summary = "A role of a training session that is a program of its own.",
    .result = "null",
    .params = params,
    .params_count = MR_ARRAY_LEN(params),
    .cost_ns = 1000000000,
    .run = exec_run};
