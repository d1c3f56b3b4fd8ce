#include "services/worker/exec/exec_op.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "host/os/file.h"
#include "host/os/process_dir.h"
#include "ops/arg.h"
#include "lib/host/os/subprocess.h"
#include "store/object/format/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXTS_MAX 4096u
#define INPUT_BYTES_MAX ((size_t)1 << 30)

enum { ARG_ARGV, ARG_STDIN, ARG_ENV, ARG_FILES, ARG_OUTPUT, ARG_MEMORY, ARG_CPU };

static const struct mr_op_param params[] = {
    {"argv", MR_TAKES_LIST, NULL,
        "The program and its arguments. The program is searched in the PATH of `env`."},
    {"stdin",
        MR_TAKES_NIL | MR_TAKES_TEXT | MR_TAKES_BYTES | MR_TAKES_NUMBER | MR_TAKES_LIST |
            MR_TAKES_DICT,
        "null", "Standard input of the program: text or bytes unchanged, any other value as JSON."},
    {"env", MR_TAKES_DICT, "{}",
        "All environment variables of the program; PATH and HOME have defaults, MILLRACE_TASK "
        "is added."},
    {"files", MR_TAKES_DICT, "{}",
        "Files in the working directory, by name; contents as for stdin."},
    {"output", MR_TAKES_TEXT, "\"text\"", "Format of the program's output: text, bytes or json."},
    {"memory", MR_TAKES_INT, "0", "Limit of the program's address space in bytes; 0: none."},
    {"cpu_s", MR_TAKES_INT, "0", "Limit of the program's CPU time in seconds; 0: none."},
};

struct texts { /* a NULL-terminated list of owned texts */
    char **p;
    size_t n;
};

static void texts_fini(struct texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        mr_release(t->p[i]);
    mr_release(t->p);
}

static int text_add(struct mr_op_call *call, struct texts *t, char *text)
{
    if (t->n + 1 >= TEXTS_MAX) {
        mr_release(text);
        return call->does->fail(call, MR_ELIMIT, "more than %u arguments or variables", TEXTS_MAX);
    }
    if (!t->p) t->p = mr_alloc_array(TEXTS_MAX, sizeof *t->p);
    t->p[t->n++] = text;
    return MR_OK;
}

/* Appends the text of an argument, as the program receives it, to `out`. On failure it records the
 * error text with call->does->fail. */
static int bytes_of(struct mr_op_call *call, const struct mr_arg *a, struct mr_buf *out)
{
    if (a->type == MR_ARG_NIL) return MR_OK;
    if (a->type == MR_ARG_TEXT || a->type == MR_ARG_BYTES) {
        mr_buf_add_str(out, a->bytes);
    } else {
        struct mr_buf pack;
        struct mr_error e;
        mr_buf_init(&pack, INPUT_BYTES_MAX);
        int err = mr_arg_pack(a, &pack, &e);
        if (!err) err = mr_json_from_pack(mr_buf_str(&pack), out, &e);
        mr_buf_fini(&pack);
        if (err) return call->does->fail(call, err, "%s", e.text);
    }
    if (!mr_buf_status(out)) return MR_OK;
    return call->does->fail(call, MR_ELIMIT, "an input is larger than %zu bytes", INPUT_BYTES_MAX);
}

static int word_of(struct mr_op_call *call, const struct mr_arg *a, const char *what, char **out)
{
    struct mr_buf b;
    mr_buf_init(&b, INPUT_BYTES_MAX);
    int err = bytes_of(call, a, &b);
    if (!err && b.n && memchr(b.p, 0, b.n))
        err = call->does->fail(call, MR_EINVAL, "%s has a zero byte in it", what);
    mr_buf_add_byte(&b, 0);
    if (!err) *out = mr_copy_text((const char *)b.p);
    mr_buf_fini(&b);
    return err;
}

static int argv_fill(struct mr_op_call *call, struct texts *out)
{
    const struct mr_arg *list = &call->args[ARG_ARGV];
    if (!list->count)
        return call->does->fail(call, MR_EINVAL, "argv: the first item is the program");
    for (uint32_t i = 0; i < list->count; i++) {
        char *word = NULL;
        int err = word_of(call, &list->items[i], "argv", &word);
        if (!err) err = text_add(call, out, word);
        if (err) return err;
    }
    return MR_OK;
}

static int env_fill(struct mr_op_call *call, struct texts *out)
{
    const struct mr_arg *env = &call->args[ARG_ENV];
    bool has_path = false, has_home = false;
    for (uint32_t i = 0; i < env->count; i++) {
        const struct mr_arg *a = &env->items[i];
        char *word = NULL;
        if (!a->name.n || memchr(a->name.p, '=', a->name.n) || memchr(a->name.p, 0, a->name.n))
            return call->does->fail(call, MR_EINVAL, "env: a name is empty or has = in it");
        int err = word_of(call, a, "env", &word);
        if (err) return err;
        has_path = has_path || mr_str_eq(a->name, MR_STR("PATH"));
        has_home = has_home || mr_str_eq(a->name, MR_STR("HOME"));
        char *pair = mr_format("%.*s=%s", MR_STR_ARG(a->name), word);
        mr_release(word);
        err = text_add(call, out, pair);
        if (err) return err;
    }
    int err = MR_OK;
    if (!has_path) err = text_add(call, out, mr_copy_text("PATH=/usr/local/bin:/usr/bin:/bin"));
    if (!err && !has_home) err = text_add(call, out, mr_copy_text("HOME=/nonexistent"));
    if (err) return err;
    /* MILLRACE_TASK names this task. The program sends the value as the parent of each job that it
     * submits. */
    char job[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(call->task.job, job);
    return text_add(
        call, out, mr_format("MILLRACE_TASK=%s/%u/%u", job, call->task.index, call->task.attempt));
}

static int not_written(struct mr_op_call *call, const char *dir, const char *name, int number)
{
    int err = mr_file_write_error(number);
    if (err == MR_EDISKFULL)
        return call->does->fail(call, err, "files: no space left on %s for %s", dir, name);
    return call->does->fail(
        call, err, "files: cannot write %s/%s: %s", dir, name, strerror(number));
}

static int file_write(struct mr_op_call *call, const char *path, int dir, const struct mr_arg *a)
{
    char name[256];
    if (!a->name.n || a->name.n >= sizeof name || memchr(a->name.p, '/', a->name.n) ||
        memchr(a->name.p, 0, a->name.n) || a->name.p[0] == '.')
        return call->does->fail(call, MR_EINVAL,
            "files: \"%.*s\" is no file name: no /, no leading dot, at most 255 bytes",
            MR_STR_ARG(a->name));
    memcpy(name, a->name.p, a->name.n);
    name[a->name.n] = 0;
    struct mr_buf b;
    mr_buf_init(&b, INPUT_BYTES_MAX);
    int err = bytes_of(call, a, &b);
    int fd =
        err ? -1 : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (!err && fd < 0) err = not_written(call, path, name, errno);
    for (size_t at = 0; !err && at < b.n;) {
        ssize_t n = write(fd, b.p + at, b.n - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) err = not_written(call, path, name, n ? errno : ENOSPC);
        at += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) (void)close(fd);
    mr_buf_fini(&b);
    return err;
}

static int files_write(struct mr_op_call *call, const char *dir)
{
    const struct mr_arg *files = &call->args[ARG_FILES];
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return call->does->fail(call, MR_EIO, "cannot open its working directory %s", dir);
    int err = MR_OK;
    for (uint32_t i = 0; i < files->count && !err; i++)
        err = file_write(call, dir, fd, &files->items[i]);
    (void)close(fd);
    return err;
}

static int output_return(struct mr_op_call *call, struct mr_str kind, struct mr_str out)
{
    if (mr_str_eq(kind, MR_STR("bytes"))) {
        void *p = call->does->return_bytes(call, out.n);
        if (!p) return MR_ELIMIT;
        if (out.n) memcpy(p, out.p, out.n);
        return MR_OK;
    }
    if (mr_str_eq(kind, MR_STR("json"))) {
        struct mr_buf pack;
        struct mr_error e;
        mr_buf_init(&pack, INPUT_BYTES_MAX);
        int err = mr_json_to_pack(out, &pack, &e);
        err = err ? call->does->fail(call, err, "its output is no JSON: %s", e.text)
                  : call->does->return_pack(call, mr_buf_str(&pack));
        mr_buf_fini(&pack);
        return err;
    }
    if (!mr_str_eq(kind, MR_STR("text")))
        return call->does->fail(
            call, MR_EINVAL, "output is text, bytes or json, not \"%.*s\"", MR_STR_ARG(kind));
    if (!mr_utf8_is_valid(out))
        return call->does->fail(
            call, MR_EFORMAT, "its output is not UTF-8: ask for output \"bytes\"");
    return call->does->return_text(call, out);
}

static bool is_cancelled(void *ctx)
{
    struct mr_op_call *call = ctx;
    return call->does->is_cancelled(call);
}

static void on_err(void *ctx, struct mr_str line)
{
    struct mr_op_call *call = ctx;
    call->does->log(call, "%.*s", MR_STR_ARG(line));
}

static int run_in(struct mr_op_call *call, const char *dir, struct texts *argv, struct texts *env,
    struct mr_buf *input)
{
    struct mr_process p = {.argv = argv->p,
        .env = env->p,
        .dir = dir,
        .input = mr_buf_str(input),
        .memory_bytes_max = (uint64_t)MR_MAX(call->args[ARG_MEMORY].i, 0),
        .cpu_s_max = (uint64_t)MR_MAX(call->args[ARG_CPU].i, 0),
        .is_cancelled = is_cancelled,
        .on_err = on_err,
        .ctx = call};
    struct mr_error e;
    int err = mr_process_run(&p, &e);
    if (err) {
        err = call->does->fail(call, err, "%s", e.text);
    } else {
        err = output_return(call, call->args[ARG_OUTPUT].bytes, mr_buf_str(&p.out));
    }
    mr_process_fini(&p);
    return err;
}

static int exec_run(struct mr_op_call *call)
{
    struct texts argv = {0}, env = {0};
    struct mr_buf input;
    struct mr_process_dir dir = {0};
    mr_buf_init(&input, INPUT_BYTES_MAX);
    int err = argv_fill(call, &argv);
    if (!err) err = env_fill(call, &env);
    if (!err) err = bytes_of(call, &call->args[ARG_STDIN], &input);
    struct mr_error e;
    mr_process_files_begin();
    if (!err && mr_process_dir_open(&dir, "/tmp", MR_PROCESS_DIR_KIND, &e))
        err = call->does->fail(call, MR_EIO, "%s", e.text);
    if (!err) err = files_write(call, dir.path);
    mr_process_files_end();
    if (!err) err = run_in(call, dir.path, &argv, &env, &input);
    mr_process_files_begin();
    mr_process_dir_close(&dir);
    mr_process_files_end();
    texts_fini(&argv);
    texts_fini(&env);
    mr_buf_fini(&input);
    return err;
}

static const struct mr_op_desc exec_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_MAY_BLOCK,
    .name = "exec",
    .summary =
        "Runs a program and returns its standard output; its standard error becomes the log of "
        "the task.",
    .result = "the program's standard output",
    .params = params,
    .params_count = MR_ARRAY_LEN(params),
    .cost_ns = 5000000,
    .run = exec_run};

const struct mr_op_desc *mr_exec_op(void)
{
    return &exec_op;
}
