/* The scheduler's process: one thread, a loop of messages in and effects out. It starts every part,
 * passes messages and the core's notes to the parts, and decides nothing about tasks. */
#pragma once

#include "services/scheduler/base/context.h"

int mr_shell_open(const struct mr_scheduler_options *options, const char *const *listen,
    size_t listen_count, struct mr_shell **out, struct mr_error *e);
/* Runs the process until it is stopped. Returns the exit code. */
int mr_shell_run(struct mr_shell *sh);
void mr_shell_close(struct mr_shell **sh);
