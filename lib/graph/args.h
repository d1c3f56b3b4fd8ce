/* The arguments of a task: one pack.
 *
 *   positional arguments only    a list:  [a0, a1, …]
 *   with named ones              a map:   {"": [a0, a1, …], "axis": 0, "out": …}
 *
 * The map's first key is the empty text and holds the list of positional arguments (maybe empty);
 * the names follow in byte order. So the type of the outermost item tells, and a dictionary that
 * is passed as a positional argument is never mistaken for names. Inside, at any depth of lists
 * and maps, EXT_INPUT n stands for the value of the task's n-th input; slots are numbered by first
 * appearance. */
#pragma once

#include "base/err.h"
#include "base/pack.h"

struct mr_args {
    uint32_t positional_count;
    uint32_t named_count;
    struct mr_pack_reader positional; /* at the first positional argument */
    struct mr_pack_reader named;      /* at the first name: a text, then its value, … */
};

/* MR_EFORMAT for what is not laid out as above. Values are not looked into. */
int mr_args_open(struct mr_str pack, struct mr_args *out, struct mr_error *e);
