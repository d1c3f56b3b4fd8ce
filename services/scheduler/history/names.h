/* Numbers the names of operators, workers or clients in the order in which they first appear. */
#pragma once

#include "base/index.h"
#include "base/str.h"

struct mr_trace_names {
    struct mr_index index;
    struct mr_str *names; /* owned texts */
    uint32_t count, room;
};

void mr_trace_names_init(struct mr_trace_names *n);
void mr_trace_names_fini(struct mr_trace_names *n);
/* Returns the number of a name. A new name is copied; its number is then the old n->count. */
uint32_t mr_trace_names_number(struct mr_trace_names *n, struct mr_str name);
