/* Parses the token file and compares tokens. */
#include "rpc/tokens.h"

#include "base/alloc.h"
#include "host/os/file.h"

#include <string.h>
#include <strings.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)

struct token {
    struct mr_str secret;
    struct mr_identity who;
};

struct mr_tokens {
    char *text; /* the content of the file; all texts point into it */
    struct token items[MR_TOKENS_MAX];
    size_t count;
};

void mr_tokens_free(struct mr_tokens **tokens)
{
    if (!*tokens) return;
    mr_release((*tokens)->text);
    mr_release(*tokens);
    *tokens = NULL;
}

/* True: the text has at least one character, and only printable ASCII characters other than the
 * space. */
static bool is_printable(struct mr_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f) return false;
    return s.n > 0;
}

int mr_token_is_good(struct mr_str token, struct mr_error *e)
{
    if (token.n < MR_TOKEN_BYTES_MIN || token.n > MR_TOKEN_BYTES_MAX)
        return mr_fail(e, MR_EINVAL, "a token has %d to %d bytes, this one has %zu",
            MR_TOKEN_BYTES_MIN, MR_TOKEN_BYTES_MAX, token.n);
    if (is_printable(token)) return MR_OK;
    return mr_fail(e, MR_EINVAL, "a token is of printable ASCII characters without spaces");
}

/* Returns the next word of a line, and moves the beginning of `*line` past the word. Empty: no word
 * is left. */
static struct mr_str next_word(struct mr_str *line)
{
    size_t from = 0;
    while (from < line->n && strchr(" \t\r", line->p[from]))
        from++;
    size_t to = from;
    while (to < line->n && !strchr(" \t\r", line->p[to]))
        to++;
    struct mr_str word = mr_str_of(line->p + from, to - from);
    *line = mr_str_of(line->p + to, line->n - to);
    return word;
}

static int parse_words(struct mr_tokens *t, struct mr_str line, struct mr_error *e)
{
    struct mr_str secret = next_word(&line);
    if (!secret.n || secret.p[0] == '#') return MR_OK;
    struct mr_str role = next_word(&line), name = next_word(&line);
    if (!name.n || next_word(&line).n) return mr_fail(e, MR_EINVAL, "it is not TOKEN ROLE NAME");
    int err = mr_token_is_good(secret, e);
    if (err) return err;
    struct token token = {secret, {name, MR_ROLE_READER}};
    if (!mr_role_of_person(role, &token.who.role))
        return mr_fail(e, MR_EINVAL, "role \"%.*s\" is none of admin, user, reader",
            (int)MR_MIN(role.n, (size_t)40), role.p);
    if (!is_printable(name) || name.n > MR_TOKEN_NAME_BYTES_MAX)
        return mr_fail(
            e, MR_EINVAL, "a name has 1 to %d bytes of printable ASCII", MR_TOKEN_NAME_BYTES_MAX);
    if (mr_tokens_find(t, secret))
        return mr_fail(e, MR_EINVAL, "an earlier line already has its token");
    if (t->count == MR_TOKENS_MAX)
        return mr_fail(e, MR_EINVAL, "a file has at most %d tokens", MR_TOKENS_MAX);
    t->items[t->count++] = token;
    return MR_OK;
}

int mr_tokens_parse(struct mr_str text, struct mr_tokens **out, struct mr_error *e)
{
    MR_AUTO(mr_tokens_free) struct mr_tokens *t = mr_alloc(sizeof *t);
    if (text.n && memchr(text.p, 0, text.n)) return mr_fail(e, MR_EINVAL, "a NUL is in the file");
    t->text = mr_alloc(text.n + 1);
    if (text.n) memcpy(t->text, text.p, text.n);
    size_t number = 0;
    for (const char *at = t->text; at;) {
        const char *end = strchr(at, '\n');
        struct mr_str line = mr_str_of(at, end ? (size_t)(end - at) : strlen(at));
        struct mr_error why;
        number++;
        if (parse_words(t, line, &why))
            return mr_fail(e, MR_EINVAL, "line %zu: %s", number, why.text);
        at = end ? end + 1 : NULL;
    }
    if (!t->count) return mr_fail(e, MR_EINVAL, "there is no token in the file");
    *out = MR_STEAL(t);
    return MR_OK;
}

int mr_tokens_open(const char *path, struct mr_tokens **out, struct mr_error *e)
{
    struct mr_buf text;
    struct mr_error why = {0};
    mr_buf_init(&text, FILE_BYTES_MAX);
    int err = mr_file_read_secret(path, &text, &why);
    if (err)
        (void)mr_fail(e, err, "--token-file: %s", why.text);
    else if ((err = mr_tokens_parse(mr_buf_str(&text), out, &why)) != MR_OK)
        (void)mr_fail(e, err, "--token-file: \"%s\": %s", path, why.text);
    mr_buf_fini(&text);
    return err;
}

bool mr_token_is_same(struct mr_str shown, struct mr_str secret)
{
    unsigned differ = shown.n != secret.n;
    for (size_t i = 0; i < secret.n; i++)
        differ |= (unsigned char)((shown.n ? shown.p[i % shown.n] : 0) ^ secret.p[i]);
    return !differ;
}

const struct mr_identity *mr_tokens_find(const struct mr_tokens *tokens, struct mr_str token)
{
    const struct mr_identity *found = NULL;
    for (size_t i = 0; i < tokens->count; i++)
        if (mr_token_is_same(token, tokens->items[i].secret)) found = &tokens->items[i].who;
    return found;
}

bool mr_tokens_at(
    const struct mr_tokens *tokens, size_t i, struct mr_str *token, const struct mr_identity **who)
{
    if (i >= tokens->count) return false;
    *token = tokens->items[i].secret;
    *who = &tokens->items[i].who;
    return true;
}

bool mr_token_of(struct mr_str authorization, struct mr_str *token)
{
    static const char scheme[] = "Bearer ";
    size_t n = sizeof scheme - 1;
    if (!authorization.p || authorization.n < n || strncasecmp(authorization.p, scheme, n) != 0)
        return false;
    *token = mr_str_of(authorization.p + n, authorization.n - n);
    return true;
}
