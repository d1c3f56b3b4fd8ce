/* The service Jobs, but for the calls that submit and change jobs (submit.h). */
#pragma once

#include "services/scheduler/shell/context.h"

extern const struct mr_rpc_service mr_jobs_service;
