/* Roles of callers, in ascending order: each role may also call all methods of the roles before it.
 * There is one exception: a cluster may have a separate secret for each kind of service. A service
 * that presents such a secret may call only the methods that list its kind (rpc/util/auth.h). The
 * role that a method needs is in a table generated from the protobuf files (proto/methods.h). */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum mr_role {
    MR_ROLE_READER,  /* a caller that only reads */
    MR_ROLE_USER,    /* a caller that submits and changes its own work */
    MR_ROLE_ADMIN,   /* a caller that runs the cluster */
    MR_ROLE_SERVICE, /* a service of the cluster, which has shown the cluster's secret */
};

const char *mr_role_name(enum mr_role role); /* for example "reader" */

/* Sets `*out` to the role of this name and returns true. Only the roles that a user may have are
 * found: reader, user and admin. False: the name is none of the three. */
bool mr_role_of_person(struct mr_str name, enum mr_role *out);
