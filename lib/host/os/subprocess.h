/* Runs one child process: writes its input, reads its output, and at the end kills its whole
 * process group. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "host/os/user.h"

/* Each program runs in a directory /tmp/millrace-exec-XXXXXX of its own (host/os/process_dir.h). */
#define MR_PROCESS_DIR_KIND "millrace-exec"
#define MR_PROCESS_OUTPUT_MAX ((size_t)256 << 20)

struct mr_process {
    char *const *argv; /* arguments; the list ends with NULL, like `env` */
    char *const *env;
    const char *dir; /* the working directory */
    struct mr_str input;
    uint64_t memory_bytes_max; /* bytes of memory; 0: no limit */
    uint64_t cpu_s_max;
    /* Called every few milliseconds; true: the process is killed. */
    bool (*is_cancelled)(void *ctx);
    /* Called for each line of stderr, which is then not kept in `err`. May be NULL. */
    void (*on_err)(void *ctx, struct mr_str line);
    void *ctx;
    struct mr_buf out; /* the stdout of the process, also after a failure */
    struct mr_buf err; /* the end of the stderr of the process */
};

/* Sets the user that all child processes run as. Their working directories must belong to this
 * user. To be called at the start, before other threads exist. NULL: the user of this process. */
void mr_process_run_as(const struct mr_user *user);
/* Between mr_process_files_begin and mr_process_files_end, this thread's file calls run with the
 * rights of the user whom mr_process_run_as has set. Callers use them around file operations in a
 * program's directory, because the program may have put a symbolic link there. */
void mr_process_files_begin(void);
void mr_process_files_end(void);

/* Runs the process until it ends. MR_OK: it exited with status 0. MR_ECANCELED: is_cancelled
 * returned true. For any other error, `e` says how the process ended. */
int mr_process_run(struct mr_process *p, struct mr_error *e);
void mr_process_fini(struct mr_process *p);
