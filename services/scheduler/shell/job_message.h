/* A job as the message that clients see. */
#pragma once

#include "services/scheduler/base/context.h"

/* Returns the job's message in the scratch arena; NULL: the core has no such job. */
Millrace__V1__Job *mr_job_message(struct mr_shell *sh, mr_job_id job);
