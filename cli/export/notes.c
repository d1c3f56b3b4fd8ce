/* The arguments of a slice. */
#include "cli/export/internal.h"

const char *mr_export_note_name(unsigned note)
{
    static const char *const names[] = {[MR_EXPORT_NOTE_ATTEMPT] = "attempt",
        [MR_EXPORT_NOTE_QUEUED] = "queued_ns",
        [MR_EXPORT_NOTE_CPU] = "cpu_ns",
        [MR_EXPORT_NOTE_BYTES] = "nbytes"};
    if (note < MR_EXPORT_NOTE_PARTS) return names[note];
    return mr_export_part_name((enum mr_export_part)(note - MR_EXPORT_NOTE_PARTS));
}

uint64_t mr_export_note_value(const struct mr_export_span *span, unsigned note)
{
    switch (note) {
    case MR_EXPORT_NOTE_ATTEMPT: return span->attempt;
    case MR_EXPORT_NOTE_QUEUED:
        return span->ready && span->ready < span->started ? span->started - span->ready : 0;
    case MR_EXPORT_NOTE_CPU: return span->cpu_ns;
    case MR_EXPORT_NOTE_BYTES: return span->nbytes;
    default: return span->parts[note - MR_EXPORT_NOTE_PARTS];
    }
}

/* Removes the name of the enum from the name of its value. */
static struct mr_str short_of(struct mr_str s, struct mr_str prefix)
{
    if (s.n < prefix.n || memcmp(s.p, prefix.p, prefix.n) != 0) return s;
    return mr_str_of(s.p + prefix.n, s.n - prefix.n);
}

struct mr_str mr_export_outcome(const struct mr_export_span *span)
{
    struct mr_str outcome = short_of(span->outcome, MR_STR("SPAN_OUTCOME_"));
    return mr_str_eq(outcome, MR_STR("OK")) ? MR_STR("") : outcome;
}

struct mr_str mr_export_held(const struct mr_export_span *span)
{
    struct mr_str held = short_of(span->held, MR_STR("SPAN_HELD_"));
    return mr_str_eq(held, MR_STR("UNSPECIFIED")) ? MR_STR("") : held;
}
