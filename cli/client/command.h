/* The commands of `millrace`. Each parses its own flags and returns an exit code;
 * docs/cli.md has the table of them. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "host/config/config.h"

enum {
    MR_EXIT_OK = 0,
    MR_EXIT_FAILED = 1,
    MR_EXIT_USAGE = 2,
    MR_EXIT_AWAY = 3,
    MR_EXIT_JOB = 4,
    MR_EXIT_NOT_FOUND = 5,
    MR_EXIT_TIMEOUT = 6,
};

/* clang-format off */
/* X(name, sentence): `mr_command_name` runs it, `mr_name_spec` has its flags. Help and completion
 * list them in this order. */
#define MR_COMMANDS(X) \
    X(up, "start a whole cluster on this machine") \
    X(run, "run a job file and fetch its targets") \
    X(submit, "submit a job file") \
    X(status, "show a job, or all of them") \
    X(watch, "follow a job until it ends") \
    X(explain, "why a task ran, runs, waits, or never will") \
    X(timeline, "what the tasks of a job did when") \
    X(logs, "what the tasks of a job wrote") \
    X(profile, "where the time of a job went, by operator") \
    X(graph, "list the nodes of a job's graph") \
    X(cancel, "stop a job") \
    X(retry, "run what failed in a job again") \
    X(forget, "forget jobs and their results") \
    X(template, "install job files under a name, make jobs of them") \
    X(train, "train a model: start a session, follow it, show how it went") \
    X(trainings, "list trainings, or show one") \
    X(channel, "read, follow or append to a channel") \
    X(queue, "list or make queues, put into one or take from it") \
    X(get, "fetch a result, an object, or what a name stands for") \
    X(put, "upload a file as an object") \
    X(ls, "list names, or objects") \
    X(rm, "forget a job, delete an object, take a name away") \
    X(ops, "list the operators, or describe one") \
    X(workers, "list the workers") \
    X(ready, "does a service serve, could a job run?") \
    X(secrets, "make the secrets by which services know each other") \
    X(retire, "let workers finish and leave") \
    X(top, "show what the cluster does, live") \
    X(bench, "measure the cluster as a client sees it") \
    X(completion, "print the completion for bash, zsh or fish")
/* clang-format on */

struct mr_command {
    const char *name;
    const char *summary;
    const struct mr_config_spec *spec;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

#define MR_COMMAND_IS(name, summary)                                                               \
    int mr_command_##name(int argc, char **argv);                                                  \
    extern const struct mr_config_spec mr_##name##_spec;
MR_COMMANDS(MR_COMMAND_IS)
#undef MR_COMMAND_IS
