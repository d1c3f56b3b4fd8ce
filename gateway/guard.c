/* Tokens, hosts and origins. */
#include "gateway/guard.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <strings.h>

#define NAME_BYTES_MAX 128

static const char *const role_names[] = {
    [MR_ROLE_READER] = "reader",
    [MR_ROLE_USER] = "user",
    [MR_ROLE_ADMIN] = "admin",
};

struct token {
    struct mr_str secret;
    struct mr_identity who;
};

struct mr_tokens {
    char *text; /* the file, which everything else points into */
    struct token items[MR_TOKENS_MAX];
    size_t count;
};

const char *mr_role_name(enum mr_role role)
{
    return role_names[role];
}

void mr_tokens_free(struct mr_tokens **tokens)
{
    if (!*tokens) return;
    mr_release((*tokens)->text);
    mr_release(*tokens);
    *tokens = NULL;
}

static char *word(char **line) /* the next one, NUL-terminated; NULL: none */
{
    char *p = *line + strspn(*line, " \t\r");
    if (!*p) return NULL;
    size_t n = strcspn(p, " \t\r");
    *line = p[n] ? p + n + 1 : p + n;
    p[n] = 0;
    return p;
}

static int parse_line(struct mr_tokens *t, char *line, size_t number, struct mr_error *e)
{
    char *secret = word(&line);
    if (!secret || secret[0] == '#') return MR_OK;
    char *role = word(&line), *name = word(&line);
    if (!name || word(&line))
        return mr_fail(e, MR_EINVAL, "line %zu is not \"token role name\"", number);
    size_t n = strlen(secret);
    if (n < MR_TOKEN_BYTES_MIN || n > MR_TOKEN_BYTES_MAX)
        return mr_fail(e, MR_EINVAL, "line %zu: a token has %d to %d bytes", number,
            MR_TOKEN_BYTES_MIN, MR_TOKEN_BYTES_MAX);
    if (!mr_utf8_is_key(mr_str(name), NAME_BYTES_MAX))
        return mr_fail(
            e, MR_EINVAL, "line %zu: a name has 1 to %d bytes of UTF-8", number, NAME_BYTES_MAX);
    for (size_t i = 0; i < MR_ARRAY_LEN(role_names); i++) {
        if (strcmp(role, role_names[i]) != 0) continue;
        if (t->count == MR_TOKENS_MAX)
            return mr_fail(e, MR_EINVAL, "there are more than %d tokens", MR_TOKENS_MAX);
        t->items[t->count++] = (struct token){{secret, n}, {name, (enum mr_role)i}};
        return MR_OK;
    }
    return mr_fail(
        e, MR_EINVAL, "line %zu: role \"%s\" is none of admin, user, reader", number, role);
}

int mr_tokens_parse(struct mr_str text, struct mr_tokens **out, struct mr_error *e)
{
    MR_AUTO(mr_tokens_free) struct mr_tokens *t = mr_alloc(sizeof *t);
    if (text.n && memchr(text.p, 0, text.n)) return mr_fail(e, MR_EINVAL, "a NUL is in the file");
    t->text = mr_alloc(text.n + 1);
    if (text.n) memcpy(t->text, text.p, text.n);
    size_t number = 0;
    for (char *line = t->text; line;) {
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        int err = parse_line(t, line, ++number, e);
        if (err) return err;
        line = end ? end + 1 : NULL;
    }
    if (!t->count) return mr_fail(e, MR_EINVAL, "there is no token in the file");
    *out = MR_STEAL(t);
    return MR_OK;
}

/* Without an early way out: the time tells nothing about where two texts differ. */
static bool same_secret(struct mr_str a, struct mr_str b)
{
    unsigned differ = a.n != b.n;
    for (size_t i = 0; i < b.n; i++)
        differ |= (unsigned char)((a.n ? a.p[i % a.n] : 0) ^ b.p[i]);
    return !differ;
}

int mr_tokens_check(const struct mr_tokens *tokens, struct mr_str authorization,
    const struct mr_identity **out, struct mr_error *e)
{
    static const char scheme[] = "Bearer ";
    size_t n = sizeof scheme - 1;
    if (!authorization.p || authorization.n < n || strncasecmp(authorization.p, scheme, n) != 0)
        return mr_fail(e, MR_EAUTH, "a token is wanted: Authorization: Bearer TOKEN");
    struct mr_str secret = mr_str_of(authorization.p + n, authorization.n - n);
    const struct mr_identity *found = NULL;
    for (size_t i = 0; i < tokens->count; i++)
        if (same_secret(secret, tokens->items[i].secret)) found = &tokens->items[i].who;
    if (!found) return mr_fail(e, MR_EAUTH, "the token is not known here");
    *out = found;
    return MR_OK;
}

static struct mr_str without_port(struct mr_str host)
{
    if (host.n && host.p[0] == '[') {
        const char *end = memchr(host.p, ']', host.n);
        return end ? mr_str_of(host.p, (size_t)(end - host.p) + 1) : host;
    }
    const char *colon = host.n ? memchr(host.p, ':', host.n) : NULL;
    return colon ? mr_str_of(host.p, (size_t)(colon - host.p)) : host;
}

int mr_guard_host(
    struct mr_str host, const char *const *names, size_t names_count, struct mr_error *e)
{
    struct mr_str name = without_port(host);
    for (size_t i = 0; i < names_count; i++)
        if (name.n == strlen(names[i]) && strncasecmp(name.p, names[i], name.n) == 0) return MR_OK;
    return mr_fail(e, MR_EPERM, "this is not the host \"%.*s\"; --allow-host adds a name",
        (int)MR_MIN(name.n, (size_t)100), name.n ? name.p : "");
}

int mr_guard_origin(struct mr_str origin, struct mr_str host, struct mr_error *e)
{
    if (!origin.p) return MR_OK;
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < MR_ARRAY_LEN(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (origin.n != n + host.n || memcmp(origin.p, schemes[i], n) != 0) continue;
        if (host.n && strncasecmp(origin.p + n, host.p, host.n) == 0) return MR_OK;
    }
    return mr_fail(e, MR_EPERM, "pages from \"%.*s\" may not ask here",
        (int)MR_MIN(origin.n, (size_t)100), origin.p);
}
