/* Runs the program again with an environment variable set (reexec.h). */
#include "host/os/reexec.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

void mr_reexec_with(char **argv, const char *name, const char *value)
{
    /* Executes the program by its path. With /proc/self/exe, the kernel would name the process
     * "exe". */
    char path[PATH_MAX];
    if (getenv(name)) return;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0 || setenv(name, value, 1)) return;
    path[n] = 0;
    (void)execv(path, argv);
}
