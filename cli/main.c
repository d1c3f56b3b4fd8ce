/* millrace: the command line. Knows the names of the commands and nothing else. */
#include "cli/command.h"
#include "host/config.h"

#include <stdio.h>
#include <string.h>

static const struct mr_command commands[] = {
    {"up", "start a whole cluster on this machine", mr_command_up},
    {"run", "run a job file and fetch its targets", mr_command_run},
    {"submit", "submit a job file", mr_command_submit},
    {"status", "show a job, or all of them", mr_command_status},
    {"watch", "follow a job until it ends", mr_command_watch},
    {"explain", "why a task ran, runs, waits, or never will", mr_command_explain},
    {"timeline", "what the tasks of a job did when", mr_command_timeline},
    {"logs", "what the tasks of a job wrote", mr_command_logs},
    {"cancel", "stop a job", mr_command_cancel},
    {"train", "train a model: start a session, follow it, show how it went", mr_command_train},
    {"trainings", "list trainings, or show one", mr_command_trainings},
    {"channel", "read, follow or append to a channel", mr_command_channel},
    {"queue", "list queues, put into one or take from it", mr_command_queue},
    {"get", "fetch a result, an object, or what a name stands for", mr_command_get},
    {"put", "upload a file as an object", mr_command_put},
    {"ls", "list names, or objects", mr_command_ls},
    {"rm", "forget a job, delete an object, take a name away", mr_command_rm},
    {"ops", "list the operators, or describe one", mr_command_ops},
    {"workers", "list the workers", mr_command_workers},
    {"top", "show what the cluster does, live", mr_command_top},
    {"bench", "measure the cluster as a client sees it", mr_command_bench},
};

static void usage(FILE *to)
{
    (void)fprintf(to, "Usage: millrace COMMAND [flags]\n\n"
                      "Runs task graphs of data and machine-learning work.\n\nCommands:\n");
    for (size_t i = 0; i < MR_ARRAY_LEN(commands); i++)
        (void)fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    (void)fprintf(to,
        "\n`millrace COMMAND --help` says more. The cluster is found by --url, MILLRACE_URL, or\n"
        "is the one that `millrace up` last started.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return MR_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return MR_EXIT_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        (void)printf("millrace %s\n", mr_version());
        return MR_EXIT_OK;
    }
    for (size_t i = 0; i < MR_ARRAY_LEN(commands); i++)
        if (!strcmp(argv[1], commands[i].name)) return commands[i].run(argc - 1, argv + 1);
    (void)fprintf(
        stderr, "millrace: there is no command \"%s\"; `millrace --help` lists them\n", argv[1]);
    return MR_EXIT_USAGE;
}
