/* The texts of a login: the cookie that shows a token, and the body that asks for one. Pure.
 *
 * The cookie holds the token in hexadecimal digits, since a token may have characters that a cookie
 * may not. Its name has the gateway's port, because browsers do not keep cookies of two ports of a
 * host apart. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

#define MR_COOKIE_NAME_MAX 40
#define MR_COOKIE_TEXT_MAX 700
#define MR_LOGIN_BODY_BYTES_MAX 4096
#define MR_LOGIN_AGE_MAX 2592000 /* s: 30 days */

struct mr_cookie_place {
    bool is_https; /* Secure, and a name that no other host can set */
    int port;
};

/* The value of Set-Cookie. `age_s` 0: until the browser ends; an empty token: takes the cookie
 * away. */
void mr_cookie_write(const struct mr_cookie_place *place, struct mr_str token, uint32_t age_s,
    char out[MR_COOKIE_TEXT_MAX]);

/* The token in a header Cookie (p NULL: there is none), written to `out`; false: none is there, or
 * it is malformed. Of several the first counts. */
bool mr_cookie_find(const struct mr_cookie_place *place, struct mr_str header, struct mr_buf *out);

/* {"token": "…", "max_age_s": 3600}; both may be absent, as may the whole body. MR_EINVAL. */
int mr_login_read(struct mr_str body, struct mr_buf *token, uint32_t *age_s, struct mr_error *e);
