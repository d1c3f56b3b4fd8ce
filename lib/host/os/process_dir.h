/* Directories that live as long as their process: for sockets, and for programs to run in. Each is
 * held by a lock on the directory itself, which the kernel drops however the process ends; so
 * who comes later can tell what the dead left behind, and remove it. */
#pragma once

#include "base/err.h"

#include <stddef.h>

#define MR_PROCESS_DIR_PATH_MAX 64u /* so that a socket beneath it has a path that fits */

struct mr_process_dir { /* zeros: none */
    char path[MR_PROCESS_DIR_PATH_MAX];
    int lock_fd;
};

/* Makes BASE/KIND-XXXXXX, mode 0700. MR_EIO: the words name the directory and the reason. */
int mr_process_dir_open(
    struct mr_process_dir *s, const char *base, const char *kind, struct mr_error *e);
/* Removes it with all in it, following no links; does nothing for zeros. */
void mr_process_dir_close(struct mr_process_dir *s);

/* Removes the directories BASE/KIND-* of this user whose process is gone; how many they were. */
size_t mr_process_dir_sweep(const char *base, const char *kind);
