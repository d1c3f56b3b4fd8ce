#include "gateway/http/uri.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/utf8.h"

#include <stdio.h>

int mr_uri_split(struct mr_str target, struct mr_uri *out, struct mr_error *e)
{
    if (target.n == 0 || target.p[0] != '/')
        return mr_fail(e, MR_EINVAL, "the request target does not begin with a slash");
    for (size_t i = 0; i < target.n; i++)
        if ((unsigned char)target.p[i] <= ' ' || target.p[i] == 0x7f)
            return mr_fail(e, MR_EINVAL, "the request target has a control character or a space");

    const char *mark = memchr(target.p, '?', target.n);
    size_t n = mark ? (size_t)(mark - target.p) : target.n;
    out->path = mr_str_of(target.p, n);
    out->query = mark ? mr_str_of(mark + 1, target.n - n - 1) : mr_str_of("", 0);
    return MR_OK;
}

void mr_uri_text_init(struct mr_uri_text *t, size_t raw_bytes)
{
    *t = (struct mr_uri_text){mr_alloc(raw_bytes + 1), 0, raw_bytes};
}

void mr_uri_text_fini(struct mr_uri_text *t)
{
    mr_release(t->p);
    t->p = NULL;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

int mr_uri_decode(struct mr_uri_text *t, struct mr_str raw, bool plus, const char *what,
    struct mr_str *out, struct mr_error *e)
{
    mr_assert(raw.n <= t->bytes_max - t->n);
    char *to = t->p + t->n;
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        char c = raw.p[i];
        if (c == '+' && plus) c = ' ';
        if (c == '%') {
            bool whole = raw.n - i > 2;
            int high = whole ? hex(raw.p[i + 1]) : -1;
            int low = whole ? hex(raw.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return mr_fail(e, MR_EINVAL,
                    "%s: \"%%\" at byte %zu is not followed by two hexadecimal digits", what, i);
            c = (char)(high * 16 + low);
            i += 2;
            if (c == 0) return mr_fail(e, MR_EINVAL, "%s: %%00 is not allowed", what);
        }
        to[n++] = c;
    }
    *out = mr_str_of(to, n);
    if (!mr_utf8_is_valid(*out)) return mr_fail(e, MR_EINVAL, "%s is not valid UTF-8", what);
    t->n += n;
    return MR_OK;
}

int mr_uri_query_next(struct mr_str *rest, struct mr_uri_text *t, struct mr_str *name,
    struct mr_str *value, struct mr_error *e)
{
    while (rest->n && rest->p[0] == '&')
        *rest = mr_str_of(rest->p + 1, rest->n - 1);
    if (rest->n == 0) return MR_ENOENT;

    const char *end = memchr(rest->p, '&', rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    const char *equal = memchr(rest->p, '=', n);
    size_t name_n = equal ? (size_t)(equal - rest->p) : n;
    struct mr_str raw_name = mr_str_of(rest->p, name_n);
    struct mr_str raw_value = equal ? mr_str_of(equal + 1, n - name_n - 1) : mr_str_of("", 0);
    *rest = mr_str_of(rest->p + n, rest->n - n);

    int err = mr_uri_decode(t, raw_name, true, "a name in the query", name, e);
    if (err) return err;
    char what[128];
    (void)snprintf(what, sizeof what, "the value of \"%.*s\" in the query",
        (int)MR_MIN(name->n, (size_t)64), name->p);
    return mr_uri_decode(t, raw_value, true, what, value, e);
}
