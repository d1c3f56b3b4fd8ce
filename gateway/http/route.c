/* Matches raw paths against the templates of routes. Of several templates that fit, one with an
 * action (`:cancel`) wins, then the one with more literals, then one without `**`. */
#include "gateway/http/route.h"

#include "base/assert.h"

#include <stdio.h>

static const char *const verb_names[] = {
    [MR_HTTP_GET] = "GET",
    [MR_HTTP_PUT] = "PUT",
    [MR_HTTP_POST] = "POST",
    [MR_HTTP_DELETE] = "DELETE",
    [MR_HTTP_PATCH] = "PATCH",
};

const char *mr_http_verb_name(enum mr_http_verb verb)
{
    return verb_names[verb];
}

int mr_http_verb_parse(const char *name, enum mr_http_verb *out)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(verb_names); i++) {
        if (strcmp(name, verb_names[i]) != 0) continue;
        *out = (enum mr_http_verb)i;
        return MR_OK;
    }
    return MR_EMETHOD;
}

const struct mr_route_segment *mr_route_rest(const struct mr_route *route)
{
    for (unsigned i = 0; i < route->segments_count; i++)
        if (route->segments[i].rest) return &route->segments[i];
    return NULL;
}

/* The fields that a template finds in the path, not decoded. */
struct take {
    struct mr_str raw[MR_ROUTE_FIELDS_MAX];
    const char *field[MR_ROUTE_FIELDS_MAX];
    size_t count;
    int score;
};

/* Returns the text of `rest` before the next slash, and removes this text and the slash from
 * `rest`. */
static struct mr_str cut_piece(struct mr_str *rest)
{
    const char *slash = memchr(rest->p, '/', rest->n);
    size_t n = slash ? (size_t)(slash - rest->p) : rest->n;
    struct mr_str piece = mr_str_of(rest->p, n);
    size_t gone = slash ? n + 1 : n;
    *rest = mr_str_of(rest->p + gone, rest->n - gone);
    return piece;
}

static bool cut_action(struct mr_str *path, const char *action)
{
    size_t n = strlen(action);
    if (path->n < n + 2 || path->p[path->n - n - 1] != ':') return false;
    if (memcmp(path->p + path->n - n, action, n) != 0) return false;
    path->n -= n + 1;
    return true;
}

/* Removes the literals that follow `{field=**}` from the end of the path. False: the path does not
 * end with these literals. */
static bool cut_tail(const struct mr_route *r, struct mr_str *path, bool *has_tail)
{
    if (!mr_route_rest(r)) return true;
    for (unsigned i = r->segments_count; !r->segments[--i].is_field;) {
        size_t n = strlen(r->segments[i].text);
        if (path->n < n + 1 || path->p[path->n - n - 1] != '/') return false;
        if (memcmp(path->p + path->n - n, r->segments[i].text, n) != 0) return false;
        path->n -= n + 1;
        *has_tail = true;
    }
    return true;
}

static void take_field(struct take *t, const char *field, struct mr_str raw)
{
    mr_assert(t->count < MR_ROUTE_FIELDS_MAX);
    t->field[t->count] = field;
    t->raw[t->count++] = raw;
}

static bool fits(const struct mr_route *r, struct mr_str path, struct take *t)
{
    *t = (struct take){.count = 0};
    if (r->action && !cut_action(&path, r->action)) return false;
    if (r->action) t->score += 1000;

    struct mr_str rest = mr_str_of(path.p + 1, path.n - 1); /* begins after the first slash */
    bool more = true, has_tail = false;
    if (!cut_tail(r, &rest, &has_tail)) return false;
    if (has_tail) t->score += 10;
    for (unsigned i = 0; i < r->segments_count; i++) {
        const struct mr_route_segment *s = &r->segments[i];
        if (s->rest) {
            /* If the path has no text left for `{field=**}`, the route wins only if no other route
             * fits, or if literals follow the field. */
            t->score -= rest.n || has_tail ? 1 : 2000;
            if (rest.n) take_field(t, s->text, rest);
            return true;
        }
        if (!more) return false;
        bool slash = memchr(rest.p, '/', rest.n) != NULL;
        struct mr_str piece = cut_piece(&rest);
        more = slash;
        if (s->is_field) {
            if (piece.n == 0) return false;
            take_field(t, s->text, piece);
        } else {
            if (!mr_str_eq(piece, mr_str(s->text))) return false;
            t->score += 10;
        }
    }
    return !more;
}

static int decode(const struct mr_route *r, const struct take *t, struct mr_uri_text *text,
    struct mr_match *out, struct mr_error *e)
{
    struct mr_match m = {.route = r};
    for (size_t i = 0; i < t->count; i++) {
        char what[80];
        (void)snprintf(what, sizeof what, "\"%s\" in the path", t->field[i]);
        struct mr_path_field *b = &m.path_fields[m.path_fields_count++];
        b->field = t->field[i];
        int err = mr_uri_decode(text, t->raw[i], false, what, &b->value, e);
        if (err) return err;
    }
    *out = m;
    return MR_OK;
}

int mr_route_match(const struct mr_route *routes, size_t count, enum mr_http_verb verb,
    struct mr_str path, struct mr_uri_text *text, struct mr_match *out, unsigned *verbs,
    struct mr_error *e)
{
    const struct mr_route *best = NULL;
    struct take best_take = {.count = 0};
    *verbs = 0;
    if (path.n == 0 || path.p[0] != '/') return mr_fail(e, MR_EINVAL, "the path has no slash");
    for (size_t i = 0; i < count; i++) {
        struct take t;
        if (!fits(&routes[i], path, &t)) continue;
        *verbs |= 1u << routes[i].verb;
        if (routes[i].verb != verb) continue;
        if (best && best_take.score >= t.score) continue;
        best = &routes[i];
        best_take = t;
    }
    if (best) return decode(best, &best_take, text, out, e);
    if (!*verbs)
        return mr_fail(e, MR_ENOENT, "there is nothing at %.*s; /openapi.json lists what there is",
            (int)MR_MIN(path.n, (size_t)300), path.p);
    return mr_fail(e, MR_EMETHOD, "%s is not possible at %.*s; the header Allow says what is",
        mr_http_verb_name(verb), (int)MR_MIN(path.n, (size_t)300), path.p);
}
