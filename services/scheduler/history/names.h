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

/* Numbers that one block gives to names, as numbers of the names above. All zeros: none. */
struct mr_trace_local_names {
    uint32_t *of; /* by the block's number: the name's number plus 1; 0: not known yet */
    uint32_t room;
};

/* Stores the number of a name whose number in the block is `local`, and returns it. */
uint32_t mr_trace_local_add(struct mr_trace_local_names *l, uint32_t local,
    struct mr_trace_names *names, struct mr_str name);
/* Returns the number of a name whose number in the block is `local`. */
static inline uint32_t mr_trace_local_number(struct mr_trace_local_names *l, uint32_t local,
    struct mr_trace_names *names, struct mr_str name)
{
    if (MR_LIKELY(local < l->room && l->of[local])) return l->of[local] - 1;
    return mr_trace_local_add(l, local, names, name);
}

void mr_trace_local_clear(struct mr_trace_local_names *l); /* before the next block */
