/* The commands of `millrace`. Each parses its own flags and returns an exit code;
 * docs/cli.md has the table of them. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum {
    MR_EXIT_OK = 0,
    MR_EXIT_FAILED = 1,
    MR_EXIT_USAGE = 2,
    MR_EXIT_AWAY = 3,
    MR_EXIT_JOB = 4,
    MR_EXIT_NOT_FOUND = 5,
    MR_EXIT_TIMEOUT = 6,
};

struct mr_command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

int mr_command_up(int argc, char **argv);
int mr_command_run(int argc, char **argv);
int mr_command_submit(int argc, char **argv);
int mr_command_status(int argc, char **argv);
int mr_command_watch(int argc, char **argv);
int mr_command_explain(int argc, char **argv);
int mr_command_get(int argc, char **argv);
int mr_command_put(int argc, char **argv);
int mr_command_ls(int argc, char **argv);
int mr_command_rm(int argc, char **argv);
int mr_command_ops(int argc, char **argv);
int mr_command_workers(int argc, char **argv);
int mr_command_timeline(int argc, char **argv);
int mr_command_logs(int argc, char **argv);
int mr_command_profile(int argc, char **argv);
int mr_command_graph(int argc, char **argv);
int mr_command_cancel(int argc, char **argv);
int mr_command_ready(int argc, char **argv);
int mr_command_retry(int argc, char **argv);
int mr_command_forget(int argc, char **argv);
int mr_command_retire(int argc, char **argv);
int mr_command_template(int argc, char **argv);
int mr_command_top(int argc, char **argv);
int mr_command_train(int argc, char **argv);
int mr_command_trainings(int argc, char **argv);
int mr_command_channel(int argc, char **argv);
int mr_command_queue(int argc, char **argv);
int mr_command_bench(int argc, char **argv);
