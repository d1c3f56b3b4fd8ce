/* Runs mr-predictor and reads what it writes to stdout. The program is started with posix_spawn,
 * because fork would copy the page tables of the scheduler, and the core thread would wait. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/time.h"
#include "host/flag.h"

struct mr_predict_child {
    char *const *argv; /* ends with NULL; argv[0] is the path of the program */
    mr_duration time_max;
    uint64_t memory_bytes_max;  /* resident memory */
    const struct mr_flag *stop; /* set: the program is killed */
};

/* Appends the output to `out`. MR_ECANCELED: `stop` was set. MR_ETIMEOUT, MR_ETOOBIG: the program
 * took too much time or memory and was killed. MR_EINTERNAL: it failed, or wrote more than `out`
 * may have. */
int mr_predict_child_run(
    const struct mr_predict_child *child, struct mr_buf *out, struct mr_error *e);
