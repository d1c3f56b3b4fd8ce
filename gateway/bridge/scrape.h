/* Collects the metrics of all services and of the gateway into x->text. */
#pragma once

#include "gateway/bridge/backends.h"
#include "gateway/bridge/exchange.h"
#include "host/os/stats.h"

/* Calls `done` once, after the return: when every service has answered, or after 2 s. */
void mr_scrape_start(struct mr_backends *b, struct mr_stats *own, struct mr_exchange *x,
    void (*done)(struct mr_exchange *x));
