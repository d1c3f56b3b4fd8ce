/* Login for browsers: the token as a cookie (http/login_cookie.h), who asks by it, and the three
 * answers.
 */
#pragma once

#include "gateway/server/request.h"

bool mr_login_find(struct mr_request *r); /* is it a path of the login? Sets shape and allow */
bool mr_login_is_shape(const struct mr_request *r);
bool mr_login_is_open(const struct mr_request *r); /* wants no token */
/* Who asks: by the header Authorization, or by the login's cookie. MR_EAUTH, MR_EPERM. */
int mr_login_identity(struct mr_request *r, struct mr_error *e);
enum MHD_Result mr_login_answer(struct mr_request *r); /* the body is there */
