/* Writes Perfetto's Trace message: a sequence of TracePackets. A worker is a process track, a row
 * of a slot is a thread track, and an attempt is a pair of slice events. Names are interned. The
 * second packet carries the names of all arguments. An operator's name stands in the packet that
 * needs it first. The number of an edge of the graph is a flow id. The flow begins in the slice of
 * the task that made the value, and ends in the consumer's slice.
 *
 * Times are ns since 1970 on both clocks of the trace, so that viewers can show the time of day. */
#include "base/alloc.h"
#include "base/protowire.h"
#include "cli/export/internal.h"

#include <stdio.h>

/* clang-format off */
enum { /* field numbers of the messages */
    TRACE_PACKET = 1,
    PACKET_CLOCK_SNAPSHOT = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12, PACKET_FLAGS = 13, PACKET_DESCRIPTOR = 60, PACKET_FIRST = 87,
    SNAPSHOT_CLOCKS = 1, CLOCK_ID = 1, CLOCK_TIME = 2,
    EVENT_CATEGORY = 3, EVENT_NOTE = 4, EVENT_TYPE = 9, EVENT_NAME = 10, EVENT_TRACK = 11,
    EVENT_VALUE = 44, EVENT_FLOW = 47, EVENT_FLOW_END = 48,
    INTERNED_CATEGORY = 1, INTERNED_EVENT = 2, INTERNED_NOTE = 3, NAME_ID = 1, NAME_TEXT = 2,
    NOTE_NAME = 1, NOTE_NUMBER = 3, NOTE_TEXT = 6,
    TRACK_ID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    PROCESS_PID = 1, PROCESS_NAME = 6, THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5,
    COUNTER_UNIT = 3,
};
enum { SLICE_BEGIN = 1, SLICE_END = 2, COUNTER = 4 };     /* TrackEvent.Type */
enum { STATE_CLEARED = 1, STATE_NEEDED = 2 };             /* TracePacket.SequenceFlags */
enum { UNIT_COUNT = 2, UNIT_BYTES = 3 };                  /* CounterDescriptor.Unit */
enum { CLOCK_REALTIME = 1, CLOCK_BOOTTIME = 6 };          /* BuiltinClock */
/* clang-format on */

#define SEQUENCE 1u
#define CATEGORY_TASK 1u
/* Number of the first curve's track. The tracks of workers and lanes have smaller numbers. */
#define CURVES ((uint64_t)1 << 32)

/* Numbers of interned argument names. Those of enum mr_export_note come first, each plus 1. */
#define NOTE_KEY (MR_EXPORT_NOTES + 1u)
#define NOTE_OUTCOME (MR_EXPORT_NOTES + 2u)
#define NOTE_HELD (MR_EXPORT_NOTES + 3u)

struct perfetto {
    struct mr_buf *out;
    uint32_t ops_known; /* operators whose names are interned */
    size_t packet;      /* where the packet that is being written begins */
};

static void packet_begin(struct perfetto *w, uint32_t flags)
{
    w->packet = mr_protowire_begin(w->out, TRACE_PACKET);
    mr_protowire_add_varint(w->out, PACKET_SEQUENCE, SEQUENCE);
    mr_protowire_add_varint(w->out, PACKET_FLAGS, flags);
}

static void packet_end(struct perfetto *w)
{
    mr_protowire_end(w->out, w->packet);
}

static void intern(struct mr_buf *b, uint32_t field, uint64_t id, struct mr_str text)
{
    size_t at = mr_protowire_begin(b, field);
    mr_protowire_add_varint(b, NAME_ID, id);
    mr_protowire_add_bytes(b, NAME_TEXT, text);
    mr_protowire_end(b, at);
}

static void intern_notes(struct mr_buf *b)
{
    for (unsigned i = 0; i < MR_EXPORT_NOTES; i++)
        intern(b, INTERNED_NOTE, i + 1, mr_str(mr_export_note_name(i)));
    intern(b, INTERNED_NOTE, NOTE_KEY, MR_STR("key"));
    intern(b, INTERNED_NOTE, NOTE_OUTCOME, MR_STR("outcome"));
    intern(b, INTERNED_NOTE, NOTE_HELD, MR_STR("held"));
}

static void clock_reading(struct mr_buf *b, uint32_t clock, uint64_t time)
{
    size_t at = mr_protowire_begin(b, SNAPSHOT_CLOCKS);
    mr_protowire_add_varint(b, CLOCK_ID, clock);
    mr_protowire_add_varint(b, CLOCK_TIME, time);
    mr_protowire_end(b, at);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static void worker(void *writer, uint32_t pid, struct mr_str name)
{
    struct perfetto *w = writer;
    packet_begin(w, STATE_NEEDED);
    size_t track = mr_protowire_begin(w->out, PACKET_DESCRIPTOR);
    mr_protowire_add_varint(w->out, TRACK_ID, pid);
    size_t process = mr_protowire_begin(w->out, TRACK_PROCESS);
    mr_protowire_add_varint(w->out, PROCESS_PID, pid);
    mr_protowire_add_bytes(w->out, PROCESS_NAME, name);
    mr_protowire_end(w->out, process);
    mr_protowire_end(w->out, track);
    packet_end(w);
}

static void lane(void *writer, uint32_t pid, const struct mr_export_lane *lane)
{
    struct perfetto *w = writer;
    char name[MR_EXPORT_LANE_NAME_MAX];
    mr_export_lane_name(lane, name);
    packet_begin(w, STATE_NEEDED);
    size_t track = mr_protowire_begin(w->out, PACKET_DESCRIPTOR);
    mr_protowire_add_varint(w->out, TRACK_ID, lane->tid);
    mr_protowire_add_varint(w->out, TRACK_PARENT, pid);
    size_t thread = mr_protowire_begin(w->out, TRACK_THREAD);
    mr_protowire_add_varint(w->out, THREAD_PID, pid);
    mr_protowire_add_varint(w->out, THREAD_TID, lane->tid);
    mr_protowire_add_bytes(w->out, THREAD_NAME, mr_str(name));
    mr_protowire_end(w->out, thread);
    mr_protowire_end(w->out, track);
    packet_end(w);
}

static void curve(void *writer, uint32_t number, const char *name, bool is_bytes)
{
    struct perfetto *w = writer;
    packet_begin(w, STATE_NEEDED);
    size_t track = mr_protowire_begin(w->out, PACKET_DESCRIPTOR);
    mr_protowire_add_varint(w->out, TRACK_ID, CURVES + number);
    mr_protowire_add_varint(w->out, TRACK_PARENT, MR_EXPORT_JOB_PID);
    mr_protowire_add_bytes(w->out, TRACK_NAME, mr_str(name));
    size_t counter = mr_protowire_begin(w->out, TRACK_COUNTER);
    mr_protowire_add_varint(w->out, COUNTER_UNIT, is_bytes ? UNIT_BYTES : UNIT_COUNT);
    mr_protowire_end(w->out, counter);
    mr_protowire_end(w->out, track);
    packet_end(w);
}

/* ---- events ---------------------------------------------------------------------------------- */

static size_t event_begin(struct perfetto *w, uint32_t type, uint64_t track)
{
    size_t event = mr_protowire_begin(w->out, PACKET_TRACK_EVENT);
    mr_protowire_add_varint(w->out, EVENT_TYPE, type);
    mr_protowire_add_varint(w->out, EVENT_TRACK, track);
    return event;
}

static void note_number(struct mr_buf *b, uint32_t name, uint64_t value)
{
    size_t at = mr_protowire_begin(b, EVENT_NOTE);
    mr_protowire_add_varint(b, NOTE_NAME, name);
    mr_protowire_add_varint(b, NOTE_NUMBER, value);
    mr_protowire_end(b, at);
}

static void note_text(struct mr_buf *b, uint32_t name, struct mr_str text)
{
    if (!text.n) return;
    size_t at = mr_protowire_begin(b, EVENT_NOTE);
    mr_protowire_add_varint(b, NOTE_NAME, name);
    mr_protowire_add_bytes(b, NOTE_TEXT, text);
    mr_protowire_end(b, at);
}

static void add_fixed64(struct mr_buf *b, uint32_t field, uint64_t v)
{
    mr_protowire_tag(b, field, MR_PROTOWIRE_FIXED64);
    mr_protowire_fixed64(b, v);
}

static void slice_begin(struct perfetto *w, const struct mr_export_slice *s)
{
    const struct mr_export_span *span = s->span;
    struct mr_buf *b = w->out;
    size_t event = event_begin(w, SLICE_BEGIN, s->lane->tid);
    mr_protowire_add_varint(b, EVENT_CATEGORY, CATEGORY_TASK);
    mr_protowire_add_varint(b, EVENT_NAME, (uint64_t)s->op + 1);
    note_text(b, NOTE_KEY, span->key);
    for (unsigned i = 0; i < MR_EXPORT_NOTES; i++) {
        uint64_t value = mr_export_note_value(span, i);
        if (value) note_number(b, i + 1, value);
    }
    note_text(b, NOTE_OUTCOME, mr_export_outcome(span));
    note_text(b, NOTE_HELD, mr_export_held(span));
    for (uint64_t edge = s->step->edges_from; edge < s->step->edges_until; edge++)
        add_fixed64(b, EVENT_FLOW, edge);
    for (uint32_t i = 0; i < s->step->sources_count; i++)
        add_fixed64(b, EVENT_FLOW_END, s->step->sources[i].edge);
    mr_protowire_end(b, event);
}

static void slice(void *writer, const struct mr_export_slice *s)
{
    struct perfetto *w = writer;
    packet_begin(w, STATE_NEEDED);
    mr_protowire_add_varint(w->out, PACKET_TIMESTAMP, s->span->started);
    if (s->op >= w->ops_known) {
        size_t names = mr_protowire_begin(w->out, PACKET_INTERNED);
        intern(w->out, INTERNED_EVENT, (uint64_t)s->op + 1, s->span->op);
        mr_protowire_end(w->out, names);
        w->ops_known = s->op + 1;
    }
    slice_begin(w, s);
    packet_end(w);
    packet_begin(w, STATE_NEEDED);
    mr_protowire_add_varint(w->out, PACKET_TIMESTAMP, MR_MAX(s->span->started, s->span->finished));
    mr_protowire_end(w->out, event_begin(w, SLICE_END, s->lane->tid));
    packet_end(w);
}

static void point(void *writer, uint32_t number, const char *name, uint64_t time, double value)
{
    struct perfetto *w = writer;
    uint64_t bits = 0;
    (void)name; /* the curve's track has the name */
    memcpy(&bits, &value, sizeof bits);
    packet_begin(w, STATE_NEEDED);
    mr_protowire_add_varint(w->out, PACKET_TIMESTAMP, time);
    size_t event = event_begin(w, COUNTER, CURVES + number);
    add_fixed64(w->out, EVENT_VALUE, bits);
    mr_protowire_end(w->out, event);
    packet_end(w);
}

static void *open(struct mr_buf *out, const struct mr_export_about *about)
{
    struct perfetto *w = mr_alloc(sizeof *w);
    char name[64];
    w->out = out;
    packet_begin(w, STATE_CLEARED);
    mr_protowire_add_varint(out, PACKET_FIRST, 1);
    size_t clocks = mr_protowire_begin(out, PACKET_CLOCK_SNAPSHOT);
    clock_reading(out, CLOCK_BOOTTIME, about->from_ns);
    clock_reading(out, CLOCK_REALTIME, about->from_ns);
    mr_protowire_end(out, clocks);
    packet_end(w);
    packet_begin(w, STATE_NEEDED);
    size_t names = mr_protowire_begin(out, PACKET_INTERNED);
    intern(out, INTERNED_CATEGORY, CATEGORY_TASK, MR_STR("task"));
    intern_notes(out);
    mr_protowire_end(out, names);
    packet_end(w);
    (void)snprintf(name, sizeof name, "job %.*s", MR_STR_ARG(about->job));
    worker(w, MR_EXPORT_JOB_PID, mr_str(name));
    return w;
}

static void close(void *writer)
{
    mr_release(writer);
}

const struct mr_export_format mr_export_perfetto = {.open = open,
    .worker = worker,
    .lane = lane,
    .slice = slice,
    .curve = curve,
    .point = point,
    .close = close};
