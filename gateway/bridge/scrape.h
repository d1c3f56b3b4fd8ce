/* The counters of all services and our own, joined into x->text. */
#pragma once

#include "gateway/bridge/backends.h"
#include "gateway/bridge/exchange.h"
#include "host/os/stats.h"

/* `done` is called once, later, when every service has answered or 2 s are over. */
void mr_scrape_start(struct mr_backends *b, struct mr_stats *own, struct mr_exchange *x,
    void (*done)(struct mr_exchange *x));
