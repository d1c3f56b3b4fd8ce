/* Runs one graph of bench/shapes.py on a cluster, as a client in a process of its own:
 *     shape_client SCHEDULER FILE ROUNDS [unfused]
 * FILE has the nodes and the values that the targets must have. Each round, the clock runs from the
 * first byte of the encoding until the last value is received and checked. The job is forgotten
 * after that. Every job has its own namespace, so no round finds the values of another round.
 * Prints JSON. */
#include "base/alloc.h"
#include "base/limits.h"
#include "base/pack.h"
#include "host/clock.h"
#include "rpc/util/pb.h"
#include "rpc/util/sync.h"

#include <millrace/v1/jobs.pb-c.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_NODES 32768u
#define CHUNK_INPUTS 262144u
#define CHUNK_ARGS ((size_t)2 << 20)
#define KEY_BYTES 12
#define FILE_BYTES_MAX ((size_t)1 << 30)
#define RAW_PACK UINT32_MAX

enum item_type { ITEM_NODE, ITEM_INT, ITEM_PACK };
enum value_type { VALUE_INT = 1, VALUE_FLOAT = 2 };

struct target {
    uint32_t node;
    enum value_type type;
    int64_t i;
    double f, tolerance;
};

struct shape {
    struct mr_buf bytes; /* contents of FILE */
    char **ops;
    uint32_t ops_count, nodes;
    size_t first; /* offset of the first node in `bytes` */
    struct target *target;
    uint32_t targets, inputs;
    uint32_t *target_of; /* index of the target, by node; UINT32_MAX: not a target */
};

struct client {
    struct mr_rpc_client *rpc;
    struct mr_pb_arena arena;
    struct mr_buf args, message;
    unsigned char *keys;
    uint32_t *key_bytes, *op, *args_bytes, *inputs_count, *inputs, *targets;
    bool unfused;
};

_Noreturn static void die(const char *what, const struct mr_error *e)
{
    (void)fprintf(stderr, "shape_client: %s%s%s\n", what, e ? ": " : "", e ? e->text : "");
    exit(1);
}

/* ---- the file, little endian ----------------------------------------------------------------- */

static const unsigned char *take(const struct shape *s, size_t *at, size_t n)
{
    if (n > s->bytes.n - *at) die("the file ends too soon", NULL);
    *at += n;
    return s->bytes.p + *at - n;
}

static uint32_t take_u32(const struct shape *s, size_t *at)
{
    uint32_t v;
    memcpy(&v, take(s, at, sizeof v), sizeof v);
    return v;
}

static void take_number(const struct shape *s, size_t *at, void *eight)
{
    memcpy(eight, take(s, at, 8), 8);
}

static struct mr_str take_bytes(const struct shape *s, size_t *at)
{
    uint32_t n = take_u32(s, at);
    return mr_str_of((const char *)take(s, at, n), n);
}

/* Moves `at` past one node; counts and checks the node's references. */
static void skip_node(struct shape *s, uint32_t node, size_t *at)
{
    if (take_u32(s, at) > s->ops_count) die("no such op", NULL);
    uint32_t items = take_u32(s, at);
    if (items == RAW_PACK) {
        (void)take_bytes(s, at);
        return;
    }
    for (uint32_t i = 0; i < items; i++) {
        int64_t number = 0;
        switch ((enum item_type) * take(s, at, 1)) {
        case ITEM_NODE:
            if (take_u32(s, at) >= node) die("an input that does not come before", NULL);
            s->inputs++;
            break;
        case ITEM_INT: take_number(s, at, &number); break;
        case ITEM_PACK: (void)take_bytes(s, at); break;
        }
    }
}

static void shape_read(struct shape *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    unsigned char piece[65536];
    size_t at = 0;
    if (!f) die(path, NULL);
    mr_buf_init(&s->bytes, FILE_BYTES_MAX);
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        mr_buf_add(&s->bytes, piece, n);
    (void)fclose(f);
    if (memcmp(take(s, &at, 8), "mrshape1", 8) != 0) die("not a shape", NULL);
    s->ops_count = take_u32(s, &at);
    s->ops = mr_alloc_array(s->ops_count, sizeof *s->ops);
    for (uint32_t i = 0; i < s->ops_count; i++) {
        struct mr_str op = take_bytes(s, &at);
        s->ops[i] = mr_alloc(op.n + 1);
        memcpy(s->ops[i], op.p, op.n);
    }
    s->nodes = take_u32(s, &at);
    s->first = at;
    for (uint32_t i = 0; i < s->nodes; i++)
        skip_node(s, i, &at);
    s->targets = take_u32(s, &at);
    s->target = mr_alloc_array(s->targets, sizeof *s->target);
    s->target_of = mr_alloc_array(s->nodes, sizeof *s->target_of);
    memset(s->target_of, 0xff, s->nodes * sizeof *s->target_of);
    for (uint32_t i = 0; i < s->targets; i++) {
        struct target *t = &s->target[i];
        t->node = take_u32(s, &at);
        if (t->node >= s->nodes) die("no such target", NULL);
        s->target_of[t->node] = i;
        t->type = *take(s, &at, 1);
        take_number(s, &at, t->type == VALUE_INT ? (void *)&t->i : (void *)&t->f);
        take_number(s, &at, &t->tolerance);
    }
}

/* ---- submitting ------------------------------------------------------------------------------ */

static void client_open(struct client *c, const char *address)
{
    c->rpc = mr_rpc_client_open(address, NULL);
    mr_pb_arena_init(&c->arena, (size_t)1 << 30);
    mr_buf_init(&c->args, (size_t)1 << 30);
    mr_buf_init(&c->message, MR_MESSAGE_BYTES_MAX);
    c->keys = mr_alloc((size_t)CHUNK_NODES * KEY_BYTES);
    c->key_bytes = mr_alloc_array(CHUNK_NODES, sizeof(uint32_t));
    c->op = mr_alloc_array(CHUNK_NODES, sizeof(uint32_t));
    c->args_bytes = mr_alloc_array(CHUNK_NODES, sizeof(uint32_t));
    c->inputs_count = mr_alloc_array(CHUNK_NODES, sizeof(uint32_t));
}

static void write_key(unsigned char key[KEY_BYTES], uint32_t node)
{
    memcpy(key, "task", 4);
    for (int i = KEY_BYTES - 1; i >= 4; i--, node /= 10)
        key[i] = (unsigned char)('0' + node % 10);
}

/* Writes the arguments of one node and the numbers of its input nodes into row `row` of the
 * message. */
static void write_node(struct client *c, const struct shape *s, Millrace__V1__SubmitColumns *m,
    uint32_t row, size_t *at)
{
    size_t before = c->args.n;
    size_t inputs = m->n_inputs;
    c->op[row] = take_u32(s, at);
    uint32_t items = take_u32(s, at);
    if (items == RAW_PACK) {
        struct mr_str pack = take_bytes(s, at);
        mr_buf_add(&c->args, pack.p, pack.n);
        items = 0;
    } else {
        mr_pack_list(&c->args, items);
    }
    for (uint32_t i = 0; i < items; i++) {
        int64_t number = 0;
        struct mr_str pack;
        switch ((enum item_type) * take(s, at, 1)) {
        case ITEM_NODE:
            mr_pack_input(&c->args, (uint32_t)(m->n_inputs - inputs));
            c->inputs[m->n_inputs++] = take_u32(s, at);
            break;
        case ITEM_INT:
            take_number(s, at, &number);
            mr_pack_int(&c->args, number);
            break;
        case ITEM_PACK:
            pack = take_bytes(s, at);
            mr_buf_add(&c->args, pack.p, pack.n);
            break;
        }
    }
    c->key_bytes[row] = KEY_BYTES;
    c->args_bytes[row] = (uint32_t)(c->args.n - before);
    c->inputs_count[row] = (uint32_t)(m->n_inputs - inputs);
}

static int send_chunk(struct client *c, const struct shape *s, struct mr_rpc_stream *stream,
    uint32_t *node, size_t *at)
{
    Millrace__V1__SubmitColumns m = MILLRACE__V1__SUBMIT_COLUMNS__INIT;
    Millrace__V1__JobOptions options = MILLRACE__V1__JOB_OPTIONS__INIT;
    uint32_t row = 0;
    bool first = !*node;
    mr_buf_clear(&c->args);
    if (first) {
        options.unfused = c->unfused;
        m.options = &options;
        m.n_ops = s->ops_count;
        m.ops = s->ops;
    }
    for (; *node < s->nodes && row < CHUNK_NODES && c->args.n < CHUNK_ARGS &&
           m.n_inputs < CHUNK_INPUTS;
         row++, ++*node) {
        write_key(c->keys + (size_t)row * KEY_BYTES, *node);
        write_node(c, s, &m, row, at);
    }
    if (*node == s->nodes) {
        for (uint32_t i = 0; i < s->targets; i++)
            c->targets[i] = s->target[i].node;
        m.all_targets = s->targets == s->nodes;
        m.n_targets = m.all_targets ? 0 : s->targets;
        m.targets = c->targets;
    }
    m.keys = (ProtobufCBinaryData){.len = (size_t)row * KEY_BYTES, .data = c->keys};
    m.args = (ProtobufCBinaryData){.len = c->args.n, .data = c->args.p};
    m.key_bytes = c->key_bytes;
    m.op = c->op;
    m.args_bytes = c->args_bytes;
    m.inputs_count = c->inputs_count;
    m.inputs = c->inputs;
    m.n_key_bytes = m.n_op = m.n_args_bytes = m.n_inputs_count = row;
    mr_buf_clear(&c->message);
    mr_pb_pack(&m.base, &c->message);
    return mr_rpc_stream_send(stream, mr_buf_str(&c->message));
}

static void submit(struct client *c, const struct shape *s, char id[64])
{
    struct mr_rpc_stream *stream =
        mr_rpc_stream_open(c->rpc, "/millrace.v1.Jobs/SubmitStream", NULL);
    struct mr_rpc_message *reply = NULL;
    struct mr_error e = {0};
    size_t at = s->first;
    int err = MR_OK;
    for (uint32_t node = 0; node < s->nodes && !err;)
        err = send_chunk(c, s, stream, &node, &at);
    if (!err) (void)mr_rpc_stream_half_close(stream);
    if (mr_rpc_stream_read(stream, MR_NEVER, &reply, &e)) die("submit", &e);
    mr_pb_arena_clear(&c->arena);
    const Millrace__V1__SubmitResponse *m = mr_pb_unpack(
        &millrace__v1__submit_response__descriptor, mr_rpc_message_str(reply), &c->arena, &e);
    if (!m) die("submit", &e);
    (void)snprintf(id, 64, "%s", m->id);
    mr_rpc_message_free(&reply);
    mr_rpc_stream_close(&stream);
}

/* ---- results --------------------------------------------------------------------------------- */

static bool is_right(const struct target *t, const struct mr_pack_item *v)
{
    if (t->type == VALUE_INT) return v->type == MR_PACK_INT && v->i == t->i;
    return v->type == MR_PACK_FLOAT && fabs(v->f - t->f) <= t->tolerance;
}

static uint32_t check_item(const Millrace__V1__ResultItem *m, const struct shape *s)
{
    size_t at = 0;
    if (m->n_errors) {
        struct mr_error e = {0};
        (void)snprintf(e.text, sizeof e.text, "%s", m->errors[0]->message);
        die(m->keys[m->errors[0]->row], &e);
    }
    for (size_t i = 0; i < m->n_keys; i++) {
        struct mr_pack_item v;
        struct mr_pack_reader r = mr_pack_read(mr_str_of(m->packs.data + at, m->pack_bytes[i]));
        uint64_t node = strtoull(m->keys[i] + 4, NULL, 10);
        at += m->pack_bytes[i];
        if (node >= s->nodes || s->target_of[node] == UINT32_MAX) die("a key not asked for", NULL);
        if (mr_pack_next(&r, &v) || !is_right(&s->target[s->target_of[node]], &v))
            die("a wrong value", NULL);
    }
    return (uint32_t)m->n_keys;
}

static void collect(struct client *c, const struct shape *s, const char *id)
{
    Millrace__V1__ResultsRequest q = MILLRACE__V1__RESULTS_REQUEST__INIT;
    struct mr_rpc_stream *stream = mr_rpc_stream_open(c->rpc, "/millrace.v1.Jobs/Results", NULL);
    struct mr_error e = {0};
    uint32_t seen = 0;
    q.id = (char *)(uintptr_t)id;
    q.wait_s = 600;
    mr_buf_clear(&c->message);
    mr_pb_pack(&q.base, &c->message);
    (void)mr_rpc_stream_send(stream, mr_buf_str(&c->message));
    (void)mr_rpc_stream_half_close(stream);
    for (;;) {
        struct mr_rpc_message *message = NULL;
        int err = mr_rpc_stream_read(stream, MR_NEVER, &message, &e);
        if (err == MR_ENOENT) break;
        if (err) die("results", &e);
        mr_pb_arena_clear(&c->arena);
        const Millrace__V1__ResultItem *m = mr_pb_unpack(
            &millrace__v1__result_item__descriptor, mr_rpc_message_str(message), &c->arena, &e);
        if (!m) die("results", &e);
        seen += check_item(m, s);
        mr_rpc_message_free(&message);
    }
    mr_rpc_stream_close(&stream);
    if (seen != s->targets) die("not as many values as targets", NULL);
}

static void forget(struct client *c, const char *id)
{
    Millrace__V1__ForgetJobRequest q = MILLRACE__V1__FORGET_JOB_REQUEST__INIT;
    struct mr_error e = {0};
    q.id = (char *)(uintptr_t)id;
    mr_buf_clear(&c->message);
    mr_pb_pack(&q.base, &c->message);
    if (mr_rpc_call_sync(
            c->rpc, "/millrace.v1.Jobs/Forget", mr_buf_str(&c->message), NULL, NULL, &e))
        die("forget", &e);
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5) die("usage: shape_client SCHEDULER FILE ROUNDS [unfused]", NULL);
    struct shape s = {0};
    struct client c = {.unfused = argc == 5 && !strcmp(argv[4], "unfused")};
    unsigned long rounds = strtoul(argv[3], NULL, 10);
    shape_read(&s, argv[2]);
    client_open(&c, argv[1]);
    c.inputs = mr_alloc_array(s.inputs + 1, sizeof *c.inputs);
    c.targets = mr_alloc_array(s.targets + 1, sizeof *c.targets);
    (void)printf("[");
    for (unsigned long i = 0; i < rounds; i++) {
        char id[64];
        mr_time begun = mr_clock_now();
        submit(&c, &s, id);
        mr_time accepted = mr_clock_now();
        collect(&c, &s, id);
        mr_time ended = mr_clock_now();
        (void)printf("%s{\"accepted_s\": %.9f, \"total_s\": %.9f}", i ? ", " : "",
            (double)(accepted - begun) / 1e9, (double)(ended - begun) / 1e9);
        forget(&c, id);
    }
    (void)printf("]\n");
    mr_rpc_client_close(&c.rpc);
    return 0;
}
