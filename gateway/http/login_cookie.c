#include "gateway/http/login_cookie.h"

#include "base/unconst.h"
#include "rpc/tokens.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

static_assert(2 * MR_TOKEN_BYTES_MAX + 150 < MR_COOKIE_TEXT_MAX, "every token fits");

static void name_of(const struct mr_cookie_place *place, char out[MR_COOKIE_NAME_MAX])
{
    const char *prefix = place->is_https ? "__Host-" : "";
    (void)snprintf(out, MR_COOKIE_NAME_MAX, "%smillrace_%d", prefix, place->port);
}

void mr_cookie_write(const struct mr_cookie_place *place, struct mr_str token, uint32_t age_s,
    char out[MR_COOKIE_TEXT_MAX])
{
    char name[MR_COOKIE_NAME_MAX], age[32] = "";
    name_of(place, name);
    size_t n = (size_t)snprintf(out, MR_COOKIE_TEXT_MAX, "%s=", name);
    for (size_t i = 0; i < token.n && i < MR_TOKEN_BYTES_MAX; i++)
        n += (size_t)snprintf(
            out + n, MR_COOKIE_TEXT_MAX - n, "%02x", (unsigned)(unsigned char)token.p[i]);
    if (age_s || !token.n) (void)snprintf(age, sizeof age, "; Max-Age=%" PRIu32, age_s);
    (void)snprintf(out + n, MR_COOKIE_TEXT_MAX - n, "; Path=/; HttpOnly; SameSite=Strict%s%s",
        place->is_https ? "; Secure" : "", age);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct mr_str hex, struct mr_buf *out)
{
    if (!hex.n || hex.n % 2 || hex.n > (size_t)2 * MR_TOKEN_BYTES_MAX) return false;
    for (size_t i = 0; i < hex.n; i += 2) {
        int high = hex_digit(hex.p[i]), low = hex_digit(hex.p[i + 1]);
        if (high < 0 || low < 0) return false;
        mr_buf_add_byte(out, (unsigned char)(high << 4 | low));
    }
    return true;
}

bool mr_cookie_find(const struct mr_cookie_place *place, struct mr_str header, struct mr_buf *out)
{
    char name[MR_COOKIE_NAME_MAX];
    name_of(place, name);
    size_t name_n = strlen(name), at = 0;
    while (at < header.n) {
        while (at < header.n && (header.p[at] == ' ' || header.p[at] == ';'))
            at++;
        const char *end = at < header.n ? memchr(header.p + at, ';', header.n - at) : NULL;
        size_t stop = end ? (size_t)(end - header.p) : header.n;
        bool is_ours = stop - at > name_n && !memcmp(header.p + at, name, name_n) &&
                       header.p[at + name_n] == '=';
        if (is_ours)
            return read_hex(mr_str_of(header.p + at + name_n + 1, stop - at - name_n - 1), out);
        at = stop;
    }
    return false;
}

static int read_fields(yyjson_val *root, struct mr_buf *token, uint32_t *age_s, struct mr_error *e)
{
    size_t i, n;
    yyjson_val *key, *v;
    if (!yyjson_is_obj(root)) return mr_fail(e, MR_EINVAL, "the body is not a JSON object");
    yyjson_obj_foreach(root, i, n, key, v)
    {
        if (yyjson_equals_str(key, "token") && yyjson_is_str(v)) {
            mr_buf_clear(token);
            mr_buf_add(token, yyjson_get_str(v), yyjson_get_len(v));
        } else if (yyjson_equals_str(key, "max_age_s") && yyjson_is_uint(v) &&
                   yyjson_get_uint(v) <= MR_LOGIN_AGE_MAX) {
            *age_s = (uint32_t)yyjson_get_uint(v);
        } else {
            return mr_fail(e, MR_EINVAL,
                "%.40s: a body of {\"token\": TEXT, \"max_age_s\": 0 to %d} is expected",
                yyjson_get_str(key), MR_LOGIN_AGE_MAX);
        }
    }
    return MR_OK;
}

int mr_login_read(struct mr_str body, struct mr_buf *token, uint32_t *age_s, struct mr_error *e)
{
    yyjson_read_err why = {0};
    if (!body.n) return MR_OK;
    yyjson_doc *doc = yyjson_read_opts(mr_unconst(body.p), body.n, 0, NULL, &why);
    if (!doc)
        return mr_fail(e, MR_EINVAL, "the body is not JSON: %s at byte %zu", why.msg, why.pos);
    int err = read_fields(yyjson_doc_get_root(doc), token, age_s, e);
    yyjson_doc_free(doc);
    return err;
}
