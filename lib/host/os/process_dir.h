/* Directories that live as long as their process: for sockets, and as working directories of
 * programs. The process holds a lock on the directory itself. The kernel drops the lock however the
 * process ends, so a later process can find and remove the directories of dead ones. */
#pragma once

#include "base/err.h"

#include <stddef.h>

#define MR_PROCESS_DIR_PATH_MAX 64u /* the path of a socket beneath it still fits */

struct mr_process_dir { /* zeros: none */
    char path[MR_PROCESS_DIR_PATH_MAX];
    int lock_fd;
};

/* Makes BASE/KIND-XXXXXX, mode 0700. MR_EIO: the text names the directory and the reason. */
int mr_process_dir_open(
    struct mr_process_dir *s, const char *base, const char *kind, struct mr_error *e);
/* Removes it with its content and follows no links; does nothing for zeros. */
void mr_process_dir_close(struct mr_process_dir *s);

/* Removes the directories BASE/KIND-* of this user whose process has ended; returns how many. */
size_t mr_process_dir_sweep(const char *base, const char *kind);
