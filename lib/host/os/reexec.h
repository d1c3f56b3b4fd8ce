/* Runs the program again with an environment variable set, for libraries that read the variable
 * before `main`. OpenBLAS is such a library: without the variable, it starts threads before `main`.
 * These threads do not block signals and would receive the SIGTERM that host/os/signal.h waits for.
 */
#pragma once

/* Runs the program again with the variable set. Must be the first call in `main`. Returns if the
 * variable is set already or if the program cannot be executed again. */
void mr_reexec_with(char **argv, const char *name, const char *value);
