/* Options of a program: one table gives the flags, the environment variables, the defaults, the
 * checks and --help. A flag wins over the environment, which wins over the default. What is not in
 * the table is refused by name, with the nearest name that is.
 *
 *     struct config { const char *listen; uint64_t memory; bool verbose; struct mr_texts roots; };
 *     static const struct mr_option options[] = {
 *         {.name = "listen", .env = "MILLRACE_LISTEN", .type = MR_OPTION_TEXT, .value = "ADDR",
 *             .init = "unix:/run/x", .help = "where to listen", .at = offsetof(struct config,
 * listen)},
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>

enum mr_option_type {
    MR_OPTION_TEXT,     /* const char * */
    MR_OPTION_U64,      /* uint64_t; 12, 1_000 */
    MR_OPTION_BYTES,    /* uint64_t; 512, 64KiB, 4GiB, 1.5GB */
    MR_OPTION_DURATION, /* mr_duration; 250us, 10ms, 1.5s, 5m, 24h; a bare number is seconds */
    MR_OPTION_BOOL,     /* bool; --name, --no-name, --name=yes|no|true|false|1|0 */
    MR_OPTION_TEXTS,    /* struct mr_texts; may be repeated; split at commas in the environment */
};

struct mr_texts {
    const char **items;
    size_t count;
};

struct mr_option {
    const char *name; /* "data-root" for --data-root */
    char letter;      /* 'o' for -o; 0: none */
    const char *env;  /* NULL: no variable */
    enum mr_option_type type;
    const char *value; /* what --help calls it: "DIR" */
    const char *init;  /* the default as it would be written; NULL: zero, NULL, false, none */
    const char *help;  /* one sentence without the full stop */
    size_t at;         /* offsetof in the program's struct */
    uint64_t min, max; /* of numbers, when max is not 0 */
    bool required;
};

struct mr_config_spec {
    const char *program;  /* "mr-worker" or "millrace get" */
    const char *summary;  /* one sentence */
    const char *usage;    /* what follows the program: "[flags] FILE"; NULL: "[flags]" */
    const char *examples; /* lines, indented by two; NULL: none */
    const struct mr_option *options;
    size_t options_count;
    uint32_t rest_min; /* arguments that are no flags: how many */
    uint32_t rest_max;
};

enum mr_config_action {
    MR_CONFIG_RUN,
    MR_CONFIG_HELP,    /* --help or -h was given */
    MR_CONFIG_VERSION, /* --version was given */
};

/* Fills `config` (the program's struct; texts are borrowed from argv, the environment and the
 * table). `argv[0]` is skipped. `rest` (may be NULL when rest_max is 0) receives the other
 * arguments. MR_EINVAL with a sentence naming the flag or variable. */
int mr_config_parse(const struct mr_config_spec *spec, int argc, char **argv, void *config,
    struct mr_texts *rest, enum mr_config_action *action, struct mr_error *e);

/* The same for `main`: prints help, version or the error, and then exits (0, 2, or 1
 * when stdout took nothing). */
void mr_config_load(
    const struct mr_config_spec *spec, int argc, char **argv, void *config, struct mr_texts *rest);

void mr_config_fini(const struct mr_config_spec *spec, void *config); /* frees the lists */
void mr_texts_fini(struct mr_texts *texts);
char *mr_config_help(const struct mr_config_spec *spec); /* mr_release it */

int mr_config_parse_u64(struct mr_str text, uint64_t *out);
int mr_config_parse_bytes(struct mr_str text, uint64_t *out);
int mr_config_parse_duration(struct mr_str text, mr_duration *out);
int mr_config_parse_bool(struct mr_str text, bool *out);

const char *mr_version(void); /* "0.1.0" */
