/* Login for browsers. A page sends a token once and gets a cookie, which the browser adds to every
 * later request of the gateway's own pages.
 *
 * Three checks keep other pages from using the cookie (CSRF):
 * - The cookie is SameSite=Strict, so pages of other sites do not send it.
 * - A request that changes something must have the header Origin, and Origin must be this gateway
 *   (http/origin.h). Browsers add Origin to such requests.
 * - Where the browser sends Sec-Fetch-Site, it must be same-origin or none.
 * The last two also stop pages from another port of this host, which count as the same site.
 * Scripts cannot read the cookie (HttpOnly), and no CORS header lets other pages read answers. */
#include "gateway/server/login.h"

#include "gateway/json/json_out.h"
#include "gateway/http/login_cookie.h"
#include "host/clock.h"

#include <stdio.h>

#define ANSWER_BYTES_MAX 512

static struct mr_str header(const struct mr_request *r, const char *name)
{
    return mr_str(MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name));
}

static struct mr_cookie_place place_of(const struct mr_request *r)
{
    return (struct mr_cookie_place){r->http->options.is_https, r->http->port};
}

static struct mr_str address_of(const struct mr_request *r)
{
    const struct mr_socket *s =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    return mr_str_of(s->key, s->key_n);
}

bool mr_login_find(struct mr_request *r)
{
    if (mr_str_eq(r->uri.path, MR_STR("/v1/login")))
        r->answer_kind = MR_ANSWER_LOGIN;
    else if (mr_str_eq(r->uri.path, MR_STR("/v1/logout")))
        r->answer_kind = MR_ANSWER_LOGOUT;
    else
        return false;
    r->allow = 1u << MR_HTTP_POST;
    if (r->answer_kind == MR_ANSWER_LOGIN) r->allow |= 1u << MR_HTTP_GET;
    return true;
}

bool mr_login_is_asked(const struct mr_request *r)
{
    return r->answer_kind == MR_ANSWER_LOGIN || r->answer_kind == MR_ANSWER_LOGOUT;
}

bool mr_login_is_open(const struct mr_request *r)
{
    return mr_login_is_asked(r) && r->verb == MR_HTTP_POST;
}

/* ---- the cookie ------------------------------------------------------------------------------ */

static int check_page(const struct mr_request *r, struct mr_error *e)
{
    struct mr_str site = header(r, "Sec-Fetch-Site");
    bool is_ours = mr_str_eq(site, MR_STR("same-origin")) || mr_str_eq(site, MR_STR("none"));
    if (site.p && !is_ours)
        return mr_fail(e, MR_EPERM,
            "the login's cookie is for pages of this gateway only (the header Sec-Fetch-Site names another site)");
    if (r->verb != MR_HTTP_GET && !header(r, "Origin").p)
        return mr_fail(e, MR_EPERM,
            "a request with the login's cookie that changes something needs the header Origin; "
            "programs send their token instead: Authorization: Bearer TOKEN");
    return MR_OK;
}

int mr_login_identity(struct mr_request *r, struct mr_error *e)
{
    struct mr_cookie_place place = place_of(r);
    struct mr_str authorization = header(r, "Authorization");
    struct mr_buf token;
    mr_buf_init(&token, MR_TOKEN_BYTES_MAX);
    int err = MR_OK;
    if (authorization.p || !mr_cookie_find(&place, header(r, "Cookie"), &token)) {
        err = mr_token_file_check(r->http->options.tokens, authorization, &r->user, e);
    } else if ((err = check_page(r, e)) == MR_OK &&
               !mr_token_file_find(r->http->options.tokens, mr_buf_str(&token), &r->user)) {
        err = mr_fail(e, MR_EAUTH, "the login's token is no longer valid; log in again");
    }
    mr_buf_fini(&token);
    return err;
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum MHD_Result answer(struct mr_request *r, const char *cookie)
{
    char text[ANSWER_BYTES_MAX] = "{}\n";
    if (r->answer_kind == MR_ANSWER_LOGIN) {
        mr_buf_clear(&r->out);
        mr_buf_add_text(&r->out, "{\"name\":");
        mr_json_text(&r->out, mr_str(r->user.name));
        mr_buf_printf(&r->out, ",\"role\":\"%s\"}\n", mr_role_name(r->user.role));
        (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(mr_buf_str(&r->out)));
    }
    struct MHD_Response *m =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
    if (cookie) (void)MHD_add_response_header(m, "Set-Cookie", cookie);
    return mr_answer_queue(r, 200, "application/json", &m);
}

/* Finds the user of the token. Counts wrong tokens by client address. After too many of them,
 * refuses every token from this address for a while. */
static int check_shown(struct mr_request *r, struct mr_str token)
{
    struct mr_attempts *attempts = r->http->attempts;
    struct mr_str address = address_of(r);
    mr_time now = mr_clock_now();
    if (!mr_attempts_may(attempts, address, now))
        return mr_fail(&r->error, MR_ELIMIT,
            "too many wrong tokens came from this address: try again in a minute");
    if (token.n && mr_token_file_find(r->http->options.tokens, token, &r->user)) return MR_OK;
    mr_attempts_fail(attempts, address, now);
    return mr_fail(&r->error, MR_EAUTH,
        token.n ? "the token is not known here"
                : "a token is wanted: {\"token\": \"…\"}, or Authorization: Bearer TOKEN");
}

static enum MHD_Result log_in(struct mr_request *r)
{
    char cookie[MR_COOKIE_TEXT_MAX];
    struct mr_cookie_place place = place_of(r);
    struct mr_str shown = {0};
    struct mr_buf token;
    uint32_t age_s = 0;
    mr_buf_init(&token, MR_LOGIN_BODY_BYTES_MAX);
    int err = mr_login_read(mr_buf_str(&r->body), &token, &age_s, &r->error);
    if (!token.n && mr_token_of(header(r, "Authorization"), &shown))
        mr_buf_add(&token, shown.p, shown.n);
    bool has_tokens = r->http->options.tokens != NULL;
    if (!err && has_tokens) err = check_shown(r, mr_buf_str(&token));
    if (!err && has_tokens) mr_cookie_write(&place, mr_buf_str(&token), age_s, cookie);
    mr_buf_fini(&token);
    return err ? mr_answer_error(r) : answer(r, has_tokens ? cookie : NULL);
}

enum MHD_Result mr_login_answer(struct mr_request *r)
{
    char cookie[MR_COOKIE_TEXT_MAX];
    struct mr_cookie_place place = place_of(r);
    if (r->answer_kind == MR_ANSWER_LOGOUT) {
        mr_cookie_write(&place, mr_str_of(NULL, 0), 0, cookie);
        return answer(r, cookie);
    }
    return r->verb == MR_HTTP_GET ? answer(r, NULL) : log_in(r);
}
