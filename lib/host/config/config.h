/* Options of a program. One table defines the flags, the environment variables, the defaults, the
 * checks and the text of --help. A flag overrides the environment, and the environment overrides
 * the default. The error for an unknown flag names the most similar known flag, if there is one.
 *
 *     struct config { const char *listen; uint64_t memory; bool verbose; struct mr_texts roots; };
 *     static const struct mr_option options[] = {
 *         {.name = "listen", .env = "MILLRACE_LISTEN", .type = MR_OPTION_TEXT, .value = "ADDR",
 *             .init = "unix:/run/x", .help = "where to listen",
 *             .at = offsetof(struct config, listen)},
 *     }; */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>

enum mr_option_type {
    MR_OPTION_TEXT,  /* the member is a const char * */
    MR_OPTION_U64,   /* uint64_t: "12", "1_000" */
    MR_OPTION_BYTES, /* the member is a uint64_t: "512", "64KiB", "4GiB", "1.5GB" */
    /* The member is a mr_duration: "250us", "10ms", "1.5s", "5m", "24h". A number without a unit is
     * in seconds. */
    MR_OPTION_DURATION,
    MR_OPTION_BOOL, /* the member is a bool: --name, --no-name, --name=yes|no|true|false|1|0 */
    /* The member is a struct mr_texts. The flag may be repeated; a variable is split at commas. */
    MR_OPTION_TEXTS,
};

struct mr_texts {
    const char **items;
    size_t count;
};

struct mr_option {
    const char *name; /* for example "data-root" for --data-root */
    char letter;      /* for example 'o' for -o; 0: no short flag */
    const char *env;  /* name of the environment variable; NULL: none */
    enum mr_option_type type;
    const char *value; /* placeholder for the value in the help, for example "DIR" */
    /* The default, as a user would write it. NULL: zero, NULL, false or an empty list, by the
     * type. */
    const char *init;
    const char *help;  /* one sentence without the full stop */
    size_t at;         /* offsetof the member in the program's config struct */
    uint64_t min, max; /* bounds of a number; max == 0: no bounds */
    bool required;
    /* Names of options, separated by commas. A flag is refused if `only_with` is given and none of
     * these options is set, or if one of `not_with` is set. Names that the table does not have
     * count as not set. A variable of the environment is never refused. */
    const char *only_with, *not_with;
    bool without_arguments; /* the flag is refused if there are arguments that are not flags */
};

struct mr_config_spec {
    const char *program; /* for example "mr-worker" or "millrace get" */
    const char *summary; /* what the program does, in one sentence */
    /* The text after the program's name in the help, for example "[flags] FILE". NULL:
     * "[flags]". */
    const char *usage;
    const char *examples; /* lines that are indented by two spaces; NULL: no examples */
    const struct mr_option *options;
    size_t options_count;
    uint32_t rest_min; /* bounds of the number of arguments that are not flags */
    uint32_t rest_max;
};

enum mr_config_action {
    MR_CONFIG_RUN,
    MR_CONFIG_HELP,    /* --help or -h was given */
    MR_CONFIG_VERSION, /* --version was given */
};

/* Fills `config`, the program's struct. Its texts point into argv, the environment and the table.
 * argv[0] is skipped. `rest` (NULL if rest_max is 0) receives the arguments that are not flags.
 * `*action` receives what the program has to do next. MR_EINVAL: a value, a flag or an argument is
 * wrong; the error text names the flag or the variable. */
int mr_config_parse(const struct mr_config_spec *spec, int argc, char **argv, void *config,
    struct mr_texts *rest, enum mr_config_action *action, struct mr_error *e);

/* mr_config_parse for `main`: prints the help, the version or the error and exits. The exit status
 * is 0 after help or version, 2 after an error, 1 if stdout cannot be written. */
void mr_config_load(
    const struct mr_config_spec *spec, int argc, char **argv, void *config, struct mr_texts *rest);

/* Frees the lists in `config`. */
void mr_config_fini(const struct mr_config_spec *spec, void *config);
void mr_texts_fini(struct mr_texts *texts);
