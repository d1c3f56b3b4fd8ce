/* A block of samples has the head of a block of spans (internal.h) with KIND_SAMPLES. For
 * each sample it has one message in the wire format of Protocol Buffers. Values of 0 are left out,
 * so the sample of an idle process takes about 30 bytes. */
#include "store/meta/trace/samples.h"

#include "base/assert.h"
#include "base/protowire.h"
#include "base/utf8.h"
#include "store/meta/trace/internal.h"

#define MS 1000000u
#define KIB_SHIFT 10

enum { F_KIND = 1, F_PROCESS, F_NODE, F_AT, F_VALUES = 8 };

static const char *const kinds[] = {[MR_SAMPLE_WORKER] = "worker",
    [MR_SAMPLE_OBJECTSTORE] = "objectstore",
    [MR_SAMPLE_SCHEDULER] = "scheduler",
    [MR_SAMPLE_GATEWAY] = "gateway",
    [MR_SAMPLE_TRAINER] = "trainer"};

static const char *const values[MR_SAMPLE_VALUES] = {[MR_SAMPLE_MEMORY_BYTES] = "memory_bytes",
    [MR_SAMPLE_CPU_MILLI] = "cpu_milli",
    [MR_SAMPLE_RECEIVED] = "received_bytes",
    [MR_SAMPLE_SENT] = "sent_bytes",
    [MR_SAMPLE_SPILLED_BYTES] = "spilled_bytes",
    [MR_SAMPLE_WRITTEN] = "written_bytes",
    [MR_SAMPLE_QUEUED] = "queued"};

const char *mr_sample_kind_name(uint32_t kind)
{
    return kind < sizeof kinds / sizeof *kinds ? kinds[kind] : NULL;
}

const char *mr_sample_value_name(enum mr_sample_value value)
{
    return values[value];
}

static unsigned shift_of(uint32_t value)
{
    bool is_kib = value == MR_SAMPLE_MEMORY_BYTES || value == MR_SAMPLE_SPILLED_BYTES;
    return is_kib ? KIB_SHIFT : 0;
}

void mr_samples_begin(struct mr_buf *block)
{
    mr_trace__records_begin(block, KIND_SAMPLES, (mr_job_id){0});
}

static void add_text(struct mr_buf *block, uint32_t field, struct mr_str text)
{
    mr_assert(text.n <= MR_TRACE_NAME_BYTES_MAX);
    if (text.n) mr_protowire_add_bytes(block, field, text);
}

void mr_samples_add(struct mr_buf *block, const struct mr_sample *s)
{
    size_t began = mr_trace__record_begin(block);
    mr_protowire_add_varint(block, F_KIND, s->kind);
    add_text(block, F_PROCESS, s->process);
    add_text(block, F_NODE, s->node);
    mr_protowire_add_varint(block, F_AT, s->at / MS);
    for (uint32_t i = 0; i < MR_SAMPLE_VALUES; i++) {
        uint64_t v = s->values[i] >> shift_of(i);
        if (v) mr_protowire_add_varint(block, F_VALUES + i, v);
    }
    mr_trace__record_end(block, began, s->at);
}

void mr_samples_end(struct mr_buf *block, mr_job_id segment)
{
    struct head h;
    memcpy(&h, block->p, sizeof h);
    h.job = segment.v;
    if (!block->failed) memcpy(block->p, &h, sizeof h);
}

struct decoding {
    mr_sample_fn fn;
    void *ctx;
};

static int one_sample(void *ctx, struct mr_str bytes)
{
    const struct decoding *d = ctx;
    struct mr_protowire_reader r = mr_protowire_read(bytes);
    struct mr_protowire_field f;
    struct mr_sample s = {0};
    uint64_t kind = 0;
    int err;
    while (!(err = mr_protowire_next(&r, &f))) {
        bool is_bytes = f.type == MR_PROTOWIRE_BYTES;
        if (f.number == F_KIND) kind = f.value;
        if (f.number == F_PROCESS && is_bytes) s.process = f.bytes;
        if (f.number == F_NODE && is_bytes) s.node = f.bytes;
        if (f.number == F_AT) s.at = f.value * MS;
        if (f.number >= F_VALUES && f.number < F_VALUES + MR_SAMPLE_VALUES)
            s.values[f.number - F_VALUES] = f.value << shift_of(f.number - F_VALUES);
    }
    bool is_text = mr_utf8_is_valid(s.process) && mr_utf8_is_valid(s.node);
    if (err != MR_ENOENT || !is_text || !s.process.n) return MR_EFORMAT;
    if (kind > UINT32_MAX || !mr_sample_kind_name((uint32_t)kind))
        return MR_OK; /* a kind of a later version */
    s.kind = (enum mr_sample_kind)kind;
    d->fn(d->ctx, &s);
    return MR_OK;
}

int mr_samples_decode(struct mr_str block, mr_sample_fn fn, void *ctx)
{
    struct decoding d = {fn, ctx};
    return mr_trace__records_decode(block, KIND_SAMPLES, one_sample, &d);
}
