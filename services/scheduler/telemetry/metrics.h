/* The scheduler's metrics. When a client reads them, their values are taken from the core. */
#pragma once

#include "services/scheduler/base/context.h"

/* Makes sh->stats. Called before the server starts. */
void mr_metrics_add(struct mr_shell *sh);
