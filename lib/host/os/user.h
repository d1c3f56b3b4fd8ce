/* Another user of the system, for programs that are not trusted with what this process may do. Only
 * a process that was started as root can become one. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct mr_user {
    uid_t uid;
    gid_t gid;
};

/* MR_EINVAL with a sentence that names `flag`: no such user, root or of the group root. MR_EPERM:
 * this process is not root, or may not change users. */
int mr_user_find(const char *flag, const char *name, struct mr_user *out, struct mr_error *e);

/* After fork, for good: no other groups, and no program gains rights. Async-signal-safe. */
bool mr_user_become(const struct mr_user *u);

/* Between the two, what this thread does with files is done with the rights of that user, to whom
 * belongs what is made, and without this process's other groups. Other threads are not concerned.
 * Not to be nested. */
void mr_user_enter(const struct mr_user *u);
void mr_user_leave(void);
