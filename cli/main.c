/* millrace: the command line. Knows the names of the commands and nothing else. */
#include "cli/command.h"
#include "host/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct mr_command commands[] = {
    {"up", "start a whole cluster on this machine", mr_command_up},
    {"run", "run a job file and fetch its targets", mr_command_run},
    {"submit", "submit a job file", mr_command_submit},
    {"status", "show a job, or all of them", mr_command_status},
    {"watch", "follow a job until it ends", mr_command_watch},
    {"explain", "why a task ran, runs, waits, or never will", mr_command_explain},
    {"timeline", "what the tasks of a job did when", mr_command_timeline},
    {"logs", "what the tasks of a job wrote", mr_command_logs},
    {"profile", "where the time of a job went, by operator", mr_command_profile},
    {"graph", "list the nodes of a job's graph", mr_command_graph},
    {"cancel", "stop a job", mr_command_cancel},
    {"retry", "run what failed in a job again", mr_command_retry},
    {"forget", "forget jobs and their results", mr_command_forget},
    {"template", "install job files under a name, make jobs of them", mr_command_template},
    {"train", "train a model: start a session, follow it, show how it went", mr_command_train},
    {"trainings", "list trainings, or show one", mr_command_trainings},
    {"channel", "read, follow or append to a channel", mr_command_channel},
    {"queue", "list or make queues, put into one or take from it", mr_command_queue},
    {"get", "fetch a result, an object, or what a name stands for", mr_command_get},
    {"put", "upload a file as an object", mr_command_put},
    {"ls", "list names, or objects", mr_command_ls},
    {"rm", "forget a job, delete an object, take a name away", mr_command_rm},
    {"ops", "list the operators, or describe one", mr_command_ops},
    {"workers", "list the workers", mr_command_workers},
    {"ready", "does a service serve, could a job run?", mr_command_ready},
    {"retire", "let workers finish and leave", mr_command_retire},
    {"top", "show what the cluster does, live", mr_command_top},
    {"bench", "measure the cluster as a client sees it", mr_command_bench},
};

static const struct mr_command *find(const char *name)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(commands); i++)
        if (!strcmp(name, commands[i].name)) return &commands[i];
    return NULL;
}

static void usage(FILE *to)
{
    (void)fprintf(to, "Usage: millrace COMMAND [flags]\n\n"
                      "Runs task graphs of data and machine-learning work.\n\nCommands:\n");
    for (size_t i = 0; i < MR_ARRAY_LEN(commands); i++)
        (void)fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    (void)fprintf(to,
        "\n`millrace help COMMAND` says more. The cluster is found by --url, MILLRACE_URL, or\n"
        "is the one that `millrace up` last started.\n");
}

static int refuse(const char *name)
{
    (void)fprintf(
        stderr, "millrace: there is no command \"%s\"; `millrace --help` lists them\n", name);
    return MR_EXIT_USAGE;
}

static int help(int argc, char **argv)
{
    char flag[] = "--help";
    const struct mr_command *of = argc > 2 ? find(argv[2]) : NULL;
    if (argc > 2 && !of) return refuse(argv[2]);
    if (!of) {
        usage(stdout);
        return MR_EXIT_OK;
    }
    char *args[] = {argv[2], flag, NULL};
    return of->run(2, args);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return MR_EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return help(argc, argv);
    if (!strcmp(argv[1], "--version")) {
        (void)printf("millrace %s\n", mr_version());
        return MR_EXIT_OK;
    }
    const struct mr_command *command = find(argv[1]);
    return command ? command->run(argc - 1, argv + 1) : refuse(argv[1]);
}

/* A standard stream that is closed would give its number to the first socket or file that is
 * opened, and what is printed would go there. These stand-ins fail every read and write. */
static void hold_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* What was printed has arrived, or the exit code says that it has not. */
static int close_output(int code)
{
    errno = 0;
    bool had_failed = ferror(stdout) != 0;
    if (!fflush(stdout) && !had_failed) return code;
    (void)fprintf(stderr, "millrace: cannot write to stdout%s%s\n", errno ? ": " : "",
        errno ? strerror(errno) : "");
    return code ? code : MR_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    hold_standard_streams();
    return close_output(run(argc, argv));
}
