/* Runs the program again with an environment variable set, for libraries that read it before
 * `main`. OpenBLAS is one: otherwise its threads would exist by then, with every signal unblocked,
 * and take the SIGTERM that host/os/signal.h waits for. */
#pragma once

/* First thing in `main`. Returns if the variable is set already, or if it cannot be done. */
void mr_reexec_with(char **argv, const char *name, const char *value);
