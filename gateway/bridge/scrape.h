/* Collects the metrics of all services and of the gateway into x->text. */
#pragma once

#include "gateway/bridge/backends.h"
#include "gateway/bridge/exchange.h"
#include "host/os/stats.h"

/* Calls `done` once, after the return: when every service has answered. A call ends after 2 s
 * without an answer, and workers are asked after the scheduler, so `done` comes after 4 s at
 * most. */
void mr_scrape_start(struct mr_backends *b, struct mr_stats *own, struct mr_exchange *x,
    void (*done)(struct mr_exchange *x));
