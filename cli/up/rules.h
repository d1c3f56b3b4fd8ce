/* What operators may read and run under `up`. */
#pragma once

#include "host/config/config.h"

#include <stdio.h>

struct mr_rules {
    struct mr_texts data_root; /* canonical paths of directories that operators may read */
    bool allow_exec;
    const char *exec_user;  /* NULL: programs run as the user of this process */
    const char *token_file; /* path of the token file; NULL: none */
};

/* Checks the rules. Refuses an --exec-user that does not exist or cannot be used, and a data root
 * inside one of the `denied` directories (canonical paths, NULL at the end). */
int mr_rules_check(const struct mr_rules *r, const char *const *denied, struct mr_error *e);
/* Tells the user who starts the cluster what operators may read and run. */
void mr_rules_print(const struct mr_rules *r, FILE *out);
