/* What `up` lets operators read and run, and how it says so. */
#pragma once

#include "host/config/config.h"

#include <stdio.h>

struct mr_rules {
    struct mr_texts data_root; /* canonical paths */
    bool allow_exec;
    const char *exec_user;  /* NULL: programs run as this process's user */
    const char *token_file; /* NULL: none */
};

/* Refuses, in words, an --exec-user that cannot be, and a data root in one of the `denied`
 * directories (canonical; a NULL ends), where operators may read nothing. */
int mr_rules_check(const struct mr_rules *r, const char *const *denied, struct mr_error *e);
/* Lines for the user who started the cluster. */
void mr_rules_say(const struct mr_rules *r, FILE *out);
