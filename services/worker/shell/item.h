/* The messages in the inbox of the network thread, which runs the worker's core. */
#pragma once

#include "services/worker/exec/executor.h"
#include "services/worker/exec/prefetch.h"

enum mr_item_kind {
    MR_ITEM_REPORT,
    MR_ITEM_FETCHED,
    MR_ITEM_SIGNAL,
    MR_ITEM_CONTINUED,
    MR_ITEM_LOGGED
};

struct mr_item { /* a message in the network thread's inbox */
    enum mr_item_kind kind;
    struct mr_run_report report;
    struct mr_fetched fetched;
    mr_time at; /* CONTINUED: when the process went on after a pause */
};
