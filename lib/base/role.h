/* Roles of callers, in ascending order: each role may call all that the roles before it may. The
 * role that a method needs is in a table generated from the protobuf files (proto/methods.h). */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum mr_role {
    MR_ROLE_READER,  /* reads only */
    MR_ROLE_USER,    /* submits and changes its own work */
    MR_ROLE_ADMIN,   /* runs the cluster */
    MR_ROLE_SERVICE, /* a service of the cluster: it has shown the cluster's secret */
};

const char *mr_role_name(enum mr_role role); /* "reader" */

/* The role of this name, if a user may have it: reader, user or admin. False: it is none of
 * them. */
bool mr_role_of_person(struct mr_str name, enum mr_role *out);
