/* Directories that live as long as their process: for sockets, and as working directories of
 * programs. The process holds a lock on the directory itself. The kernel drops the lock however the
 * process ends, so a later process can find and remove the directories of dead processes. */
#pragma once

#include "base/err.h"

#include <stddef.h>

/* Bytes of the directory's path, so that the path of a socket in the directory fits into
 * sun_path. */
#define MR_PROCESS_DIR_PATH_MAX 64u

struct mr_process_dir { /* all zeros: no directory is open */
    char path[MR_PROCESS_DIR_PATH_MAX];
    int lock_fd;
};

/* Makes the directory BASE/KIND-XXXXXX with mode 0700. The error text of MR_EIO names the
 * directory and the reason. */
int mr_process_dir_open(
    struct mr_process_dir *s, const char *base, const char *kind, struct mr_error *e);
/* Removes the directory with its content, without following links. Does nothing for a struct of
 * zeros. */
void mr_process_dir_close(struct mr_process_dir *s);

/* Removes the directories BASE/KIND-* of this user whose processes have ended. Returns the number
 * of removed directories. */
size_t mr_process_dir_sweep(const char *base, const char *kind);
