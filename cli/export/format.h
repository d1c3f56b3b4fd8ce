/* The functions of a file format. A format appends bytes to a buffer, which the export (export.h)
 * empties. A format does not keep pointers into a slice. */
#pragma once

#include "base/buf.h"
#include "cli/export/flows.h"
#include "cli/export/lanes.h"

struct mr_export_about { /* texts are lent until `close` */
    struct mr_str job;
    uint64_t from_ns; /* no span has an earlier time */
};

struct mr_export_slice {
    const struct mr_export_span *span;
    uint32_t op; /* number of the operator's name; a new name has the next number */
    const struct mr_export_lane *lane;
    const struct mr_export_lanes *lanes; /* `step` has numbers of these lanes */
    const struct mr_export_step *step;
};

struct mr_export_format {
    void *(*open)(struct mr_buf *out, const struct mr_export_about *about);
    void (*worker)(void *writer, uint32_t pid, struct mr_str name);
    void (*lane)(void *writer, uint32_t pid, const struct mr_export_lane *lane);
    void (*slice)(void *writer, const struct mr_export_slice *slice);
    /* `curve` begins a curve; `point` adds its points, in the order of their times. `number` is the
     * number of the curve, from 0. */
    void (*curve)(void *writer, uint32_t number, const char *name, bool is_bytes);
    void (*point)(void *writer, uint32_t number, const char *name, uint64_t time, double value);
    void (*close)(void *writer); /* frees the writer */
};

#define MR_EXPORT_JOB_PID 1u /* the curves belong to this process, which stands for the job */

/* Trace Event Format, JSON:
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU */
extern const struct mr_export_format mr_export_chrome;
/* Perfetto's protobuf: https://perfetto.dev/docs/reference/trace-packet-proto */
extern const struct mr_export_format mr_export_perfetto;
