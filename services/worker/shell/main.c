/* mr-worker: runs the operators of this process for a scheduler. */
#include "base/alloc.h"
#include "base/limits.h"
#include "host/config/common_options.h"
#include "host/config/config.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "host/os/machine.h"
#include "host/os/signal.h"
#include "host/os/reexec.h"
#include "proto/methods.h"
#include "services/worker/exec/exec_op.h"
#include "lib/host/os/subprocess.h"
#include "train/role/ops.h"
#include "rpc/tls.h"
#include "services/worker/shell/shell.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct config {
    const char *scheduler;
    const char *trainer;
    const char *store;
    const char *store_address;
    const char *name;
    const char *node;
    const char *dir;
    const char *token_file;
    const char *secret_file;
    struct mr_texts allow_uid;
    struct mr_certificate_files tls;
    struct mr_texts listen;
    struct mr_texts plugin;
    struct mr_texts data_root;
    struct mr_texts deny_path;
    const char *exec_user;
    struct mr_texts resource;
    uint64_t threads, processor;
    uint64_t memory;
    bool allow_exec;
};

#define AT(field) offsetof(struct config, field)
// clang-format off
static const struct mr_option options[] = {
    MR_OPTION_SCHEDULER(AT(scheduler), "the scheduler: unix:PATH or HOST:PORT",
        .init = "127.0.0.1:8471"),
    MR_OPTION_TRAINER(AT(trainer),
        "the trainer, the only one that roles and queue.put call: unix:PATH or HOST:PORT; default: "
        "whichever a job names"),
    {.name = "store", .env = "MILLRACE_STORE_SOCKET", .type = MR_OPTION_TEXT, .value = "PATH",
        .help = "control socket of this node's object store; default: none, and no value over 4 KiB",
        .at = AT(store)},
    {.name = "store-address", .env = "MILLRACE_STORE_ADDRESS", .type = MR_OPTION_TEXT, .value = "ADDR",
        .help = "gRPC address of this node's object store, as others reach it", .at = AT(store_address)},
    {.name = "name", .env = "MILLRACE_WORKER_NAME", .type = MR_OPTION_TEXT, .value = "NAME",
        .help = "unique in the cluster; default: worker-HOST-PID", .at = AT(name)},
    MR_OPTION_NODE(AT(node), "name of the machine"),
    {.name = "threads", .letter = 't', .env = "MILLRACE_THREADS", .type = MR_OPTION_U64, .value = "N",
        .help = "executor threads; default: one a processor that it may use", .at = AT(threads), .max = MR_SLOTS_MAX},
    {.name = "processor", .env = "MILLRACE_PROCESSOR", .type = MR_OPTION_U64, .value = "N",
        .help = "training roles of this process have the N-th processor and those after it as their homes",
        .at = AT(processor), .max = 4095},
    {.name = "memory", .env = "MILLRACE_WORKER_MEMORY", .type = MR_OPTION_BYTES, .value = "BYTES",
        .help = "what this process may use; default: a quarter of what there is, at most 80 %", .at = AT(memory),
        .min = 64 << 20, .max = (uint64_t)1 << 50},
    {.name = "resource", .env = "MILLRACE_RESOURCES", .type = MR_OPTION_TEXTS, .value = "NAME=N",
        .help = "what tasks may ask for, e.g. gpu=1", .at = AT(resource)},
    {.name = "data-root", .env = "MILLRACE_DATA_ROOTS", .type = MR_OPTION_TEXTS, .value = "DIR",
        .help = "operators read files beneath it; default: the current directory, or none where there is a "
                "--token-file or --secret-file",
        .at = AT(data_root)},
    {.name = "deny-path", .env = "MILLRACE_DENY_PATHS", .type = MR_OPTION_TEXTS, .value = "PATH",
        .help = "no operator reads this file, or what lies in this directory, in whatever data root; so it is "
                "anyway with --token-file, --secret-file and --dir",
        .at = AT(deny_path)},
    {.name = "plugin", .env = "MILLRACE_PLUGINS", .type = MR_OPTION_TEXTS, .value = "FILE.so",
        .help = "operators to load", .at = AT(plugin)},
    {.name = "allow-exec", .env = "MILLRACE_ALLOW_EXEC", .type = MR_OPTION_BOOL,
        .help = "run programs: the operator exec. Without --exec-user a program may do what this process may: "
                "everyone who may submit a job can then read the cluster's secret",
        .at = AT(allow_exec)},
    {.name = "exec-user", .env = "MILLRACE_EXEC_USER", .type = MR_OPTION_TEXT, .value = "NAME",
        .help = "programs run as this user of the system; only where this process was started as root",
        .at = AT(exec_user)},
    {.name = "dir", .env = "MILLRACE_WORKER_DIR", .type = MR_OPTION_TEXT, .value = "DIR",
        .help = "where to note what runs, to be read after a crash; default: nowhere", .at = AT(dir)},
    {.name = "listen", .env = "MILLRACE_WORKER_LISTEN", .type = MR_OPTION_TEXTS, .value = "ADDR",
        .help = "serve health, reflection and metrics at unix:PATH or HOST:PORT; default: nowhere",
        .at = AT(listen)},
    MR_OPTION_TOKEN_FILE(AT(token_file),
        "who may call at --listen, one a line: TOKEN ROLE NAME; needed for a public address"),
    MR_OPTION_SECRET_FILE(AT(secret_file),
        "the cluster's secret, shown to scheduler and stores"),
    MR_OPTION_ALLOW_UID(AT(allow_uid)),
    MR_RPC_TLS_OPTIONS(AT(tls)),
};
// clang-format on

static const struct mr_config_spec spec = {
    .program = "mr-worker",
    .summary = "Runs tasks: operators of this process on values of this node.",
    .examples = "  mr-worker --scheduler unix:/run/m/scheduler.sock --store /run/m/arena.sock \\\n"
                "      --store-address unix:/run/m/store.sock --threads 4\n"
                "  mr-worker --scheduler 10.0.0.5:8471 --plugin ./my_ops.so --resource gpu=1",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
};

static int resource_parse(const char *text, struct mr_ws_resource *out, struct mr_error *e)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;
    double n = equals ? strtod(equals + 1, &end) : 0;
    if (!equals || equals == text || end == equals + 1 || *end || !(n > 0) || n > 1e9)
        return mr_fail(e, MR_EINVAL,
            "--resource \"%s\": wanted is NAME=NUMBER with a number above 0, e.g. gpu=1", text);
    *out = (struct mr_ws_resource){
        mr_str_of(text, (size_t)(equals - text)), (uint64_t)llround(n * 1e6)};
    return MR_OK;
}

static int resources_parse(
    const struct mr_texts *texts, struct mr_ws_resource *out, struct mr_error *e)
{
    if (texts->count > MR_RESOURCES_MAX)
        return mr_fail(e, MR_EINVAL, "--resource: at most %d kinds", MR_RESOURCES_MAX);
    for (size_t i = 0; i < texts->count; i++) {
        int err = resource_parse(texts->items[i], &out[i], e);
        if (err) return err;
    }
    return MR_OK;
}

/* Adds the paths that operators refuse to read: the secrets, tokens, keys and state that this
 * process's options and environment name, and each --deny-path. */
static int denied_fill(struct mr_denied *d, const struct config *c, struct mr_error *e)
{
    int err = MR_OK;
    if (c->secret_file)
        err = mr_denied_add(d, c->secret_file, "the cluster's secret (--secret-file)", e);
    if (!err && c->token_file)
        err = mr_denied_add(d, c->token_file, "the cluster's token file (--token-file)", e);
    if (!err && mr_certificate_is_given(c->tls.key))
        err = mr_denied_add(d, c->tls.key, "the key of the worker's certificate (--tls-key)", e);
    if (!err && c->dir) err = mr_denied_add(d, c->dir, "of the node's state (--dir)", e);
    for (size_t i = 0; i < c->deny_path.count && !err; i++) {
        const char *path = c->deny_path.items[i];
        MR_AUTO(mr_free_ptr) char *what = mr_format("in %s (--deny-path)", path);
        err = mr_denied_add(d, path, what, e);
    }
    return err ? err : mr_denied_add_environment(d, e);
}

static int roots_fill(struct mr_roots *roots, const struct config *c, struct mr_error *e)
{
    int err = denied_fill(&roots->denied, c, e);
    bool is_closed = c->token_file || c->secret_file;
    if (!err && !c->data_root.count && !is_closed) err = mr_roots_add(roots, ".", e);
    for (size_t i = 0; i < c->data_root.count && !err; i++)
        err = mr_roots_add(roots, c->data_root.items[i], e);
    return err ? err : mr_roots_check(roots, e);
}

static int ops_fill(struct mr_registry *r, const struct config *c, struct mr_error *e)
{
    int err = mr_role_add_ops(r, c->allow_exec, e);
    if (!err && c->allow_exec) err = mr_registry_add(r, mr_exec_op(), e);
    for (size_t i = 0; i < c->plugin.count && !err; i++)
        err = mr_registry_load_plugin(r, c->plugin.items[i], e);
    return err;
}

static int exec_user_settle(const struct config *c, struct mr_error *e)
{
    struct mr_user user;
    if (!c->exec_user) return MR_OK;
    if (!c->allow_exec)
        return mr_fail(e, MR_EINVAL, "--exec-user: programs run only with --allow-exec");
    int err = mr_user_find("--exec-user", c->exec_user, &user, e);
    if (!err) mr_process_run_as(&user);
    return err;
}

static void defaults(struct config *c, char *name, size_t name_bytes)
{
    char host[64] = "local";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(name, name_bytes, "worker-%s-%ld", host, (long)getpid());
    if (!c->name) c->name = name;
    struct mr_machine machine;
    mr_machine_read(&machine);
    if (!c->threads) c->threads = machine.cpus;
    uint64_t most = mr_machine_share(&machine, UINT64_MAX);
    c->memory = MR_MIN(c->memory ? c->memory : machine.memory_bytes / 4, most);
}

/* Returns the memory limit of this process's control group. The store has to know the limit: this
 * process writes values into shared memory, and the kernel charges this memory to the group. */
static struct mr_store_limit limit_of(const struct config *c)
{
    struct mr_machine machine;
    mr_machine_read(&machine);
    if (!machine.is_limited) return (struct mr_store_limit){0};
    return (struct mr_store_limit){machine.memory_bytes, c->memory, machine.group};
}

static void on_signal(void *ctx, int number)
{
    (void)number;
    mr_worker_shell_signal(ctx);
}

static void on_continue(void *ctx, mr_time at)
{
    mr_worker_shell_continued(ctx, at);
}

static int run(const struct config *c, struct mr_worker_options *o, struct mr_signals *signals,
    struct mr_error *e)
{
    struct mr_worker_shell *sh = NULL;
    int err = mr_worker_shell_open(o, &sh, e);
    if (err) return err;
    mr_signal_hand(signals, on_signal, sh);
    mr_signal_on_continue(signals, on_continue, sh);
    int code = mr_worker_shell_run(sh);
    mr_log(MR_INFO, "worker.end", "name=%s code=%d", c->name, code);
    /* An operator may never return, so the process exits without waiting for its executors. It has
     * no state that must outlive it. */
    if (code) _exit(code);
    if (!mr_worker_shell_is_idle(sh)) _exit(0);
    mr_signal_close(&signals);
    mr_worker_shell_close(&sh);
    return MR_OK;
}

int main(int argc, char **argv)
{
    mr_time began = mr_clock_now();
    struct config c = {0};
    struct mr_error e = {0};
    struct mr_ws_resource resources[MR_RESOURCES_MAX];
    struct mr_roots roots;
    struct mr_rpc_auth *auth = NULL;
    struct mr_peer_rules peers = {0};
    char name[128];
    /* tasks run in parallel, so a task's linear algebra uses one thread */
    mr_reexec_with(argv, "OPENBLAS_NUM_THREADS", "1");
    mr_reexec_with(argv, "OMP_NUM_THREADS", "1");
    mr_reexec_with(argv, "GOMP_SPINCOUNT", "0");
    mr_signal_block();
    mr_log_set_program("mr-worker");
    mr_config_load(&spec, argc, argv, &c, NULL);
    struct mr_signals *signals = mr_signal_open(NULL, NULL);
    defaults(&c, name, sizeof name);
    struct mr_registry *registry = mr_registry_new(), *builtin = mr_registry_new();
    mr_roots_init(&roots);
    int err = resources_parse(&c.resource, resources, &e);
    if (!err) err = roots_fill(&roots, &c, &e);
    if (!err) err = ops_fill(registry, &c, &e);
    if (!err) err = exec_user_settle(&c, &e);
    const struct mr_rpc_auth_options access = {.token_file = c.token_file,
        .secret_file = c.secret_file,
        .role_of = mr_proto_role,
        .callers_of = mr_proto_callers};
    if (!err) err = mr_peer_rules_parse(&c.allow_uid, &peers, &e);
    if (!err) err = mr_rpc_auth_new(&access, &auth, &e);
    if (!err) err = mr_rpc_tls_use(&c.tls, &e);
    struct mr_worker_options o = {.scheduler = c.scheduler,
        .trainer = c.trainer,
        .store_socket = c.store,
        .store_address = c.store_address,
        .name = c.name,
        .node = c.node,
        .dir = c.dir,
        .began = began,
        .auth = auth,
        .peers = peers,
        .listen = c.listen.items,
        .listen_count = c.listen.count,
        .slots = (uint32_t)c.threads,
        .processor = (uint32_t)c.processor,
        .memory_bytes = c.memory,
        .limit = limit_of(&c),
        .resources = resources,
        .resources_count = (uint32_t)c.resource.count,
        .registry = registry,
        .builtin = builtin,
        .roots = &roots,
        .allow_exec = c.allow_exec};
    if (!err) err = run(&c, &o, signals, &e);
    if (err) (void)fprintf(stderr, "mr-worker: %s\n", e.text);
    mr_roots_fini(&roots);
    mr_registry_free(&registry);
    mr_registry_free(&builtin);
    mr_rpc_auth_free(&auth);
    mr_config_fini(&spec, &c);
    return err ? MR_WORKER_EXIT_FATAL : 0;
}
