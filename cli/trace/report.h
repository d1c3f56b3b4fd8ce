/* A report about a job as one HTML page that needs no other file, no network and no script. */
#pragma once

#include "base/buf.h"
#include "cli/export/raster.h"

#include <yyjson.h>

/* Appends the page. `profile`: a ProfileResponse of the API. `raster`: the timeline from the
 * profile's `from_ns` to its `until_ns`. */
void mr_report_write(
    const char *job, yyjson_val *profile, const struct mr_raster *raster, struct mr_buf *out);
