/* lib/rpc/tokens: the format of the token file. */
#include "rpc/tokens.h"

#include "base/alloc.h"
#include "host/os/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char token_file[] = "# who may what\n\n"
                                 "0123456789abcdef admin ada\r\n"
                                 "fedcba9876543210 reader rita\n"
                                 "  AAAABBBBCCCCDDDD  user\tuwe";

static const struct mr_identity *find(const struct mr_tokens *t, const char *authorization)
{
    struct mr_str token;
    return mr_token_of(mr_str(authorization), &token) ? mr_tokens_find(t, token) : NULL;
}

static void a_token_names_its_holder(void **state)
{
    (void)state;
    struct mr_tokens *t = NULL;
    const struct mr_identity *who = NULL;
    assert_int_equal(mr_tokens_parse(mr_str(token_file), &t, NULL), MR_OK);
    assert_non_null(who = find(t, "Bearer fedcba9876543210"));
    assert_true(mr_str_eq(who->name, MR_STR("rita")));
    assert_int_equal(who->role, MR_ROLE_READER);
    assert_non_null(who = find(t, "bearer AAAABBBBCCCCDDDD"));
    assert_int_equal(who->role, MR_ROLE_USER);
    static const char *const wrong[] = {"", "Bearer", "Bearer ", "Bearer x",
        "Bearer fedcba987654321", "Bearer fedcba98765432100", "Basic fedcba9876543210",
        "Bearer fedcba9876543210fedcba9876543210"};
    for (size_t i = 0; i < MR_ARRAY_LEN(wrong); i++)
        assert_null(find(t, wrong[i]));
    assert_null(find(t, NULL));
    mr_tokens_free(&t);
}

static void a_bad_line_is_named_by_its_number_and_its_token_by_nothing(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "no token"},
        {"# only words", "no token"},
        {"0123456789abcdef", "line 1: it is not TOKEN ROLE NAME"},
        {"0123456789abcdef admin", "line 1: it is not TOKEN ROLE NAME"},
        {"\n0123456789abcdef boss bob", "line 2: role \"boss\" is none of admin, user, reader"},
        {"0123456789abcdef service s", "line 1: role \"service\" is none of"},
        {"AAAABBBBCCCCDDDD user uwe\n\nshort admin ada", "line 3: a token has 16 to 256 bytes"},
        {"0123456789\xc3\xa4"
         "cdef admin ada",
            "line 1: a token is of printable ASCII"},
        {"0123456789abcdef admin ada lovelace", "line 1: it is not TOKEN ROLE NAME"},
        {"0123456789abcdef admin b\xc3\xa4r", "line 1: a name has 1 to 128 bytes of printable"},
        {"0123456789abcdef user a\n0123456789abcdef admin a",
            "line 2: an earlier line already has its token"},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        struct mr_tokens *t = NULL;
        struct mr_error e;
        assert_int_equal(mr_tokens_parse(mr_str(cases[i][0]), &t, &e), MR_EINVAL);
        if (!strstr(e.text, cases[i][1])) fail_msg("case %zu: %s", i, e.text);
        assert_null(strstr(e.text, "0123456789"));
    }
    struct mr_tokens *t = NULL;
    struct mr_error e;
    assert_int_equal(mr_tokens_parse(MR_STR("0123456789abcdef admin a\0b"), &t, &e), MR_EINVAL);
}

static void a_file_is_bounded(void **state)
{
    (void)state;
    struct mr_buf b;
    struct mr_tokens *t = NULL;
    struct mr_error e;
    mr_buf_init(&b, (size_t)1 << 20);
    for (int i = 0; i < MR_TOKENS_MAX; i++)
        mr_buf_printf(&b, "token-%020d user u%d\n", i, i);
    assert_int_equal(mr_tokens_parse(mr_buf_str(&b), &t, &e), MR_OK);
    mr_tokens_free(&t);
    mr_buf_add_text(&b, "one-token-too-many user u");
    assert_int_equal(mr_tokens_parse(mr_buf_str(&b), &t, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "line 1025: a file has at most 1024 tokens"));
    mr_buf_fini(&b);
}

static void errors_of_a_file_name_flag_and_file(void **state)
{
    (void)state;
    char path[] = "/tmp/mr-tokens-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    struct mr_tokens *t = NULL;
    struct mr_error e;
    static const char bad[] = "\n\nshort admin ada\n";
    assert_int_equal(mr_file_write(path, mr_str(bad), 0600, &e), MR_OK);
    assert_int_equal(mr_tokens_open(path, &t, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "--token-file: \""));
    assert_non_null(strstr(e.text, path));
    assert_non_null(strstr(e.text, "line 3: a token has"));
    assert_int_equal(mr_file_write(path, mr_str(token_file), 0640, &e), MR_OK);
    assert_int_equal(mr_tokens_open(path, &t, &e), MR_EPERM);
    assert_non_null(strstr(e.text, "--token-file: "));
    assert_int_equal(mr_file_write(path, mr_str(token_file), 0600, &e), MR_OK);
    assert_int_equal(mr_tokens_open(path, &t, &e), MR_OK);
    mr_tokens_free(&t);
    (void)unlink(path);
    assert_int_equal(mr_tokens_open(path, &t, &e), MR_ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_names_its_holder),
        cmocka_unit_test(a_bad_line_is_named_by_its_number_and_its_token_by_nothing),
        cmocka_unit_test(a_file_is_bounded),
        cmocka_unit_test(errors_of_a_file_name_flag_and_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
