/* Names of roles as text. */
#include "base/role.h"

#include "base/defs.h"

static const char *const names[] = {
    [MR_ROLE_READER] = "reader",
    [MR_ROLE_USER] = "user",
    [MR_ROLE_ADMIN] = "admin",
    [MR_ROLE_SERVICE] = "service",
};

const char *mr_role_name(enum mr_role role)
{
    return names[role];
}

bool mr_role_of_person(struct mr_str name, enum mr_role *out)
{
    for (unsigned i = MR_ROLE_READER; i <= MR_ROLE_ADMIN; i++) {
        if (!mr_str_eq(name, mr_str(names[i]))) continue;
        *out = (enum mr_role)i;
        return true;
    }
    return false;
}
