/* Login for browsers: the token as a cookie (http/login_cookie.h), the user behind a request, and
 * the answers of /v1/login and /v1/logout. */
#pragma once

#include "gateway/server/internal.h"

/* Is the path one of the login's? If so, sets answer_kind and allow. */
bool mr_login_find(struct mr_request *r);
bool mr_login_is_asked(const struct mr_request *r); /* after mr_login_find: is it? */
bool mr_login_is_open(const struct mr_request *r);  /* the request needs no token */
/* Sets r->user from the header Authorization or the login's cookie. MR_EAUTH, MR_EPERM. */
int mr_login_identity(struct mr_request *r, struct mr_error *e);
enum MHD_Result mr_login_answer(struct mr_request *r); /* when the body is complete */
