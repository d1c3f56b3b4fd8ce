/* The arguments of a task in one MessagePack value.
 *
 *   positional arguments only    a list:  [a0, a1, …]
 *   with named arguments         a map:   {"": [a0, a1, …], "axis": 0, "out": …}
 *
 * The map's first key is the empty text; its value is the list of positional arguments, which may
 * be empty. The names follow in byte order. So the type of the outermost item distinguishes the two
 * forms, and a dictionary passed as a positional argument is never taken for names. At any depth of
 * lists and maps, EXT_INPUT n stands for the value of the task's n-th input. Inputs are numbered by
 * first appearance. */
#pragma once

#include "base/err.h"
#include "base/pack.h"

struct mr_args {
    uint32_t positional_count;
    uint32_t named_count;
    struct mr_pack_reader positional; /* stands at the first positional argument */
    struct mr_pack_reader named;      /* stands at the first name: a text, then its value, … */
};

/* Opens the arguments of a task: sets the counts and the readers of `*out`. MR_EFORMAT: the value
 * does not have the form above. The arguments themselves are not checked. */
int mr_args_open(struct mr_str pack, struct mr_args *out, struct mr_error *e);
