/* host/config: options from flags and environment variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "host/config/config.h"
#include "host/config/help.h"
#include "host/config/value.h"

#include <stdlib.h>

struct config {
    const char *listen;
    uint64_t memory;
    uint64_t threads;
    mr_duration grace;
    bool verbose;
    struct mr_texts roots;
    bool quiet;
    uint64_t pinned;
};

static const struct mr_option options[] = {
    {.name = "listen",
        .env = "TEST_LISTEN",
        .type = MR_OPTION_TEXT,
        .value = "ADDR",
        .init = "unix:/run/x",
        .help = "where to listen",
        .at = offsetof(struct config, listen)},
    {.name = "memory",
        .env = "TEST_MEMORY",
        .type = MR_OPTION_BYTES,
        .init = "64MiB",
        .help = "memory",
        .at = offsetof(struct config, memory)},
    {.name = "threads",
        .letter = 't',
        .type = MR_OPTION_U64,
        .help = "threads",
        .at = offsetof(struct config, threads),
        .min = 1,
        .max = 64},
    {.name = "grace",
        .type = MR_OPTION_DURATION,
        .init = "2s",
        .help = "grace",
        .at = offsetof(struct config, grace)},
    {.name = "verbose",
        .type = MR_OPTION_BOOL,
        .init = "yes",
        .help = "say more",
        .at = offsetof(struct config, verbose)},
    {.name = "data-root",
        .env = "TEST_ROOTS",
        .type = MR_OPTION_TEXTS,
        .value = "DIR",
        .help = "a root",
        .at = offsetof(struct config, roots)},
    {.name = "quiet",
        .type = MR_OPTION_BOOL,
        .help = "say less",
        .at = offsetof(struct config, quiet),
        .not_with = "colour,grace", /* there is no option --colour */
        .without_arguments = true},
    {.name = "pinned",
        .env = "TEST_PINNED",
        .type = MR_OPTION_U64,
        .help = "threads that are pinned",
        .at = offsetof(struct config, pinned),
        .only_with = "threads,data-root"},
};

static const struct mr_config_spec spec = {.program = "mr-test",
    .summary = "tests options",
    .usage = "[flags] FILE",
    .examples = "  mr-test --threads 2 job.json\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_max = 1};

struct run {
    struct config c;
    struct mr_texts rest;
    enum mr_config_action action;
    struct mr_error e;
    int err;
};

static struct run parse(const char **args)
{
    struct run r = {0};
    char *argv[16] = {(char *)(uintptr_t) "mr-test"};
    int argc = 1;
    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    r.err = mr_config_parse(&spec, argc, argv, &r.c, &r.rest, &r.action, &r.e);
    return r;
}

static void done(struct run *r)
{
    mr_config_fini(&spec, &r->c);
    mr_texts_fini(&r->rest);
}

#define PARSE(...) parse((const char *[]){__VA_ARGS__, NULL})

static void defaults_hold_where_nothing_is_said(void **state)
{
    (void)state;
    struct run r = parse((const char *[]){NULL});
    assert_int_equal(r.err, MR_OK);
    assert_string_equal(r.c.listen, "unix:/run/x");
    assert_int_equal(r.c.memory, 64u << 20);
    assert_int_equal(r.c.grace, 2 * MR_SECOND);
    assert_true(r.c.verbose);
    assert_int_equal(r.c.roots.count, 0);
    done(&r);
}

static void a_flag_wins_over_the_environment_and_that_over_the_default(void **state)
{
    (void)state;
    (void)setenv("TEST_LISTEN", "host:1", 1);
    (void)setenv("TEST_MEMORY", "1GiB", 1);
    (void)setenv("TEST_ROOTS", "/a,/b", 1);
    struct run r = PARSE("--listen=host:2", "-t", "3", "--no-verbose", "job.json");
    assert_int_equal(r.err, MR_OK);
    assert_string_equal(r.c.listen, "host:2");
    assert_int_equal(r.c.memory, (uint64_t)1 << 30);
    assert_int_equal(r.c.threads, 3);
    assert_false(r.c.verbose);
    assert_int_equal(r.c.roots.count, 2);
    assert_string_equal(r.c.roots.items[1], "/b");
    assert_int_equal(r.rest.count, 1);
    done(&r);
    r = PARSE("--data-root", "/c", "--data-root", "/d");
    assert_int_equal(r.c.roots.count, 2);
    assert_string_equal(r.c.roots.items[0], "/c");
    done(&r);
    (void)unsetenv("TEST_LISTEN");
    (void)unsetenv("TEST_MEMORY");
    (void)unsetenv("TEST_ROOTS");
}

static void what_is_wrong_is_refused_by_name(void **state)
{
    (void)state;
    struct run r = PARSE("--memry", "1");
    assert_int_equal(r.err, MR_EINVAL);
    assert_string_equal(r.e.text, "unknown flag --memry: did you mean --memory?");
    r = PARSE("--memory", "lots");
    assert_string_equal(r.e.text, "--memory: \"lots\" is not a size such as 512, 64KiB or 4GiB");
    r = PARSE("--threads", "65");
    assert_string_equal(r.e.text, "--threads: \"65\" is out of range: from 1 to 64 is allowed");
    r = PARSE("--threads");
    assert_string_equal(r.e.text, "--threads needs a value: a whole number");
    r = PARSE("--no-threads");
    assert_int_equal(r.err, MR_EINVAL);
    r = PARSE("a", "b");
    assert_string_equal(r.e.text, "unexpected argument \"b\"");
    done(&r);
    (void)setenv("TEST_MEMORY", "x", 1);
    r = parse((const char *[]){NULL});
    assert_string_equal(r.e.text, "TEST_MEMORY: \"x\" is not a size such as 512, 64KiB or 4GiB");
    r = PARSE("--help"); /* the help is printed although a variable is malformed */
    assert_int_equal(r.err, MR_OK);
    assert_int_equal(r.action, MR_CONFIG_HELP);
    (void)unsetenv("TEST_MEMORY");
}

static void assert_parsed(struct run r)
{
    assert_int_equal(r.err, MR_OK);
    done(&r);
}

static void a_flag_without_effect_is_refused(void **state)
{
    (void)state;
    struct run r = PARSE("--pinned", "1");
    assert_int_equal(r.err, MR_EINVAL);
    assert_string_equal(r.e.text, "--pinned has no effect without --threads");
    r = PARSE("--quiet", "--grace", "1s");
    assert_string_equal(r.e.text, "--quiet cannot be used with --grace");
    r = PARSE("--quiet", "job.json");
    assert_string_equal(r.e.text, "--quiet cannot be used with the argument \"job.json\"");
    done(&r);
    assert_parsed(PARSE("--pinned", "1", "--threads", "2"));
    assert_parsed(PARSE("--data-root", "/a", "--pinned", "1"));
    assert_parsed(PARSE("--quiet")); /* the default of --grace does not count */
    assert_parsed(PARSE("--no-quiet", "--grace", "1s", "job.json"));
    (void)setenv("TEST_PINNED", "1", 1);
    assert_parsed(PARSE("job.json"));
    (void)unsetenv("TEST_PINNED");
}

static void after_two_dashes_nothing_is_a_flag(void **state)
{
    (void)state;
    struct run r = PARSE("--", "--memory");
    assert_int_equal(r.err, MR_OK);
    assert_string_equal(r.rest.items[0], "--memory");
    done(&r);
}

static void help_names_every_flag_default_and_variable(void **state)
{
    (void)state;
    char *help = mr_config_help(&spec);
    assert_non_null(strstr(help, "Usage: mr-test [flags] FILE"));
    assert_non_null(strstr(help, "--memory VALUE"));
    assert_non_null(strstr(help, "(default: 64MiB) [TEST_MEMORY]"));
    assert_non_null(strstr(help, "-t, --threads"));
    assert_non_null(strstr(help, "Examples:\n  mr-test --threads 2 job.json\n"));
    mr_release(help);
}

static void numbers_are_read_exactly_or_not_at_all(void **state)
{
    (void)state;
    uint64_t v = 0;
    assert_int_equal(mr_config_parse_bytes(MR_STR("1.5GiB"), &v), MR_OK);
    assert_int_equal(v, (uint64_t)3 << 29);
    assert_int_equal(mr_config_parse_duration(MR_STR("0.1s"), &v), MR_OK);
    assert_int_equal(v, 100 * MR_MS);
    assert_int_equal(mr_config_parse_duration(MR_STR("250us"), &v), MR_OK);
    assert_int_equal(v, 250000);
    assert_int_equal(mr_config_parse_u64(MR_STR("1_000"), &v), MR_OK);
    assert_int_equal(v, 1000);
    assert_int_equal(mr_config_parse_u64(MR_STR("18446744073709551615"), &v), MR_OK);
    static const char *const bad[] = {
        "", "-1", "x", "1.5", "1 ", "18446744073709551616", "0x10", "1.", ".5", "_"};
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        assert_int_equal(mr_config_parse_u64(mr_str(bad[i]), &v), MR_EINVAL);
    assert_int_equal(mr_config_parse_bytes(MR_STR("0.3B"), &v), MR_EINVAL);
    assert_int_equal(mr_config_parse_bytes(MR_STR("99999999999TiB"), &v), MR_EINVAL);
    assert_int_equal(mr_config_parse_bytes(MR_STR("1gib"), &v), MR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_hold_where_nothing_is_said),
        cmocka_unit_test(a_flag_wins_over_the_environment_and_that_over_the_default),
        cmocka_unit_test(what_is_wrong_is_refused_by_name),
        cmocka_unit_test(a_flag_without_effect_is_refused),
        cmocka_unit_test(after_two_dashes_nothing_is_a_flag),
        cmocka_unit_test(help_names_every_flag_default_and_variable),
        cmocka_unit_test(numbers_are_read_exactly_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
