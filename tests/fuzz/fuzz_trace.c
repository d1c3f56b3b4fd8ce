/* Decodes blocks of spans, as from Redis or a file. The spans are encoded again and must decode to
 * the same spans. If bit 0 of the input's first byte is 1, the other bytes are a whole block. If
 * the bit is 0, the other bytes are only the spans. This fuzz target then puts a matching head
 * before the spans, so that mutations get past the check of the head. The same bytes are also
 * decoded as events and as samples. Inputs that begin with 'S' or 's' are sheets of blocks
 * (lib/tiles/sheet_bytes.h). */
#include "base/alloc.h"
#include "base/assert.h"
#include "store/meta/trace/codec.h"
#include "store/meta/trace/events.h"
#include "store/meta/trace/samples.h"
#include "tiles/sheet_bytes.h"

#include <string.h>

#define HEAD_BYTES 56
#define WIDTH 64u
/* The first byte of an input that is a sheet: all of it, or without magic number and check sum. */
#define WHOLE_SHEET 'S'
#define REST_OF_SHEET 's'

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
    struct mr_trace_encoder *encoder;
    uint64_t sum;
    uint32_t count;
    /* True: a time has passed 2^64 ns and wrapped. Such a time is not a whole number of ticks and
     * is not restored exactly. */
    bool wrapped;
};

static bool is_whole(uint64_t ns)
{
    return ns % MR_TRACE_TICK_NS == 0;
}

static void on_again(void *ctx, const struct mr_trace_span *s)
{
    struct seen *seen = ctx;
    seen->count++;
    seen->sum += s->index + s->ready * 3 + s->sent * 5 + s->started * 7 + s->finished * 11 +
                 s->accounted * 13 + s->cpu_ns * 17 + s->bytes * 19 + s->attempt + s->outcome +
                 s->slot + s->op.n + s->received * 23 + s->inputs * 29 + s->input_ns * 31 +
                 s->output_ns * 37 + s->late_ns * 41 + s->held + s->last_input * 43u +
                 s->delayed_ns * 47 + s->room_ns * 53 + s->training * 59 + s->restore_ns * 61;
}

static void on_span(void *ctx, const struct mr_trace_span *s)
{
    struct seen *seen = ctx;
    struct mr_trace_span copy = *s;
    char touched = 0;
    for (size_t i = 0; i < s->op.n; i++)
        touched ^= s->op.p[i];
    for (size_t i = 0; i < s->worker.n; i++)
        touched ^= s->worker.p[i];
    *(volatile char *)&touched = touched;
    if (!is_whole(s->ready) || !is_whole(s->sent) || !is_whole(s->started) ||
        !is_whole(s->finished) || !is_whole(s->accounted) || !is_whole(s->cpu_ns) ||
        !is_whole(s->received) || !is_whole(s->inputs) || !is_whole(s->input_ns) ||
        !is_whole(s->output_ns) || !is_whole(s->late_ns) || !is_whole(s->delayed_ns) ||
        !is_whole(s->room_ns) || !is_whole(s->restore_ns))
        seen->wrapped = true;
    if (mr_trace_encoder_add(seen->encoder, &copy))
        return; /* the buffer is full, because the encoding is longer than the input */
    on_again(seen, s);
}

static void on_event(void *ctx, const struct mr_trace_event *e)
{
    char touched = 0;
    for (size_t i = 0; i < e->name.n; i++)
        touched ^= e->name.p[i];
    *(volatile char *)&touched = touched;
    (void)ctx;
}

static void on_sample(void *ctx, const struct mr_sample *s)
{
    char touched = 0;
    for (size_t i = 0; i < s->process.n; i++)
        touched ^= s->process.p[i];
    for (size_t i = 0; i < s->node.n; i++)
        touched ^= s->node.p[i];
    *(volatile char *)&touched = touched;
    if (!mr_sample_kind_name(s->kind)) __builtin_trap();
    (void)ctx;
}

/* Decodes the bytes as a block of events, and as a block of samples. */
static void decode_others(unsigned char *block, size_t n)
{
    static const uint32_t kinds[] = {2, 16};
    for (size_t i = 0; i < MR_ARRAY_LEN(kinds); i++) {
        memcpy(block + 4, &kinds[i], sizeof kinds[i]);
        (void)mr_trace_events_decode(mr_str_of(block, n), on_event, NULL);
        (void)mr_samples_decode(mr_str_of(block, n), on_sample, NULL);
    }
}

struct drawing {
    struct mr_tile_sheet_head head;
    struct mr_tile_picture picture;
    uint32_t names;
};

static uint32_t sheet_name(void *ctx, struct mr_str name)
{
    struct drawing *d = ctx;
    (void)name;
    return d->names++;
}

static uint32_t sheet_lane(void *ctx, uint32_t worker, uint32_t slot)
{
    (void)ctx;
    (void)worker;
    return slot % 2;
}

static void sheet_piece(void *ctx, uint32_t lane, const struct mr_tile_time *t)
{
    struct drawing *d = ctx;
    uint64_t width = UINT64_C(1) << d->head.bits;
    mr_assert(t->from < t->until);
    mr_assert(t->ns <= t->until - t->from);
    mr_assert(t->from + width > d->head.from);
    mr_assert(t->until <= d->head.until + width);
    mr_tile_picture_add(&d->picture, lane, t);
}

/* Decodes a sheet. Each piece lies within the sheet, and can be drawn. */
static void one_sheet(const uint8_t *data, size_t n)
{
    static const unsigned char magic[] = {'m', 't', 'i', '1'};
    struct drawing d = {.names = 0};
    struct mr_tile_run runs[WIDTH];
    const struct mr_tile_sheet_fns fns = {.name = sheet_name,
        .worker = sheet_name,
        .lane = sheet_lane,
        .piece = sheet_piece,
        .ctx = &d};
    bool is_whole = data[0] == WHOLE_SHEET;
    size_t skip = is_whole ? 0 : MR_TILE_SHEET_SUMMED_AT;
    unsigned char *bytes = mr_alloc(n + skip);
    memcpy(bytes + skip, data + 1, n - 1);
    if (!is_whole) {
        uint64_t sum = mr_tile_sheet_sum(bytes + skip, n - 1);
        memcpy(bytes, magic, sizeof magic);
        memcpy(bytes + sizeof magic, &sum, sizeof sum);
    }
    struct mr_str sheet = mr_str_of(bytes, n - 1 + skip);
    if (!mr_tile_sheet_read(sheet, &d.head)) {
        uint64_t until = MR_MAX(d.head.until, d.head.from + WIDTH);
        mr_tile_picture_init(&d.picture, d.head.from, until, WIDTH, 2);
        (void)mr_tile_sheet_decode(sheet, &fns);
        for (uint32_t row = 0; row < 2; row++) {
            uint32_t width = 0, count = mr_tile_picture_runs(&d.picture, row, false, runs);
            for (uint32_t i = 0; i < count; i++)
                width += runs[i].length;
            mr_assert(width == WIDTH);
        }
        mr_tile_picture_fini(&d.picture);
    }
    mr_release(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n || n > (1 << 16)) return 0;
    if (data[0] == WHOLE_SHEET || data[0] == REST_OF_SHEET) {
        one_sheet(data, n);
        return 0;
    }
    struct seen seen = {.encoder = mr_trace_encoder_new()};
    size_t bytes = n - 1;
    unsigned char *block = mr_alloc(HEAD_BYTES + bytes);
    size_t block_bytes = bytes;
    if (data[0] & 1) {
        memcpy(block, data + 1, bytes);
    } else {
        uint32_t count = MR_MIN((uint32_t)(bytes / 3), (uint32_t)data[0] >> 1);
        const uint32_t magic =
            /* Magic number of this version, or of an earlier one. */
            data[0] & 2 ? (data[0] & 128 ? 0x3372746du : 0x3272746du) : 0x3172746du;
        const uint32_t head[4] = {magic, 1, count, (uint32_t)bytes};
        memcpy(block, head, sizeof head);
        memcpy(block + HEAD_BYTES, data + 1, bytes);
        block_bytes = HEAD_BYTES + bytes;
    }
    struct mr_trace_block head;
    mr_trace_encoder_begin(seen.encoder, (mr_job_id){1});
    (void)mr_trace_block_read(mr_str_of(block, block_bytes), &head);
    (void)mr_trace_decode(mr_str_of(block, block_bytes), on_span, &seen);
    if (block_bytes >= HEAD_BYTES) decode_others(block, block_bytes);
    if (seen.count) {
        struct seen again = {0};
        struct mr_str whole = mr_trace_encoder_end(seen.encoder);
        if (mr_trace_decode(whole, on_again, &again)) __builtin_trap();
        if (again.count != seen.count) __builtin_trap();
        if (!seen.wrapped && again.sum != seen.sum) __builtin_trap();
    }
    mr_release(block);
    mr_trace_encoder_free(&seen.encoder);
    return 0;
}
