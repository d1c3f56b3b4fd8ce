/* Private to train/allreduce: what ends a wait for other ranks besides its deadline. */
#pragma once

#include "host/flag.h"

struct mr_reduce_wait {
    const struct mr_flag *stop;    /* set when the role has to end; NULL: none */
    const struct mr_flag *aborted; /* set by mr_reduce_abort */
};
