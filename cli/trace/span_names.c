#include "cli/trace/span_names.h"

#include "base/defs.h"
#include "session/up.h"
#include "store/meta/trace/codec.h"

const char *mr_span_outcome_name(uint32_t outcome)
{
    static const char *const names[] = {[MR_OUTCOME_OK] = "SPAN_OUTCOME_OK",
        [MR_OUTCOME_ERROR] = "SPAN_OUTCOME_FAILED",
        [MR_OUTCOME_CANCELLED] = "SPAN_OUTCOME_CANCELLED",
        [MR_OUTCOME_TIMEOUT] = "SPAN_OUTCOME_TIMEOUT",
        [MR_OUTCOME_BAD_ARGUMENT] = "SPAN_OUTCOME_FAILED",
        [MR_OUTCOME_LOST_INPUT] = "SPAN_OUTCOME_RETURNED",
        [MR_OUTCOME_RETURNED] = "SPAN_OUTCOME_RETURNED",
        [MR_OUTCOME_USED_UP] = "SPAN_OUTCOME_OK",
        [MR_OUTCOME_NO_ROOM] = "SPAN_OUTCOME_RETURNED",
        [MR_OUTCOME_LOST] = "SPAN_OUTCOME_LOST"};
    return outcome < MR_ARRAY_LEN(names) ? names[outcome] : "SPAN_OUTCOME_UNSPECIFIED";
}

const char *mr_span_held_name(uint32_t held)
{
    static const char *const names[] = {[MR_TRACE_HELD_NOT] = "SPAN_HELD_UNSPECIFIED",
        [MR_TRACE_HELD_MEMORY] = "SPAN_HELD_MEMORY",
        [MR_TRACE_HELD_RESTRICTED] = "SPAN_HELD_RESTRICTED"};
    return names[held < MR_ARRAY_LEN(names) ? held : MR_TRACE_HELD_NOT];
}
