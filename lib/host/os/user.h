/* Runs code as another user of the system, for programs that are not trusted with the rights of
 * this process. Works only in a process that was started as root. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct mr_user {
    uid_t uid;
    gid_t gid;
};

/* Finds a user by name and checks that this process may become it. MR_EINVAL: there is no such
 * user, or it is root or in the group root. MR_EPERM: this process is not root, or the kernel does
 * not allow the change. Error texts begin with `flag`. */
int mr_user_find(const char *flag, const char *name, struct mr_user *out, struct mr_error *e);

/* Makes `u` the user of this process for good; to be called after fork. The process has no
 * supplementary groups afterwards, and no program that it executes gains rights. False: the kernel
 * refused one of the changes. Async-signal-safe. */
bool mr_user_become(const struct mr_user *u);

/* Between mr_user_enter and mr_user_leave, the file calls of this thread have the rights of `u`,
 * without the supplementary groups of this process. New files belong to `u`. Other threads are not
 * affected. Calls must not be nested. */
void mr_user_enter(const struct mr_user *u);
void mr_user_leave(void);
