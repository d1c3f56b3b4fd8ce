/* Login for browsers: the token as a cookie (http/login_cookie.h), the user behind a request, and
 * the answers of /v1/login and /v1/logout. */
#pragma once

#include "gateway/server/internal.h"

/* True: the path is /v1/login or /v1/logout, and the function has set r->answer_kind and
 * r->allow. */
bool mr_login_find(struct mr_request *r);
/* True: the request's path is /v1/login or /v1/logout. To be called after mr_login_find. */
bool mr_login_is_asked(const struct mr_request *r);
bool mr_login_is_open(const struct mr_request *r); /* true: the request needs no token */
/* Sets r->user from the header Authorization or from the login's cookie. MR_EAUTH or MR_EPERM: the
 * request is refused. */
int mr_login_identity(struct mr_request *r, struct mr_error *e);
enum MHD_Result mr_login_answer(struct mr_request *r); /* to be called when the body is complete */
