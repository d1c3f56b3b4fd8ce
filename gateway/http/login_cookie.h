/* The cookie that carries a browser's token, and the body of a login request. Only parses and
 * formats; no I/O.
 *
 * The cookie holds the token in hexadecimal digits, since a token may have characters that are not
 * allowed in a cookie. The name of the cookie contains the gateway's port, because browsers share
 * cookies between all ports of a host. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

#define MR_COOKIE_NAME_MAX 40
#define MR_COOKIE_TEXT_MAX 700
#define MR_LOGIN_BODY_BYTES_MAX 4096
#define MR_LOGIN_AGE_MAX 2592000 /* s: 30 days */

struct mr_cookie_place {
    /* True: the cookie is Secure, and its prefix __Host- keeps other hosts from setting it. */
    bool is_https;
    int port;
};

/* Writes the value of the header Set-Cookie. `age_s` 0: the cookie lasts until the browser closes.
 * An empty token deletes the cookie. */
void mr_cookie_write(const struct mr_cookie_place *place, struct mr_str token, uint32_t age_s,
    char out[MR_COOKIE_TEXT_MAX]);

/* Appends the token of the cookie to `out`. `header`: the value of the header Cookie; empty: the
 * request has no such header. If several cookies have the name, the first counts. False: the cookie
 * is absent or malformed. */
bool mr_cookie_find(const struct mr_cookie_place *place, struct mr_str header, struct mr_buf *out);

/* Reads {"token": "…", "max_age_s": 3600}. Both members may be absent, and the whole body, too.
 * MR_EINVAL: the body has another form. */
int mr_login_read(struct mr_str body, struct mr_buf *token, uint32_t *age_s, struct mr_error *e);
