/* The counters of all services and our own, joined into x->text. */
#pragma once

#include "gateway/backends.h"
#include "gateway/exchange.h"
#include "host/stats.h"

/* `done` is called once, later, when every service has answered or 2 s are over. */
void mr_scrape_start(struct mr_backends *b, struct mr_stats *own, struct mr_exchange *x,
    void (*done)(struct mr_exchange *x));
