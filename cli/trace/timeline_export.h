/* Writes the spans of a job as files for trace viewers (cli/export), for `millrace timeline` with
 * --chrome or --perfetto. Adds them to the image of `millrace report`. */
#pragma once

#include "cli/client/client.h"
#include "cli/export/raster.h"
#include "cli/trace/offline.h"

struct mr_timeline_export {
    const struct mr_client_options *client;
    const struct mr_offline_options *offline;
    const char *job;
    const char *chrome, *perfetto; /* paths of files; "-": stdout; NULL: no such file */
    struct mr_raster *raster;      /* the spans are added to this image; NULL: no image */
    uint64_t after_ns;             /* only spans that ended after this time */
    uint64_t spans_max;            /* 0: all */
};

int mr_timeline_export(const struct mr_timeline_export *k, struct mr_error *e);
