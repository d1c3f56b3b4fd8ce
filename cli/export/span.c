/* The names of the parts of a span. */
#include "cli/export/span.h"

const char *mr_export_part_name(enum mr_export_part part)
{
    static const char *const names[] = {[MR_EXPORT_INPUT] = "input_ns",
        [MR_EXPORT_RESTORE] = "restore_ns",
        [MR_EXPORT_OUTPUT] = "output_ns",
        [MR_EXPORT_ROOM] = "room_ns",
        [MR_EXPORT_LATE] = "late_ns",
        [MR_EXPORT_DELAYED] = "delayed_ns",
        [MR_EXPORT_FEED] = "feed_ns",
        [MR_EXPORT_PULL] = "pull_ns",
        [MR_EXPORT_PUSH] = "push_ns",
        [MR_EXPORT_WAIT] = "wait_ns"};
    return names[part];
}
