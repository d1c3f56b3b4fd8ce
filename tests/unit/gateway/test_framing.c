/* gateway/http/framing: heads and bodies that arrive whole or in pieces, and requests that are
 * refused. */
#include "gateway/http/framing.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#define HEAD "POST / HTTP/1.1\r\nHost: a\r\n"
#define REFUSAL "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

/* Feeds `in` in pieces of `piece` bytes; 0: in one piece. */
static void pass(struct mr_framing *f, struct mr_str in, size_t piece, struct mr_buf *out)
{
    mr_framing_init(f);
    mr_buf_init(out, (size_t)1 << 20);
    for (size_t at = 0; at < in.n;) {
        size_t n = MR_MIN(piece ? piece : in.n, in.n - at);
        mr_framing_feed(f, in.p + at, n, out);
        at += n;
    }
    mr_buf_add_byte(out, 0);
}

static void passes(const char *in, const char *want, uint64_t heads)
{
    for (size_t piece = 0; piece < 5; piece++) {
        struct mr_framing f;
        struct mr_buf out;
        pass(&f, mr_str(in), piece, &out);
        assert_string_equal(out.p, want);
        assert_int_equal(f.status, 0);
        assert_int_equal(f.heads, heads);
        assert_int_equal(f.state, MR_FRAMING_HEAD);
        assert_false(mr_framing_is_refused(&f, heads));
        mr_framing_fini(&f);
        mr_buf_fini(&out);
    }
}

static void is_refused(const char *in, int status, uint64_t head, const char *end)
{
    for (size_t piece = 0; piece < 5; piece++) {
        struct mr_framing f;
        struct mr_buf out;
        pass(&f, mr_str(in), piece, &out);
        assert_int_equal(f.status, status);
        assert_non_null(f.why);
        assert_true(mr_framing_is_refused(&f, head));
        assert_false(mr_framing_is_refused(&f, head - 1));
        assert_true(out.n > strlen(end));
        assert_string_equal((const char *)out.p + out.n - 1 - strlen(end), end);
        mr_framing_fini(&f);
        mr_buf_fini(&out);
    }
}

static void good_requests_pass_as_they_are(void **state)
{
    (void)state;
    static const char *const same[] = {"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        HEAD "Content-Length: 3\r\n\r\nabc", HEAD "Content-Length: 0\r\n\r\n",
        HEAD "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"};
    for (size_t i = 0; i < MR_ARRAY_LEN(same); i++)
        passes(same[i], same[i], 1);
    passes(HEAD "Content-Length: 1\r\n\r\nxGET / HTTP/1.1\r\nHost: b\r\n\r\n",
        HEAD "Content-Length: 1\r\n\r\nxGET / HTTP/1.1\r\nHost: b\r\n\r\n", 2);
}

static void what_nobody_needs_is_left_out(void **state)
{
    (void)state;
    passes("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1);
    passes(HEAD "Content-Length: 1 \t\r\n\r\nx", HEAD "Content-Length: 1\r\n\r\nx", 1);
    passes(HEAD "Transfer-Encoding: chunked\r\n\r\n03 ;a=\"b\"\r\nabc\r\n00;c\r\nT: u\r\n\r\n",
        HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 1);
}

static void a_refusal_stands_in_the_place_of_its_request(void **state)
{
    (void)state;
    is_refused(HEAD "Content-Length: 1\r\nContent-Length: 1\r\n\r\nxyz", 400, 1, REFUSAL);
    is_refused("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n", 400, 2,
        "Host: a\r\n\r\n" REFUSAL);
    is_refused(HEAD "Transfer-Encoding: gzip\r\n\r\n", 501, 1, REFUSAL);
    is_refused("GET / HTTP/1.1\nHost: a\r\n\r\n", 400, 1, REFUSAL);
    is_refused("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400, 1, REFUSAL);
    is_refused("\x16\x03\x01", 400, 1, REFUSAL);
}

/* mr_framing is a filter before libmicrohttpd. libmicrohttpd has begun to read a body when the
 * filter refuses the rest of that body. The filter must still pass an end of this body. */
static void a_refusal_within_a_body_ends_it(void **state)
{
    (void)state;
    static const char head[] = HEAD "Transfer-Encoding: chunked\r\n\r\n";
    static const char *const bodies[][2] = {{"x\r\n", "\r\n\r\n0\r\n\r\n"},
        {"1\r\nab\r\n", "1\r\na\r\n0\r\n\r\n"}, {"1\r\na\r\n1\n", "1\r\na\r\n0\r\n\r\n"},
        {"1\r\na\r\n0\r\nnonsense\r\n\r\n", "1\r\na\r\n0\r\n\r\n"},
        {"fffffffffffffffff\r\n", "\r\n\r\n0\r\n\r\n"}};
    for (size_t i = 0; i < MR_ARRAY_LEN(bodies); i++) {
        MR_AUTO(mr_free_ptr) char *in = mr_format("%s%s", head, bodies[i][0]);
        is_refused(in, 400, 1, bodies[i][1]);
    }
}

static void what_is_too_large_is_refused_before_it_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        char fill;
        int status;
    } rows[] = {{"GET / HTTP/1.1\r\nHost: a\r\nX: ", 'x', 431}, {"GET /", 'x', 431},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n1;", 'x', 400}};
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        struct mr_framing f;
        struct mr_buf out;
        char fill[1000];
        memset(fill, rows[i].fill, sizeof fill);
        pass(&f, mr_str(rows[i].head), 0, &out);
        for (int k = 0; k < 1000; k++) {
            mr_framing_feed(&f, fill, sizeof fill, &out);
            assert_true(f.hold.n <= MR_FRAMING_HEAD_BYTES_MAX + 1);
        }
        assert_int_equal(f.status, rows[i].status);
        mr_framing_fini(&f);
        mr_buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_requests_pass_as_they_are),
        cmocka_unit_test(what_nobody_needs_is_left_out),
        cmocka_unit_test(a_refusal_stands_in_the_place_of_its_request),
        cmocka_unit_test(a_refusal_within_a_body_ends_it),
        cmocka_unit_test(what_is_too_large_is_refused_before_it_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
