/* Finds options in the command line and the environment, and checks them. value.c parses numbers;
 * help.c formats the help. */
#include "host/config/config.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/config/help.h"
#include "host/config/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void *field(const struct mr_option *o, void *config)
{
    return (char *)config + o->at;
}

static void texts_add(struct mr_texts *t, const char *text)
{
    t->items = mr_grow(t->items, t->count * sizeof *t->items, (t->count + 1) * sizeof *t->items);
    t->items[t->count++] = text;
}

void mr_texts_fini(struct mr_texts *texts)
{
    mr_release(texts->items);
    *texts = (struct mr_texts){0};
}

void mr_config_fini(const struct mr_config_spec *spec, void *config)
{
    for (size_t i = 0; i < spec->options_count; i++)
        if (spec->options[i].type == MR_OPTION_TEXTS)
            mr_texts_fini(field(&spec->options[i], config));
}

static const char *expected(enum mr_option_type type)
{
    switch (type) {
    case MR_OPTION_U64: return "a whole number";
    case MR_OPTION_BYTES: return "a size such as 512, 64KiB or 4GiB";
    case MR_OPTION_DURATION: return "a duration such as 10ms, 1.5s, 5m or 24h";
    case MR_OPTION_BOOL: return "yes or no";
    case MR_OPTION_TEXT:
    case MR_OPTION_TEXTS: return "a text";
    }
    return "a value";
}

static int check_range(
    const struct mr_option *o, uint64_t v, const char *where, const char *text, struct mr_error *e)
{
    if (o->max && (v < o->min || v > o->max))
        return mr_fail(e, MR_EINVAL,
            "%s: \"%s\" is out of range: from %" PRIu64 " to %" PRIu64 "%s is allowed", where, text,
            o->min, o->max,
            o->type == MR_OPTION_DURATION ? " ns"
            : o->type == MR_OPTION_BYTES  ? " bytes"
                                          : "");
    return MR_OK;
}

/* Sets one option from a text. Error texts begin with `where`, which names the flag, the variable
 * or the default that the text comes from. */
static int set(const struct mr_option *o, const char *text, void *config, const char *where,
    struct mr_error *e)
{
    struct mr_str s = mr_str(text);
    uint64_t v = 0;
    bool b = false;
    int err = MR_OK;
    switch (o->type) {
    case MR_OPTION_TEXT: *(const char **)field(o, config) = text; return MR_OK;
    case MR_OPTION_TEXTS: texts_add(field(o, config), text); return MR_OK;
    case MR_OPTION_BOOL:
        err = mr_config_parse_bool(s, &b);
        if (!err) *(bool *)field(o, config) = b;
        break;
    case MR_OPTION_U64: err = mr_config_parse_u64(s, &v); break;
    case MR_OPTION_BYTES: err = mr_config_parse_bytes(s, &v); break;
    case MR_OPTION_DURATION: err = mr_config_parse_duration(s, &v); break;
    }
    if (err) return mr_fail(e, MR_EINVAL, "%s: \"%s\" is not %s", where, text, expected(o->type));
    if (o->type == MR_OPTION_BOOL) return MR_OK;
    err = check_range(o, v, where, text, e);
    if (!err) *(uint64_t *)field(o, config) = v;
    return err;
}

/* Splits the value of an environment variable at commas. The pieces are never freed: the fields of
 * the config struct point into them. */
static void set_list_from_variable(const struct mr_option *o, const char *text, void *config)
{
    /* `kept` keeps the pieces reachable, because a leak checker would report them otherwise. A
     * program parses its options once. */
    static struct mr_texts kept;
    const char *at = text;
    while (*at) {
        size_t n = strcspn(at, ",");
        if (n) {
            char *piece = mr_copy(at, n + 1);
            piece[n] = 0;
            texts_add(&kept, piece);
            texts_add(field(o, config), piece);
        }
        at += n + (at[n] == ',');
    }
}

static int set_from_outside(
    const struct mr_option *o, void *config, bool *given, struct mr_error *e)
{
    const char *text = o->env ? getenv(o->env) : NULL;
    *given = text && *text;
    if (*given && o->type == MR_OPTION_TEXTS) {
        set_list_from_variable(o, text, config);
        return MR_OK;
    }
    if (*given) return set(o, text, config, o->env, e);
    if (!o->init) return MR_OK;
    char where[96];
    (void)snprintf(where, sizeof where, "default of --%s", o->name);
    return set(o, o->init, config, where, e);
}

/* Returns the Levenshtein distance of `a` and `b`, for the "did you mean" of an unknown flag.
 * SIZE_MAX: `a` or `b` is too long. */
static size_t distance(struct mr_str a, const char *b)
{
    size_t row[64];
    size_t n = strlen(b);
    if (n + 1 >= MR_ARRAY_LEN(row) || a.n >= MR_ARRAY_LEN(row)) return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; i < a.n; i++) {
        size_t corner = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t same = corner + (a.p[i] != b[j]);
            corner = row[j + 1];
            row[j + 1] = MR_MIN(MR_MIN(row[j], row[j + 1]) + 1, same);
        }
    }
    return row[n];
}

static int refuse(
    const struct mr_config_spec *spec, const char *arg, struct mr_str name, struct mr_error *e)
{
    const char *nearest = NULL;
    size_t best = 3;
    for (size_t i = 0; i < spec->options_count; i++) {
        size_t d = distance(name, spec->options[i].name);
        if (d >= best) continue;
        best = d;
        nearest = spec->options[i].name;
    }
    if (nearest) return mr_fail(e, MR_EINVAL, "unknown flag %s: did you mean --%s?", arg, nearest);
    return mr_fail(
        e, MR_EINVAL, "unknown flag %s: \"%s --help\" lists all flags", arg, spec->program);
}

static const struct mr_option *find(const struct mr_config_spec *spec, struct mr_str name)
{
    for (size_t i = 0; i < spec->options_count; i++)
        if (mr_str_eq(name, mr_str(spec->options[i].name))) return &spec->options[i];
    return NULL;
}

static const struct mr_option *find_letter(const struct mr_config_spec *spec, char letter)
{
    for (size_t i = 0; i < spec->options_count; i++)
        if (letter && spec->options[i].letter == letter) return &spec->options[i];
    return NULL;
}

struct parse {
    const struct mr_config_spec *spec;
    int argc;
    char **argv;
    int at;
    void *config;
    /* By option: true if the environment or a flag has set the option. */
    bool *given;
    /* By option: true if a flag has set the option. If the option has a list, the first flag
     * replaces the list that the environment has set. */
    bool *by_flag;
};

/* Parses one argument that begins with '-'. */
static int parse_flag(struct parse *p, struct mr_error *e)
{
    const char *arg = p->argv[p->at];
    bool is_long = arg[1] == '-';
    struct mr_str name = mr_str(arg + (is_long ? 2 : 1));
    const char *equals = memchr(name.p, '=', name.n);
    if (equals) name.n = (size_t)(equals - name.p);
    const char *text = equals ? equals + 1 : NULL;
    const struct mr_option *o = is_long       ? find(p->spec, name)
                                : name.n == 1 ? find_letter(p->spec, name.p[0])
                                              : NULL;
    if (!o && is_long && !text && name.n > 3 && memcmp(name.p, "no-", 3) == 0) {
        o = find(p->spec, mr_str_of(name.p + 3, name.n - 3));
        if (o && o->type != MR_OPTION_BOOL) o = NULL;
        text = "no";
    }
    if (!o) return refuse(p->spec, arg, name, e);

    char where[96];
    (void)snprintf(where, sizeof where, "--%s", o->name);
    if (!text && o->type == MR_OPTION_BOOL) text = "yes";
    if (!text) {
        if (p->at + 1 >= p->argc)
            return mr_fail(e, MR_EINVAL, "%s needs a value: %s", where, expected(o->type));
        text = p->argv[++p->at];
    }
    size_t i = (size_t)(o - p->spec->options);
    if (o->type == MR_OPTION_TEXTS && !p->by_flag[i]) mr_texts_fini(field(o, p->config));
    p->given[i] = p->by_flag[i] = true;
    return set(o, text, p->config, where, e);
}

static bool is_set(const struct parse *p, const struct mr_option *o)
{
    if (o->type == MR_OPTION_BOOL) return *(const bool *)field(o, p->config);
    return p->given[o - p->spec->options];
}

/* Returns an option of the list that is set; NULL: none is. */
static const struct mr_option *set_of(const struct parse *p, const char *names)
{
    while (*names) {
        size_t n = strcspn(names, ",");
        const struct mr_option *o = find(p->spec, mr_str_of(names, n));
        if (o && is_set(p, o)) return o;
        names += n + (names[n] == ',');
    }
    return NULL;
}

/* Refuses a flag that has no effect beside the other flags and arguments. */
static int check_effect(const struct parse *p, const struct mr_option *o,
    const struct mr_texts *rest, struct mr_error *e)
{
    const struct mr_option *other = o->not_with ? set_of(p, o->not_with) : NULL;
    if (!p->by_flag[o - p->spec->options] || !is_set(p, o)) return MR_OK;
    if (other) return mr_fail(e, MR_EINVAL, "--%s cannot be used with --%s", o->name, other->name);
    if (o->only_with && !set_of(p, o->only_with))
        return mr_fail(e, MR_EINVAL, "--%s has no effect without --%.*s", o->name,
            (int)strcspn(o->only_with, ","), o->only_with);
    if (o->without_arguments && rest && rest->count)
        return mr_fail(
            e, MR_EINVAL, "--%s cannot be used with the argument \"%s\"", o->name, rest->items[0]);
    return MR_OK;
}

static int check_complete(const struct parse *p, const struct mr_texts *rest, struct mr_error *e)
{
    const struct mr_config_spec *spec = p->spec;
    for (size_t i = 0; i < spec->options_count; i++)
        if (spec->options[i].required && !p->given[i])
            return mr_fail(e, MR_EINVAL, "--%s is missing%s%s", spec->options[i].name,
                spec->options[i].env ? ": give the flag or set " : "",
                spec->options[i].env ? spec->options[i].env : "");
    size_t count = rest ? rest->count : 0;
    if (count < spec->rest_min)
        return mr_fail(e, MR_EINVAL, "expected at least %u argument%s: %s %s", spec->rest_min,
            spec->rest_min == 1 ? "" : "s", spec->program, spec->usage ? spec->usage : "");
    int err = MR_OK;
    for (size_t i = 0; i < spec->options_count && !err; i++)
        err = check_effect(p, &spec->options[i], rest, e);
    return err;
}

static int parse_arguments(
    struct parse *p, struct mr_texts *rest, enum mr_config_action *action, struct mr_error *e)
{
    bool flags_end = false;
    for (p->at = 1; p->at < p->argc; p->at++) {
        const char *arg = p->argv[p->at];
        if (!flags_end && strcmp(arg, "--") == 0) {
            flags_end = true;
        } else if (!flags_end && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
            *action = MR_CONFIG_HELP;
            return MR_OK;
        } else if (!flags_end && strcmp(arg, "--version") == 0) {
            *action = MR_CONFIG_VERSION;
            return MR_OK;
        } else if (!flags_end && arg[0] == '-' && arg[1]) {
            int err = parse_flag(p, e);
            if (err) return err;
        } else if (rest && rest->count < p->spec->rest_max) {
            texts_add(rest, arg);
        } else {
            return mr_fail(e, MR_EINVAL, "unexpected argument \"%s\"", arg);
        }
    }
    return check_complete(p, rest, e);
}

int mr_config_parse(const struct mr_config_spec *spec, int argc, char **argv, void *config,
    struct mr_texts *rest, enum mr_config_action *action, struct mr_error *e)
{
    mr_assert(rest || !spec->rest_max);
    *action = MR_CONFIG_RUN;
    MR_AUTO(mr_free_ptr) bool *given = mr_alloc_array(spec->options_count, sizeof *given);
    MR_AUTO(mr_free_ptr) bool *by_flag = mr_alloc_array(spec->options_count, sizeof *by_flag);
    /* The error of a bad environment variable is reported only after the command line is parsed.
     * An error in the command line, --help and --version take precedence. */
    int outside = MR_OK;
    struct mr_error outside_e = {0};
    for (size_t i = 0; i < spec->options_count; i++) {
        int err = set_from_outside(&spec->options[i], config, &given[i], &outside_e);
        if (err) outside = err;
        if (err) break;
    }
    struct parse p = {spec, argc, argv, 0, config, given, by_flag};
    int err = parse_arguments(&p, rest, action, e);
    if (err || *action != MR_CONFIG_RUN || !outside) return err;
    return mr_fail(e, outside, "%s", outside_e.text);
}

void mr_config_load(
    const struct mr_config_spec *spec, int argc, char **argv, void *config, struct mr_texts *rest)
{
    enum mr_config_action action;
    struct mr_error e = {0};
    int err = mr_config_parse(spec, argc, argv, config, rest, &action, &e);
    if (err) {
        (void)fprintf(stderr, "%s: %s\n", spec->program, e.text);
        exit(2);
    }
    if (action == MR_CONFIG_RUN) return;
    if (action == MR_CONFIG_VERSION) {
        (void)printf("%s %s\n", spec->program, mr_version());
    } else {
        MR_AUTO(mr_free_ptr) char *help = mr_config_help(spec);
        (void)fputs(help, stdout);
    }
    if (!fflush(stdout) && !ferror(stdout)) exit(0);
    (void)fprintf(stderr, "%s: cannot write to stdout\n", spec->program);
    exit(1);
}
