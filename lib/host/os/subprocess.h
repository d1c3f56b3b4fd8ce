/* One child process: started clean, fed, listened to, ended whole. Knows nothing of tasks. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "host/os/user.h"

/* Programs run in directories of this kind (host/os/process_dir.h) beneath /tmp. */
#define MR_PROCESS_DIR_KIND "millrace-exec"
#define MR_PROCESS_OUTPUT_MAX ((size_t)256 << 20)

struct mr_process {
    char *const *argv; /* NULL-terminated, as env */
    char *const *env;
    const char *dir; /* working directory */
    struct mr_str input;
    uint64_t memory_bytes_max; /* 0: none */
    uint64_t cpu_s_max;
    bool (*is_cancelled)(void *ctx); /* asked every few milliseconds */
    void (*on_err)(
        void *ctx, struct mr_str line); /* each line of `err`, which is then not kept; or NULL */
    void *ctx;
    struct mr_buf out; /* what it wrote; also after a failure */
    struct mr_buf err; /* the end of it */
};

/* At the start, before other threads: all programs run as this user, whose they find their
 * directory to be. NULL: as this process. */
void mr_process_run_as(const struct mr_user *user);
/* Around what this thread does with a program's directory: done with that user's rights, since the
 * program may have put a link there. */
void mr_process_files_begin(void);
void mr_process_files_end(void);

/* Until it ended. MR_OK: with status 0. MR_ECANCELED; otherwise words on how it ended. */
int mr_process_run(struct mr_process *p, struct mr_error *e);
void mr_process_fini(struct mr_process *p);
