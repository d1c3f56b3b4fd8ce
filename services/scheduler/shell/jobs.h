/* The service Jobs, except for the calls that submit and change jobs (submit.h). */
#pragma once

#include "services/scheduler/base/context.h"

extern const struct mr_rpc_service mr_jobs_service;
