/* Decodes the messages of a scheduler to a worker into events of a real worker core, which checks
 * its invariants. The input is messages, each after its length in two bytes. Strands, which are
 * lists of tasks that one executor runs in order, end at once; fetches succeed or fail. Each
 * message is also decoded as a message of a worker. An accepted message of either direction is
 * encoded and must decode to the same message again. */
#include "base/alloc.h"
#include "base/assert.h"
#include "rpc/util/pb.h"
#include "services/worker/core/core.h"
#include "session/decode.h"
#include "session/encode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY_MAX ((size_t)8 << 20)

static const struct mr_worker_op ops[] = {
    {.name = MR_STR_INIT("inc"), .cost_ns = 200},
    {.name = MR_STR_INIT("ref"), .flags = MR_WORKER_OP_BY_REFERENCE},
    {.name = MR_STR_INIT("role"), .flags = MR_WORKER_OP_LONG},
};

struct fuzz {
    struct mr_worker *w;
    struct mr_worker_effects fx;
    mr_time now;
    uint32_t events;
};

static void *take(void *arena, size_t bytes)
{
    return mr_pb_arena_take(arena, bytes);
}

static void step(struct fuzz *f, const struct mr_worker_event *ev)
{
    mr_worker_step(f->w, f->now, ev, &f->fx);
    mr_worker_check(f->w);
    f->events++;
}

static void end_strand(struct fuzz *f, struct mr_strand *s)
{
    static const char one = 1;
    for (uint32_t i = 0; i < s->count; i++) {
        struct mr_strand_item *item = &s->items[i];
        item->result = (struct mr_strand_result){.end = MR_STRAND_DONE, .started_ns = f->now};
        if (item->want_object) {
            item->result.object = (mr_object_id){9, item->index + 1};
            item->result.object_bytes = 4096;
        } else {
            item->result.pack = mr_str_of(&one, 1);
        }
        if (item->inputs_count && item->inputs[0].kind == MR_STRAND_OBJECT && item->index % 3 == 0)
            item->result = (struct mr_strand_result){.end = MR_STRAND_INPUT_GONE};
        if (item->index % 7 == 6)
            item->result = (struct mr_strand_result){.end = MR_STRAND_FAILED, .code = MR_EUNKNOWN};
        for (uint32_t k = 0; k < item->inputs_count; k++) {
            const struct mr_strand_input *in = &item->inputs[k];
            if (in->kind == MR_STRAND_ITEM && s->items[in->item].result.end != MR_STRAND_DONE)
                item->result = (struct mr_strand_result){.end = MR_STRAND_SKIPPED};
        }
    }
    struct mr_worker_event ev = {.kind = MR_WORKER_REPORT, .report = {s->id, s->count, true}};
    step(f, &ev);
}

static void perform(struct fuzz *f)
{
    struct mr_worker_effects fx = f->fx;
    f->fx = (struct mr_worker_effects){0};
    for (uint32_t i = 0; i < fx.count; i++) {
        const struct mr_worker_effect *e = &fx.p[i];
        struct mr_worker_event ev = {.kind = MR_WORKER_FETCHED};
        if (e->kind == MR_WORKER_START) end_strand(f, e->strand);
        /* TAKE comes too late: all tasks of the strand have begun, so CUT takes none off it */
        if (e->kind == MR_WORKER_TAKE) {
            ev.kind = MR_WORKER_CUT;
            ev.cut.strand = e->item.strand;
            ev.cut.count = UINT32_MAX;
            step(f, &ev);
        }
        if (e->kind != MR_WORKER_FETCH) continue;
        ev.fetched.value = e->object.value;
        ev.fetched.serial = e->object.serial;
        ev.fetched.err = e->object.object.number % 2 ? MR_ELOST : MR_OK;
        step(f, &ev);
    }
    mr_worker_effects_fini(&fx);
}

static void turns(struct fuzz *f)
{
    for (int i = 0; i < 4; i++) {
        struct mr_worker_event ev = {.kind = MR_WORKER_TURN, .turn = {.may_send = true}};
        f->now += MR_MS;
        step(f, &ev);
        perform(f);
    }
}

static void connect(struct fuzz *f)
{
    static const struct mr_str names[] = {
        MR_STR_INIT("inc"), MR_STR_INIT("ref"), MR_STR_INIT("role"), MR_STR_INIT("?")};
    static const struct mr_ws_node nodes[] = {
        {MR_STR_INIT("unix:a"), {7}}, {MR_STR_INIT("unix:b"), {8}}};
    struct mr_ws_registered reg = {.incarnation = 1, .epoch = 1, .heartbeat_ns = MR_SECOND};
    struct mr_ws_down down = {
        .registered = &reg, .ops = names, .ops_count = 4, .nodes = nodes, .nodes_count = 2};
    struct mr_worker_event ev = {.kind = MR_WORKER_CONNECTED};
    turns(f);
    step(f, &ev);
    turns(f);
    ev = (struct mr_worker_event){.kind = MR_WORKER_MESSAGE, .message = &down};
    step(f, &ev);
}

/* Decodes `bytes` and appends the message, encoded again, to `out`. Returns false if the decoder
 * refuses the message. */
static bool pass(bool is_down, struct mr_str bytes, struct mr_buf *out)
{
    struct mr_pb_arena arena;
    mr_pb_arena_init(&arena, MEMORY_MAX);
    const struct mr_ws_memory memory = {take, &arena, MEMORY_MAX};
    struct mr_ws_down down;
    struct mr_ws_up up;
    struct mr_error e;
    int err = is_down ? mr_ws_decode_down(bytes, &memory, &down, &e)
                      : mr_ws_decode_up(bytes, &memory, &up, &e);
    if (!err && is_down) mr_ws_encode_down(&down, out);
    if (!err && !is_down) mr_ws_encode_up(&up, out);
    mr_pb_arena_fini(&arena);
    return !err;
}

static void round_trip(bool is_down, struct mr_str bytes)
{
    struct mr_buf once, twice;
    mr_buf_init(&once, 8 * MEMORY_MAX);
    mr_buf_init(&twice, 8 * MEMORY_MAX);
    /* The encoder escapes a text that is not UTF-8, and so makes it longer. The text may then be
     * longer than the second pass allows. */
    if (pass(is_down, bytes, &once) && pass(is_down, mr_buf_str(&once), &twice))
        mr_assert(mr_str_eq(mr_buf_str(&once), mr_buf_str(&twice)));
    mr_buf_fini(&once);
    mr_buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_worker_config c = {.slots = 2,
        .tasks_max = 256,
        .values_max = 1024,
        .outbox_max = 512,
        .bytes_max = 1 << 20,
        .prefetch_bytes = 1 << 20,
        .store = {7},
        .ops = ops,
        .ops_count = MR_ARRAY_LEN(ops)};
    struct fuzz f = {.w = mr_worker_new(&c), .now = MR_SECOND};
    struct mr_pb_arena arena;
    mr_pb_arena_init(&arena, MEMORY_MAX);
    const struct mr_ws_memory memory = {take, &arena, arena.bytes_max};
    connect(&f);
    while (size >= 2) {
        size_t n = (size_t)data[0] << 8 | data[1];
        data += 2;
        size -= 2;
        n = MR_MIN(n, size);
        struct mr_ws_down down;
        struct mr_error e;
        mr_pb_arena_clear(&arena);
        round_trip(true, mr_str_of(data, n));
        round_trip(false, mr_str_of(data, n));
        if (!mr_ws_decode_down(mr_str_of(data, n), &memory, &down, &e)) {
            struct mr_worker_event ev = {.kind = MR_WORKER_MESSAGE, .message = &down};
            step(&f, &ev);
            turns(&f);
        }
        data += n;
        size -= n;
    }
    mr_pb_arena_fini(&arena);
    mr_worker_effects_fini(&f.fx);
    mr_worker_free(&f.w);
    return 0;
}
