/* What a caller may: each role may all that the ones before it may. Which role a method wants is in
 * the table that is generated from the protos (proto/methods.h). */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum mr_role {
    MR_ROLE_READER,  /* looks */
    MR_ROLE_USER,    /* submits and changes */
    MR_ROLE_ADMIN,   /* runs the cluster */
    MR_ROLE_SERVICE, /* is a part of it: has shown the cluster's secret */
};

const char *mr_role_name(enum mr_role role); /* "reader" */

/* reader, user, admin: what a person may be. False: none of them. */
bool mr_role_of_person(struct mr_str name, enum mr_role *out);
