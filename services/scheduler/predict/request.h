/* Checks a request of Jobs.WhatIf before a prediction is started. No I/O. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <millrace/v1/jobs.pb-c.h>

#define MR_PREDICT_SLOTS_MAX (1u << 20)
#define MR_PREDICT_PROCESSORS_MAX (1u << 20)
#define MR_PREDICT_FACTOR_MIN 1e-6
#define MR_PREDICT_FACTOR_MAX 1e6
#define MR_PREDICT_FREE_MAX 16u
#define MR_PREDICT_OP_SPEEDS_MAX 64u

/* Returns the i-th name that WhatIfRequest.free may have; NULL: there are fewer. */
const char *mr_predict_free_name(size_t i);

/* MR_EINVAL: a field is wrong; the sentence names the field. `ops`: the operators of the job. */
int mr_predict_check(const Millrace__V1__WhatIfRequest *m, const struct mr_str *ops,
    uint32_t ops_count, struct mr_error *e);
