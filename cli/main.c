/* The program millrace: finds the command and runs it. */
#include "cli/internal.h"
#include "host/config/help.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MR_COMMAND_ROW(name, summary) {#name, summary, &mr_##name##_spec, mr_command_##name},
static const struct mr_command commands[] = {MR_COMMANDS(MR_COMMAND_ROW)};
#undef MR_COMMAND_ROW

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
        "\n`millrace help COMMAND` describes a command. Commands talk to the cluster of\n"
        "--url or MILLRACE_URL, else to the one that `millrace up` last started.\n");
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

/* Opens /dev/null for standard streams that are closed. Otherwise the first socket or file would
 * get the number of a standard stream, and output would go there. The modes make each read and
 * write fail. */
static void hold_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

/* Flushes stdout and returns the exit code. A failed write to stdout is an error of the command. */
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
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* wcwidth(3) needs this locale */
    return close_output(run(argc, argv));
}
