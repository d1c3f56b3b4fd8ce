#include "host/os/reexec.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

void mr_reexec_with(char **argv, const char *name, const char *value)
{
    /* By its path, not /proc/self/exe: the process keeps the name of its program. */
    char path[PATH_MAX];
    if (getenv(name)) return;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0 || setenv(name, value, 1)) return;
    path[n] = 0;
    (void)execv(path, argv);
}
