/* Starting over with an environment variable set: for libraries that read it before `main`, such as
 * OpenBLAS, whose threads would otherwise exist by then, with every signal unblocked, and take the
 * SIGTERM that host/signal.h waits for. */
#pragma once

/* First thing in `main`. Returns if the variable is set already, or if it cannot be done. */
void mr_reexec_with(char **argv, const char *name, const char *value);
