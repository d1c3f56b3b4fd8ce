/* Calls of Cluster.ReportUsage: a gateway or a trainer tells the scheduler what its process uses,
 * once a second, or every 3 s while it is idle. Used on the thread of the channel's loop. */
#pragma once

#include "rpc/client.h"

struct mr_usage_report {
    const char *kind; /* "gateway" or "trainer" */
    char node[64];
    mr_time at;         /* when a report may be due again */
    mr_time reported;   /* when the last report was sent; 0: never */
    mr_duration cpu_ns; /* processor time of the process, at the last report */
};

void mr_usage_report_init(struct mr_usage_report *r, const char *kind);
/* Sends a report if one is due. `channel` leads to the scheduler. Returns when to call again. */
mr_time mr_usage_report_turn(
    struct mr_usage_report *r, struct mr_rpc_channel *channel, mr_time now);
