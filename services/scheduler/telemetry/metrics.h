/* The scheduler's counters for Prometheus, asked of the core when they are read. */
#pragma once

#include "services/scheduler/base/context.h"

void mr_metrics_add(
    struct mr_shell *sh); /* makes sh->stats and serves it; before the server starts */
