/* `millrace timeline JOB --chrome FILE --perfetto FILE`: writes the spans of a job as files for
 * viewers of traces (cli/export). */
#pragma once

#include "cli/client/client.h"
#include "cli/export/raster.h"
#include "cli/trace/offline.h"

struct mr_timeline_export {
    const struct mr_client_options *client;
    const struct mr_offline_options *offline;
    const char *job;
    const char *chrome, *perfetto; /* files; "-": stdout; NULL: not wanted */
    struct mr_raster *raster;      /* takes all spans; NULL: not wanted */
    uint64_t after_ns;             /* only spans that ended after this time */
    uint64_t spans_max;            /* 0: all */
};

int mr_timeline_export(const struct mr_timeline_export *k, struct mr_error *e);
