/* Writes the Trace Event Format as a JSON object. Times in this format are microseconds. They have
 * three decimals and count from `from_ns` of struct mr_export_about, because a reader's
 * floating-point numbers cannot hold nanoseconds since 1970.
 *
 * A flow event belongs to the slice around its time. So the arrow of a value begins 1 ns before the
 * end of the slice that made the value. It ends at the beginning of the consumer's slice. */
#include "base/alloc.h"
#include "cli/export/internal.h"

#include <stdio.h>

struct chrome {
    struct mr_buf *out;
    uint64_t from_ns;
    bool has_events;
};

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_u64(struct mr_buf *b, uint64_t v)
{
    char text[24];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    mr_buf_add(b, text + at, sizeof text - at);
}

static void add_micros(struct mr_buf *b, uint64_t ns)
{
    char decimals[4] = {
        '.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10), (char)('0' + ns % 10)};
    add_u64(b, ns / 1000);
    mr_buf_add(b, decimals, sizeof decimals);
}

static void add_quoted(struct mr_buf *b, struct mr_str s)
{
    static const char digits[] = "0123456789abcdef";
    mr_buf_add_byte(b, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\') mr_buf_add_byte(b, '\\');
        if (c >= 0x20) {
            mr_buf_add_byte(b, c);
            continue;
        }
        mr_buf_add_text(b, "\\u00");
        mr_buf_add_byte(b, (unsigned char)digits[c >> 4]);
        mr_buf_add_byte(b, (unsigned char)digits[c & 15]);
    }
    mr_buf_add_byte(b, '"');
}

static void add_number(struct mr_buf *b, const char *name, uint64_t v)
{
    mr_buf_add_text(b, name);
    add_u64(b, v);
}

static void add_time(struct chrome *c, uint64_t ns)
{
    mr_buf_add_text(c->out, ",\"ts\":");
    add_micros(c->out, ns > c->from_ns ? ns - c->from_ns : 0);
}

/* Begins an event. `phase`: the event's kind, for example "X". */
static void event_begin(struct chrome *c, const char *phase, struct mr_str name, uint32_t pid)
{
    mr_buf_add_text(c->out, c->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    c->has_events = true;
    mr_buf_add_text(c->out, phase);
    mr_buf_add_text(c->out, "\",\"name\":");
    add_quoted(c->out, name);
    add_number(c->out, ",\"pid\":", pid);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void name_thing(
    struct chrome *c, const char *what, uint32_t pid, uint32_t tid, struct mr_str name)
{
    event_begin(c, "M", mr_str(what), pid);
    add_number(c->out, ",\"tid\":", tid);
    mr_buf_add_text(c->out, ",\"args\":{\"name\":");
    add_quoted(c->out, name);
    mr_buf_add_text(c->out, "}}");
}

static void sort_thing(
    struct chrome *c, const char *what, uint32_t pid, uint32_t tid, uint32_t index)
{
    event_begin(c, "M", mr_str(what), pid);
    add_number(c->out, ",\"tid\":", tid);
    add_number(c->out, ",\"args\":{\"sort_index\":", index);
    mr_buf_add_text(c->out, "}}");
}

static void worker(void *writer, uint32_t pid, struct mr_str name)
{
    struct chrome *c = writer;
    name_thing(c, "process_name", pid, 0, name);
    sort_thing(c, "process_sort_index", pid, 0, pid);
}

static void lane(void *writer, uint32_t pid, const struct mr_export_lane *lane)
{
    char name[MR_EXPORT_LANE_NAME_MAX];
    mr_export_lane_name(lane, name);
    name_thing(writer, "thread_name", pid, lane->tid, mr_str(name));
    /* The rows of a slot stand together. */
    sort_thing(
        writer, "thread_sort_index", pid, lane->tid, lane->slot * 1000 + MR_MIN(lane->row, 999u));
}

static void *open(struct mr_buf *out, const struct mr_export_about *about)
{
    struct chrome *c = mr_alloc(sizeof *c);
    c->out = out;
    c->from_ns = about->from_ns;
    mr_buf_add_text(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"job\":");
    add_quoted(out, about->job);
    /* The number is quoted, because a floating-point number cannot hold it exactly. */
    mr_buf_add_text(out, ",\"begin_ns\":\"");
    add_u64(out, about->from_ns);
    mr_buf_add_text(out, "\"},\"traceEvents\":[");
    char name[64];
    (void)snprintf(name, sizeof name, "job %.*s", MR_STR_ARG(about->job));
    worker(c, MR_EXPORT_JOB_PID, mr_str(name));
    return c;
}

static void arguments(struct mr_buf *b, const struct mr_export_span *span)
{
    struct mr_str outcome = mr_export_outcome(span), held = mr_export_held(span);
    mr_buf_add_text(b, ",\"args\":{\"key\":");
    add_quoted(b, span->key);
    for (unsigned i = 0; i < MR_EXPORT_NOTES; i++) {
        uint64_t value = mr_export_note_value(span, i);
        if (!value) continue;
        mr_buf_add_text(b, ",\"");
        mr_buf_add_text(b, mr_export_note_name(i));
        add_number(b, "\":", value);
    }
    if (outcome.n) {
        mr_buf_add_text(b, ",\"outcome\":");
        add_quoted(b, outcome);
    }
    if (held.n) {
        mr_buf_add_text(b, ",\"held\":");
        add_quoted(b, held);
    }
    mr_buf_add_text(b, "}}");
}

/* Writes one end of an arrow. `phase`: "s" at the task that made the value, "f" at the consumer. */
static void flow(struct chrome *c, const char *phase, const struct mr_export_slice *s,
    const struct mr_export_source *from)
{
    bool is_start = phase[0] == 's';
    const struct mr_export_lane *at = is_start ? &s->lanes->lanes[from->lane] : s->lane;
    event_begin(c, phase, MR_STR("value"), s->lanes->workers[at->worker].pid);
    add_number(c->out, ",\"tid\":", at->tid);
    mr_buf_add_text(c->out, ",\"cat\":\"value\"");
    add_number(c->out, ",\"id\":", from->edge);
    add_time(c, is_start ? from->finished - 1 : s->span->started);
    mr_buf_add_text(c->out, is_start ? "}" : ",\"bp\":\"e\"}");
}

static void slice(void *writer, const struct mr_export_slice *s)
{
    struct chrome *c = writer;
    const struct mr_export_span *span = s->span;
    event_begin(c, "X", span->op, s->lanes->workers[s->lane->worker].pid);
    add_number(c->out, ",\"tid\":", s->lane->tid);
    mr_buf_add_text(c->out, ",\"cat\":\"task\"");
    add_time(c, span->started);
    mr_buf_add_text(c->out, ",\"dur\":");
    add_micros(c->out, span->finished > span->started ? span->finished - span->started : 0);
    if (span->failed) mr_buf_add_text(c->out, ",\"cname\":\"terrible\"");
    arguments(c->out, span);
    for (uint32_t i = 0; i < s->step->sources_count; i++) {
        flow(c, "s", s, &s->step->sources[i]);
        flow(c, "f", s, &s->step->sources[i]);
    }
}

static void curve(void *writer, uint32_t number, const char *name, bool is_bytes)
{
    (void)writer; /* in this format each point carries the curve's name */
    (void)number;
    (void)name;
    (void)is_bytes;
}

static void point(void *writer, uint32_t number, const char *name, uint64_t time, double value)
{
    struct chrome *c = writer;
    (void)number;
    event_begin(c, "C", mr_str(name), MR_EXPORT_JOB_PID);
    add_time(c, time);
    mr_buf_printf(c->out, ",\"args\":{\"value\":%.3f}}", value);
}

static void close(void *writer)
{
    struct chrome *c = writer;
    mr_buf_add_text(c->out, "\n]}\n");
    mr_release(c);
}

const struct mr_export_format mr_export_chrome = {.open = open,
    .worker = worker,
    .lane = lane,
    .slice = slice,
    .curve = curve,
    .point = point,
    .close = close};
