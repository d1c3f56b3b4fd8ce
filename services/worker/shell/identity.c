/* Fills Register with facts of the process, and with its operators and their documentation. */
#include "services/worker/shell/identity.h"

#include "base/assert.h"
#include "base/limits.h"
#include "host/config/help.h"
#include "ops/describe.h"

/* The arena's limit is far above what a process can register, so reaching the limit is a bug. */
static void *take(struct mr_pb_arena *a, size_t bytes)
{
    void *p = mr_pb_arena_take(a, bytes);
    mr_assert(p);
    return p;
}

static void json_text(struct mr_buf *out, struct mr_str s)
{
    mr_buf_add_byte(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c == '"' || c == '\\') {
            mr_buf_printf(out, "\\u%04x", c);
        } else {
            mr_buf_add_byte(out, c);
        }
    }
    mr_buf_add_byte(out, '"');
}

/* Writes an OpInfo of cluster.proto as JSON, for an operator that the scheduler may not know. */
static void op_info(const struct mr_op_desc *op, struct mr_buf *out)
{
    mr_buf_add_text(out, "{\"name\":");
    json_text(out, mr_str(op->name));
    mr_buf_add_text(out, ",\"summary\":");
    json_text(out, mr_str(op->summary ? op->summary : ""));
    mr_buf_add_text(out, ",\"returns\":");
    json_text(out, mr_str(op->result ? op->result : ""));
    mr_buf_printf(out,
        ",\"runtime\":\"native\",\"variadic\":%s,\"deterministic\":%s,\"by_reference\":%s,"
        "\"parameters\":[",
        op->flags & MR_OP_VARIADIC ? "true" : "false",
        op->flags & MR_OP_DETERMINISTIC ? "true" : "false",
        op->flags & MR_OP_BY_REFERENCE ? "true" : "false");
    for (uint32_t i = 0; i < op->params_count; i++) {
        const struct mr_op_param *p = &op->params[i];
        struct mr_buf words;
        mr_buf_init(&words, 4096);
        mr_op_takes_words(p->takes, &words);
        mr_buf_add_text(out, i ? ",{\"name\":" : "{\"name\":");
        json_text(out, mr_str(p->name));
        mr_buf_add_text(out, ",\"type\":");
        json_text(out, mr_buf_str(&words));
        mr_buf_add_text(out, ",\"doc\":");
        json_text(out, mr_str(p->doc ? p->doc : ""));
        mr_buf_printf(out, ",\"required\":%s", p->fallback ? "false" : "true");
        if (p->fallback) {
            mr_buf_add_text(out, ",\"default_json\":");
            json_text(out, mr_str(p->fallback));
        }
        mr_buf_add_text(out, "}");
        mr_buf_fini(&words);
    }
    mr_buf_add_text(out, "]}");
}

static struct mr_ws_operator operator_of(
    struct mr_pb_arena *a, const struct mr_worker_identity *id, const struct mr_op_desc *op)
{
    struct mr_ws_operator row = {.name = mr_str(op->name),
        .args_min = mr_op_args_min(op),
        .args_max = mr_op_args_max(op),
        .deterministic = (op->flags & MR_OP_DETERMINISTIC) != 0,
        .by_reference = (op->flags & MR_OP_BY_REFERENCE) != 0,
        .passes = (op->flags & MR_OP_PASSES) != 0,
        .long_running = (op->flags & MR_OP_LONG_RUNNING) != 0,
        .cost_ns = op->cost_ns};
    if (mr_registry_find(id->builtin, row.name)) return row;
    struct mr_buf json;
    mr_buf_init(&json, (size_t)1 << 20);
    op_info(op, &json);
    char *text = take(a, json.n);
    memcpy(text, json.p, json.n);
    row.info_json = mr_str_of(text, json.n);
    mr_buf_fini(&json);
    return row;
}

void mr_worker_identity_fill(
    const struct mr_worker_identity *id, struct mr_pb_arena *a, struct mr_ws_register *out)
{
    uint32_t n = mr_registry_count(id->ops);
    struct mr_ws_operator *ops = take(a, n * sizeof *ops);
    for (uint32_t i = 0; i < n; i++)
        ops[i] = operator_of(a, id, mr_registry_at(id->ops, i));
    out->ops = ops;
    out->ops_count = n;
    out->protocol_version = MR_PROTOCOL_VERSION;
    out->layout_version = MR_LAYOUT_VERSION;
    out->name = mr_str(id->name);
    out->node = mr_str(id->node);
    out->store = id->store.v;
    out->store_address = mr_str(id->store_address);
    out->address = mr_str(id->address);
    out->version = mr_str(mr_version());
    out->slots = id->slots;
    out->memory_bytes = id->memory_bytes;
    out->pid = id->pid;
    out->processors = id->processors;
    out->began_ns = id->began;
    out->resources = id->resources;
    out->resources_count = id->resources_count;
    out->runtimes = id->runtimes;
    out->runtimes_count = id->runtimes_count;
    out->has_suspects = id->knows_suspects;
    if (id->knows_suspects) out->suspects = id->suspects;
}
