/* The commands of `millrace`, and what several of them share. Private to cli.
 *
 * Each command parses its own flags and returns an exit code (cli/client/exit_code.h). */
#pragma once

#include "cli/client/client.h"
#include "cli/up/up.h"
#include "host/config/config.h"

#include <stddef.h>

/* clang-format off */
/* Calls X(name, summary) for each command. For example, mr_command_up runs the command `up`, and
 * mr_up_spec has its flags. Help and completion list the commands in this order. */
#define MR_COMMANDS(X) \
    X(up, "start a whole cluster on this machine") \
    X(run, "run a job file and fetch its targets") \
    X(submit, "submit a job file") \
    X(status, "show a job, or all jobs") \
    X(watch, "follow a job until it ends") \
    X(explain, "tell why a task ran, runs, waits, or never will run") \
    X(timeline, "show when each task of a job waited and ran") \
    X(logs, "show the output of a job's tasks") \
    X(profile, "show where the time of a job went, by operator") \
    X(whatif, "predict how long a job would take on another cluster") \
    X(compare, "show what changed from one job to another") \
    X(report, "write a report about a job as an HTML file") \
    X(graph, "list the nodes of a job's graph") \
    X(cancel, "stop a job") \
    X(retry, "run the failed tasks of a job again") \
    X(forget, "forget jobs and their results") \
    X(template, "keep job files under a name, and make jobs of them") \
    X(train, "train a model: start a session, follow it, show its result") \
    X(trainings, "list trainings, or show one") \
    X(channel, "read, follow or append to a channel") \
    X(queue, "list or make queues, put items into one, take items") \
    X(get, "fetch a result, an object, or the object with a name") \
    X(put, "upload a file as an object") \
    X(ls, "list names, or objects") \
    X(rm, "forget a job, delete an object, or remove a name") \
    X(ops, "list the operators, or describe one") \
    X(workers, "list the workers") \
    X(ready, "ask whether a service is ready, or whether a job could run") \
    X(secrets, "make the secrets with which services call each other") \
    X(retire, "let workers finish their tasks and leave") \
    X(top, "show what the cluster does, live") \
    X(dashboard, "say where the dashboard is, or serve that of a dead cluster") \
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

/* ---- submitting a file ----------------------------------------------------------------------- */

/* In jobs.c: submits a job (POST /v1/jobs). The answer's document has the job's id. `request_id`
 * may be NULL. */
int mr_client_submit(const struct mr_client *c, struct mr_str body, const char *request_id,
    yyjson_doc **doc, struct mr_error *e);

/* Must be the first member of the config of a command that submits a file. */
struct mr_submit_options {
    struct mr_client_options client;
    struct mr_texts set;
    const char *data;
    const char *out;
};

/* Rows of a command's table of options, including those of MR_CLIENT_OPTIONS. `out_help` is the
 * help of --out. */
#define MR_SUBMIT_OPTIONS(out_help)                                                                \
    MR_CLIENT_OPTIONS,                                                                             \
        {.name = "set",                                                                            \
            .type = MR_OPTION_TEXTS,                                                               \
            .value = "NAME=VALUE",                                                                 \
            .help = "set a parameter of the file",                                                 \
            .at = offsetof(struct mr_submit_options, set)},                                        \
        {.name = "data",                                                                           \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "DIR",                                                                        \
            .help = MR_DATA_HELP,                                                                  \
            .at = offsetof(struct mr_submit_options, data)},                                       \
    {                                                                                              \
        .name = "out", .letter = 'o', .type = MR_OPTION_TEXT, .value = "DIR", .help = out_help,    \
        .at = offsetof(struct mr_submit_options, out)                                              \
    }
#define MR_DATA_HELP                                                                               \
    "the same as --set data=DIR: a path of this machine if `up` runs the cluster here, else a "    \
    "path of the workers' machines"

/* ---- the table of workers -------------------------------------------------------------------- */

#define MR_CLUSTER_BYTES_MAX ((size_t)1 << 28)

/* In cluster.c: appends the table of a WorkersResponse, for a terminal of `columns` columns; 0: no
 * terminal. */
void mr_workers_write(yyjson_val *root, unsigned columns, struct mr_buf *out);
