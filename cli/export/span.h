/* One attempt of a task, as input of the exports. The texts are lent for the call. Times are ns
 * since 1970; 0: not known. */
#pragma once

#include "base/str.h"

#include <stdint.h>

#define MR_EXPORT_NODE_NONE UINT32_MAX

/* The durations in the API's message TimelineSpan, without the CPU time. */
enum mr_export_part {
    MR_EXPORT_INPUT,
    MR_EXPORT_RESTORE,
    MR_EXPORT_OUTPUT,
    MR_EXPORT_ROOM,
    MR_EXPORT_LATE,
    MR_EXPORT_DELAYED,
    MR_EXPORT_FEED,
    MR_EXPORT_PULL,
    MR_EXPORT_PUSH,
    MR_EXPORT_WAIT,
    MR_EXPORT_PARTS,
};

struct mr_export_span {
    struct mr_str key, op, worker;
    struct mr_str outcome, held; /* names of the enums SpanOutcome and SpanHeld */
    uint32_t node; /* number of the task in its graph; MR_EXPORT_NODE_NONE: not known */
    uint32_t slot, attempt;
    bool failed;
    uint64_t ready, sent, received, inputs, started, finished, accounted;
    uint64_t cpu_ns, nbytes;
    uint64_t parts[MR_EXPORT_PARTS];
};

/* Returns the name of the part's field in TimelineSpan, for example "input_ns". */
const char *mr_export_part_name(enum mr_export_part part);
