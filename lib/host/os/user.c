/* Changes the user: of a whole process for good, or of one thread for its file calls (setfsuid).
 * Makes system calls directly where the C library's functions would change all threads or are not
 * safe after fork. */
#include "host/os/user.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Thread_local int death_signal;
/* Supplementary groups of the process, kept while this thread acts for a user. */
static _Thread_local gid_t *groups;
static _Thread_local int groups_count;

bool mr_user_become(const struct mr_user *u)
{
    return !syscall(SYS_setgroups, (size_t)0, NULL) &&
           !syscall(SYS_setresgid, u->gid, u->gid, u->gid) &&
           !syscall(SYS_setresuid, u->uid, u->uid, u->uid) &&
           !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* True: the kernel allows this process to become `u`. A child process tries the change. A process
 * in a container may lack the capabilities for it. */
static bool may_become(const struct mr_user *u)
{
    pid_t pid = fork();
    if (pid == 0) _exit(mr_user_become(u) ? 0 : 1);
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && status == 0;
}

int mr_user_find(const char *flag, const char *name, struct mr_user *out, struct mr_error *e)
{
    errno = 0;
    const struct passwd *p = getpwnam(name);
    if (!p) return mr_fail(e, MR_EINVAL, "%s: there is no user \"%s\" on this machine", flag, name);
    if (!p->pw_uid || !p->pw_gid)
        return mr_fail(e, MR_EINVAL,
            "%s: \"%s\" is root or of the group root: name a user without rights", flag, name);
    if (geteuid() != 0)
        return mr_fail(e, MR_EPERM,
            "%s: only a process that was started as root can run programs as \"%s\"", flag, name);
    const struct mr_user u = {.uid = p->pw_uid, .gid = p->pw_gid};
    if (!may_become(&u))
        return mr_fail(e, MR_EPERM,
            "%s: this process may not become \"%s\" (has it the capabilities CAP_SETUID and CAP_SETGID?)",
            flag, name);
    *out = u;
    return MR_OK;
}

/* When the ids of a thread change, the kernel clears its parent-death signal and makes the process
 * not dumpable. mr_user_leave restores both. */
void mr_user_enter(const struct mr_user *u)
{
    (void)prctl(PR_GET_PDEATHSIG, &death_signal);
    int n = getgroups(0, NULL);
    mr_assert(n >= 0);
    groups = mr_alloc_array((size_t)n + 1, sizeof *groups);
    groups_count = getgroups(n, groups);
    mr_assert(groups_count == n);
    /* Drops the supplementary groups of root. With them the thread could read files that `u` may
     * not read. */
    long cleared = syscall(SYS_setgroups, (size_t)0, NULL);
    mr_assert(!cleared);
    (void)setfsgid(u->gid);
    (void)setfsuid(u->uid);
    /* -1 is not a valid user, so the call changes nothing and returns the present user. */
    uid_t now = (uid_t)setfsuid((uid_t)-1);
    mr_assert(now == u->uid);
}

void mr_user_leave(void)
{
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
    long restored = syscall(SYS_setgroups, (size_t)groups_count, groups);
    mr_assert(!restored);
    mr_release(groups);
    groups = NULL;
    (void)prctl(PR_SET_DUMPABLE, 1);
    if (death_signal) (void)prctl(PR_SET_PDEATHSIG, death_signal);
}
