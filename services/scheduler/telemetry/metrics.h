/* The scheduler's metrics. Their values are asked of the core when a client reads the metrics. */
#pragma once

#include "services/scheduler/base/context.h"

void mr_metrics_add(struct mr_shell *sh); /* makes sh->stats; before the server starts */
