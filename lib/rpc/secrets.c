/* Parses the secret file and compares secrets. */
#include "rpc/secrets.h"

#include "base/alloc.h"
#include "host/tls/sha256.h"
#include "rpc/tokens.h"

#include <string.h>

#define HASH_PREFIX "sha256:"
#define LINE_WORDS 4

struct accepted {
    uint8_t hash[MR_SHA256_BYTES];
    enum mr_service_kind service;
};

struct mr_secrets {
    char *plain[MR_RPC_SECRETS_MAX];
    size_t plain_count;
    /* By kind of service: the secret that is sent to it. NULL: plain[0] is sent instead, if there
     * is one. */
    char *shown[MR_SERVICE_COUNT];
    struct accepted accepted[MR_SECRETS_ACCEPTED_MAX];
    size_t accepted_count;
};

void mr_secrets_free(struct mr_secrets **secrets)
{
    if (!*secrets) return;
    struct mr_secrets *s = MR_STEAL(*secrets);
    for (size_t i = 0; i < s->plain_count; i++)
        mr_release(s->plain[i]);
    for (size_t i = 0; i < MR_SERVICE_COUNT; i++)
        mr_release(s->shown[i]);
    mr_release(s);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static size_t split(struct mr_str line, struct mr_str words[LINE_WORDS])
{
    size_t count = 0;
    for (size_t at = 0; count < LINE_WORDS;) {
        while (at < line.n && strchr(" \t\r", line.p[at]))
            at++;
        size_t from = at;
        while (at < line.n && !strchr(" \t\r", line.p[at]))
            at++;
        if (at == from) break;
        words[count++] = mr_str_of(line.p + from, at - from);
    }
    return count;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hash(struct mr_str word, uint8_t out[MR_SHA256_BYTES])
{
    static const char prefix[] = HASH_PREFIX;
    size_t n = sizeof prefix - 1;
    if (word.n != n + 2 * MR_SHA256_BYTES || memcmp(word.p, prefix, n) != 0) return false;
    for (size_t i = 0; i < MR_SHA256_BYTES; i++) {
        int high = hex_digit(word.p[n + 2 * i]), low = hex_digit(word.p[n + 2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static int add_plain(struct mr_secrets *s, struct mr_str secret, struct mr_error *e)
{
    if (s->plain_count == MR_RPC_SECRETS_MAX)
        return mr_fail(e, MR_EINVAL, "there are more than %d secrets", MR_RPC_SECRETS_MAX);
    int err = mr_token_is_good(secret, e);
    if (!err) s->plain[s->plain_count++] = mr_format("%.*s", MR_STR_ARG(secret));
    return err;
}

static int add_shown(
    struct mr_secrets *s, enum mr_service_kind to, struct mr_str secret, struct mr_error *e)
{
    if (s->shown[to])
        return mr_fail(
            e, MR_EINVAL, "an earlier line already has the secret for a %s", mr_service_name(to));
    int err = mr_token_is_good(secret, e);
    if (!err) s->shown[to] = mr_format("%.*s", MR_STR_ARG(secret));
    return err;
}

static int add_accepted(
    struct mr_secrets *s, enum mr_service_kind service, struct mr_str word, struct mr_error *e)
{
    struct accepted a = {.service = service};
    if (!read_hash(word, a.hash))
        return mr_fail(
            e, MR_EINVAL, "it is not accept SERVICE " HASH_PREFIX "HEX, with 64 digits 0-9a-f");
    if (s->accepted_count == MR_SECRETS_ACCEPTED_MAX)
        return mr_fail(e, MR_EINVAL, "a file accepts at most %d secrets", MR_SECRETS_ACCEPTED_MAX);
    s->accepted[s->accepted_count++] = a;
    return MR_OK;
}

static int parse_line(struct mr_secrets *s, struct mr_str line, struct mr_error *e)
{
    struct mr_str words[LINE_WORDS];
    size_t count = split(line, words);
    if (!count || (mr_str_eq(words[0], MR_STR("#")))) return MR_OK;
    if (count == 1) return add_plain(s, words[0], e);
    bool shows = mr_str_eq(words[0], MR_STR("show"));
    if (count != 3 || (!shows && !mr_str_eq(words[0], MR_STR("accept"))))
        return mr_fail(e, MR_EINVAL,
            "it is none of SECRET, show SERVICE SECRET, accept SERVICE " HASH_PREFIX "HEX");
    enum mr_service_kind service;
    if (!mr_service_of(words[1], &service))
        return mr_fail(e, MR_EINVAL,
            "service \"%.*s\" is none of scheduler, objectstore, worker, trainer, gateway",
            (int)MR_MIN(words[1].n, (size_t)40), words[1].p);
    return shows ? add_shown(s, service, words[2], e) : add_accepted(s, service, words[2], e);
}

int mr_secrets_parse(struct mr_str text, struct mr_secrets **out, struct mr_error *e)
{
    MR_AUTO(mr_secrets_free) struct mr_secrets *s = mr_alloc(sizeof *s);
    if (text.n && memchr(text.p, 0, text.n)) return mr_fail(e, MR_EINVAL, "a NUL is in the file");
    struct mr_str rest = text;
    bool shows = false;
    for (size_t number = 1; rest.n; number++) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;
        struct mr_error why;
        if (parse_line(s, mr_str_of(rest.p, n), &why))
            return mr_fail(e, MR_EINVAL, "line %zu: %s", number, why.text);
        n = MR_MIN(n + 1, rest.n);
        rest = mr_str_of(rest.p + n, rest.n - n);
    }
    for (size_t i = 0; i < MR_SERVICE_COUNT; i++)
        shows = shows || s->shown[i];
    if (!s->plain_count && !s->accepted_count && !shows)
        return mr_fail(e, MR_EINVAL, "there is no secret in the file");
    *out = MR_STEAL(s);
    return MR_OK;
}

/* ---- questions ------------------------------------------------------------------------------- */

const char *mr_secrets_shown(const struct mr_secrets *s, enum mr_service_kind to)
{
    if (s->shown[to]) return s->shown[to];
    return s->plain_count ? s->plain[0] : NULL;
}

unsigned mr_secrets_accepted(const struct mr_secrets *s, struct mr_str shown)
{
    unsigned found = 0;
    uint8_t hash[MR_SHA256_BYTES] = {0};
    /* The hash costs time in each call, so it is computed only if the file has hashes. */
    if (s->accepted_count) mr_sha256(shown, hash);
    struct mr_str hashed = mr_str_of(hash, sizeof hash);
    for (size_t i = 0; i < s->plain_count; i++)
        if (mr_token_is_same(shown, mr_str(s->plain[i]))) found = MR_SERVICES_ALL;
    for (size_t i = 0; i < s->accepted_count; i++)
        if (mr_token_is_same(hashed, mr_str_of(s->accepted[i].hash, sizeof hash)))
            found |= 1u << s->accepted[i].service;
    return found;
}
