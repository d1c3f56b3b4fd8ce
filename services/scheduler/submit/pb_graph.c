/* Functions here recurse over arguments. Unpacking has bounded the depth (MR_DEPTH_MAX). */
#include "services/scheduler/submit/pb_graph.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/pack.h"
#include "graph/build/unroll.h"
#include "graph/suggest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct mr_str text_of(const char *s)
{
    return mr_str(s ? s : "");
}

static mr_duration seconds(double s)
{
    return (mr_duration)llround(s * 1e9);
}

static int check_seconds(double s, const char *field, struct mr_error *e)
{
    if (s >= 0 && s <= 1e9) return MR_OK;
    return mr_fail(e, MR_EINVAL, "%s: expected 0 to 1e9 seconds, not %g", field, s);
}

int mr_pb_job_options(struct mr_builder *b, const Millrace__V1__JobOptions *m,
    const char *request_id, struct mr_error *e)
{
    struct mr_job_options o = {.request_id = text_of(request_id)};
    if (!m) return mr_builder_job(b, &o, e);
    int err = check_seconds(m->deadline_s, "options.deadline_s", e);
    if (err) return err;
    if (m->n_labels > MR_LABELS_MAX)
        return mr_fail(e, MR_ELIMIT, "options.labels: at most %d", MR_LABELS_MAX);
    struct mr_graph_label labels[MR_LABELS_MAX];
    for (size_t i = 0; i < m->n_labels; i++)
        labels[i] =
            (struct mr_graph_label){text_of(m->labels[i]->key), text_of(m->labels[i]->value)};
    o.name = text_of(m->name);
    o.name_space = text_of(m->namespace_);
    o.priority = m->priority;
    o.deadline = seconds(m->deadline_s);
    o.labels = labels;
    o.labels_count = (uint32_t)m->n_labels;
    o.on_error = m->on_error == MILLRACE__V1__ON_ERROR__ON_ERROR_CONTINUE ? MR_ON_ERROR_CONTINUE
                                                                          : MR_ON_ERROR_STOP;
    o.unfused = m->unfused;
    return mr_builder_job(b, &o, e);
}

int mr_pb_task_options(
    struct mr_builder *b, uint32_t node, const Millrace__V1__TaskOptions *m, struct mr_error *e)
{
    if (!m) return MR_OK;
    struct mr_task_options o = {.pure = true};
    struct mr_graph_resource resources[MR_RESOURCES_MAX];
    int err = check_seconds(m->timeout_s, "options.timeout_s", e);
    if (err) return err;
    if (m->n_resources > MR_RESOURCES_MAX)
        return mr_fail(e, MR_ELIMIT, "options.resources: at most %d kinds", MR_RESOURCES_MAX);
    for (size_t i = 0; i < m->n_resources; i++) {
        double amount = m->resources[i]->value;
        if (!(amount >= 0 && amount <= 1e12))
            return mr_fail(e, MR_EINVAL, "options.resources: \"%s\" is not between 0 and 1e12",
                m->resources[i]->key);
        resources[i] = (struct mr_graph_resource){
            text_of(m->resources[i]->key), (uint64_t)llround(amount * 1e6)};
    }
    struct mr_str *workers = mr_alloc_array(m->n_workers, sizeof *workers);
    for (size_t i = 0; i < m->n_workers; i++)
        workers[i] = text_of(m->workers[i]);
    o.retries = m->retries;
    o.priority = m->priority;
    o.timeout = seconds(m->timeout_s);
    o.workers = workers;
    o.workers_count = (uint32_t)m->n_workers;
    o.allow_other_workers = m->allow_other_workers;
    o.resources = resources;
    o.resources_count = (uint32_t)m->n_resources;
    o.pure = !m->impure;
    o.persist_name = text_of(m->persist_name);
    o.persist = m->persist || o.persist_name.n;
    o.long_running = m->long_running;
    if (o.retries) o.given |= MR_OPTION_RETRIES;
    if (o.priority) o.given |= MR_OPTION_PRIORITY;
    if (o.timeout) o.given |= MR_OPTION_TIMEOUT;
    if (o.workers_count) o.given |= MR_OPTION_WORKERS;
    if (o.allow_other_workers) o.given |= MR_OPTION_ALLOW_OTHER_WORKERS;
    if (o.resources_count) o.given |= MR_OPTION_RESOURCES;
    if (!o.pure) o.given |= MR_OPTION_PURE;
    if (o.persist) o.given |= MR_OPTION_PERSIST;
    if (o.long_running) o.given |= MR_OPTION_LONG_RUNNING;
    err = o.given ? mr_builder_options(b, node, &o, e) : MR_OK;
    mr_release(workers);
    return err;
}

static int add_task(
    struct mr_builder *b, uint32_t node, const Millrace__V1__Task *m, struct mr_error *e);

static int add_object(struct mr_builder *b, const char *text, struct mr_error *e)
{
    mr_object_id id;
    uint32_t node = 0;
    if (mr_object_id_parse(text_of(text), &id))
        return mr_fail(e, MR_EINVAL, "object \"%s\": expected 32 hexadecimal digits", text);
    int err = mr_builder_object_node(b, id, &node, e);
    return err ? err : mr_builder_input(b, node, e);
}

static int add_name(struct mr_builder *b, const char *text, struct mr_error *e)
{
    uint32_t node = 0;
    int err = mr_builder_name_node(b, text_of(text), &node, e);
    return err ? err : mr_builder_input(b, node, e);
}

static int add_ref(struct mr_builder *b, const char *text, struct mr_error *e)
{
    uint32_t node = 0;
    int err = mr_builder_ref(b, text_of(text), &node, e);
    return err ? err : mr_builder_input(b, node, e);
}

/* Adds a nested task as a node. If the nested task names no key, its key is made from the key of
 * the enclosing task. */
static int add_nested(
    struct mr_builder *b, uint32_t parent, const Millrace__V1__Task *m, struct mr_error *e)
{
    uint32_t node = 0;
    bool named = m->key && m->key[0];
    int err = named ? mr_builder_own(b, text_of(m->key), &node, e)
                    : mr_builder_node_under(b, parent, &node, e);
    if (!err) err = add_task(b, node, m, e);
    return err ? err : mr_builder_input(b, node, e);
}

static int add_pack(struct mr_builder *b, const ProtobufCBinaryData *pack, struct mr_error *e)
{
    struct mr_str bytes = mr_str_of(pack->data, pack->len);
    if (pack->len > MR_LITERAL_BYTES_MAX)
        return mr_fail(
            e, MR_ETOOBIG, "a literal of %zu bytes, at most %zu", pack->len, MR_LITERAL_BYTES_MAX);
    int err = mr_pack_check(bytes, 0, e);
    if (!err) mr_buf_add_str(mr_builder_args(b), bytes);
    return err;
}

static int add_argument(
    struct mr_builder *b, uint32_t node, const Millrace__V1__Argument *m, struct mr_error *e)
{
    int err = MR_OK;
    switch (m->kind_case) {
    case MILLRACE__V1__ARGUMENT__KIND_PACK: return add_pack(b, &m->pack, e);
    case MILLRACE__V1__ARGUMENT__KIND_TEXT:
        mr_pack_text(mr_builder_args(b), text_of(m->text));
        return MR_OK;
    case MILLRACE__V1__ARGUMENT__KIND_INTEGER:
        mr_pack_int(mr_builder_args(b), m->integer);
        return MR_OK;
    case MILLRACE__V1__ARGUMENT__KIND_NUMBER:
        mr_pack_float(mr_builder_args(b), m->number);
        return MR_OK;
    case MILLRACE__V1__ARGUMENT__KIND_BOOLEAN:
        mr_pack_bool(mr_builder_args(b), m->boolean);
        return MR_OK;
    case MILLRACE__V1__ARGUMENT__KIND_REF: return add_ref(b, m->ref, e);
    case MILLRACE__V1__ARGUMENT__KIND_OBJECT: return add_object(b, m->object, e);
    case MILLRACE__V1__ARGUMENT__KIND_NAME: return add_name(b, m->name, e);
    case MILLRACE__V1__ARGUMENT__KIND_LIST:
        mr_pack_list(mr_builder_args(b), (uint32_t)m->list->n_items);
        for (size_t i = 0; i < m->list->n_items && !err; i++)
            err = add_argument(b, node, m->list->items[i], e);
        return err;
    case MILLRACE__V1__ARGUMENT__KIND_DICT:
        mr_pack_map(mr_builder_args(b), (uint32_t)m->dict->n_entries);
        for (size_t i = 0; i < m->dict->n_entries && !err; i++) {
            mr_pack_text(mr_builder_args(b), text_of(m->dict->entries[i]->key));
            if (!m->dict->entries[i]->value)
                return mr_fail(
                    e, MR_EINVAL, "dict entry \"%s\" has no value", m->dict->entries[i]->key);
            err = add_argument(b, node, m->dict->entries[i]->value, e);
        }
        return err;
    case MILLRACE__V1__ARGUMENT__KIND_TASK: return add_nested(b, node, m->task, e);
    case MILLRACE__V1__ARGUMENT__KIND__NOT_SET:
    case _MILLRACE__V1__ARGUMENT__KIND__CASE_IS_INT_SIZE: break;
    }
    return mr_fail(e, MR_EINVAL, "an argument without a kind");
}

static int by_name(const void *a, const void *b)
{
    const Millrace__V1__Task__KwargsEntry *const *x = a;
    const Millrace__V1__Task__KwargsEntry *const *y = b;
    return mr_str_cmp(text_of((*x)->key), text_of((*y)->key));
}

static int add_call(
    struct mr_builder *b, uint32_t node, const Millrace__V1__Task *m, struct mr_error *e)
{
    int err = mr_builder_task(b, node, text_of(m->op), e);
    if (err) return err;
    if (m->n_kwargs) {
        qsort(m->kwargs, m->n_kwargs, sizeof *m->kwargs, by_name);
        mr_pack_map(mr_builder_args(b), (uint32_t)m->n_kwargs + 1);
        mr_pack_text(mr_builder_args(b), MR_STR(""));
    }
    mr_pack_list(mr_builder_args(b), (uint32_t)m->n_args);
    for (size_t i = 0; i < m->n_args && !err; i++)
        err = add_argument(b, node, m->args[i], e);
    for (size_t i = 0; i < m->n_kwargs && !err; i++) {
        if (!m->kwargs[i]->value)
            return mr_fail(e, MR_EINVAL, "kwargs \"%s\" has no value", m->kwargs[i]->key);
        mr_pack_text(mr_builder_args(b), text_of(m->kwargs[i]->key));
        err = add_argument(b, node, m->kwargs[i]->value, e);
    }
    return err ? err : mr_builder_task_end(b, e);
}

static int add_value(
    struct mr_builder *b, uint32_t node, const Millrace__V1__Argument *v, struct mr_error *e)
{
    mr_object_id id;
    if (v->kind_case == MILLRACE__V1__ARGUMENT__KIND_NAME)
        return mr_builder_name(b, node, text_of(v->name), e);
    if (v->kind_case == MILLRACE__V1__ARGUMENT__KIND_OBJECT) {
        if (mr_object_id_parse(text_of(v->object), &id))
            return mr_fail(
                e, MR_EINVAL, "object \"%s\": expected 32 hexadecimal digits", v->object);
        return mr_builder_object(b, node, id, e);
    }
    int err = mr_builder_value(b, node, e);
    if (!err) err = add_argument(b, node, v, e);
    return err ? err : mr_builder_value_end(b, e);
}

static int add_task(
    struct mr_builder *b, uint32_t node, const Millrace__V1__Task *m, struct mr_error *e)
{
    bool is_task = m->op && m->op[0];
    if (is_task == (m->value != NULL))
        return mr_fail(
            e, MR_EINVAL, "key \"%s\": expected either op or value", m->key ? m->key : "");
    if (mr_builder_is_defined(b, node))
        return mr_fail(e, MR_EEXIST, "key \"%s\" is defined twice", m->key);
    int err = is_task ? add_call(b, node, m, e) : add_value(b, node, m->value, e);
    return err ? err : mr_pb_task_options(b, node, m->options, e);
}

static int add_tasks(struct mr_builder *b, Millrace__V1__Task *const *tasks, size_t n, bool is_body,
    struct mr_error *e)
{
    int err = MR_OK;
    /* all keys of the loop's body are declared first, because such a key shadows an equal key
     * outside of the loop */
    for (size_t i = 0; i < n && is_body && !err; i++) {
        uint32_t node = 0;
        err = mr_builder_own(b, text_of(tasks[i]->key), &node, e);
    }
    for (size_t i = 0; i < n && !err; i++) {
        uint32_t node = 0;
        err = mr_builder_own(b, text_of(tasks[i]->key), &node, e);
        if (!err) err = add_task(b, node, tasks[i], e);
    }
    return err;
}

/* Stores in *node the node that an argument refers to. A value or a nested task gets a new node. */
static int argument_node(struct mr_builder *b, const char *key, const Millrace__V1__Argument *v,
    uint32_t *node, struct mr_error *e)
{
    if (!v) return mr_fail(e, MR_EINVAL, "\"%s\" is not given", key);
    if (v->kind_case == MILLRACE__V1__ARGUMENT__KIND_REF)
        return mr_builder_ref(b, text_of(v->ref), node, e);
    int err = mr_builder_own(b, mr_str(key), node, e);
    if (!err && mr_builder_is_defined(b, *node))
        err = mr_fail(e, MR_EINVAL, "\"%s\" is a key of the body, too; refer to it", key);
    if (err) return err;
    bool is_task = v->kind_case == MILLRACE__V1__ARGUMENT__KIND_TASK && v->task;
    return is_task ? add_task(b, *node, v->task, e) : add_value(b, *node, v, e);
}

/* Adds the first values of the loop variables. Each gets a node of its own, even if it is a
 * reference. */
static int add_firsts(
    struct mr_builder *b, struct mr_repeat *r, const Millrace__V1__Repeat *m, struct mr_error *e)
{
    int err = MR_OK;
    for (uint32_t i = 0; i < r->carry_count && !err; i++) {
        mr_builder_scope(b, r);
        err = mr_builder_own(b, r->carry[i].name, &r->carry[i].first, e);
        mr_builder_scope(b, NULL);
        if (!err && !m->carry[i]->first)
            err = mr_fail(e, MR_EINVAL, "carried \"%s\" has no first value", m->carry[i]->name);
        if (!err) err = add_value(b, r->carry[i].first, m->carry[i]->first, e);
    }
    return err;
}

static int add_repeat(struct mr_builder *b, const Millrace__V1__Repeat *m, struct mr_error *e)
{
    struct mr_repeat_carry carry[MR_LOOP_CARRY_MAX];
    struct mr_repeat r = {.name = text_of(m->name),
        .rounds = m->max,
        .carry = carry,
        .carry_count = (uint32_t)MR_MIN(m->n_carry, (size_t)MR_LOOP_CARRY_MAX + 1),
        .until = MR_NODE_NONE};
    for (uint32_t i = 0; i < MR_MIN(r.carry_count, (uint32_t)MR_LOOP_CARRY_MAX); i++)
        carry[i] = (struct mr_repeat_carry){.name = text_of(m->carry[i]->name)};
    int err = mr_repeat_declare(b, &r, e);
    if (!err) err = add_firsts(b, &r, m, e);
    if (err) return err;
    r.from = mr_builder_nodes(b);
    mr_builder_scope(b, &r);
    err = add_tasks(b, m->tasks, m->n_tasks, true, e);
    for (uint32_t i = 0; i < r.carry_count && !err; i++) {
        char key[MR_LOOP_NAME_BYTES_MAX + 8];
        (void)snprintf(key, sizeof key, "next.%s", m->carry[i]->name);
        err = argument_node(b, key, m->carry[i]->next, &carry[i].next, e);
    }
    if (!err && m->until) err = argument_node(b, "until", m->until, &r.until, e);
    mr_builder_scope(b, NULL);
    return err ? err : mr_builder_repeat(b, &r, e);
}

int mr_pb_graph_add(
    struct mr_builder *b, const Millrace__V1__SubmitGraphRequest *m, struct mr_error *e)
{
    int err = mr_pb_job_options(b, m->options, m->request_id, e);
    if (!err) err = add_tasks(b, m->tasks, m->n_tasks, false, e);
    for (size_t i = 0; i < m->n_repeat && !err; i++) {
        err = add_repeat(b, m->repeat[i], e);
        if (err && e && strncmp(e->text, "repeat \"", 8) != 0)
            err = mr_fail_within(e, err, "repeat", text_of(m->repeat[i]->name));
    }
    for (size_t i = 0; i < m->n_targets && !err; i++) {
        uint32_t node = mr_builder_find(b, text_of(m->targets[i]));
        if (node == MR_NODE_NONE)
            return mr_fail(e, MR_EINVAL, "targets: there is no key \"%s\"", m->targets[i]);
        err = mr_builder_target(b, node, e);
    }
    return err;
}

/* ---- columns -------------------------------------------------------------------------------- */

static int check_columns(const Millrace__V1__SubmitColumns *m, struct mr_error *e)
{
    size_t n = m->n_key_bytes;
    if (m->n_op != n || m->n_args_bytes != n || m->n_inputs_count != n)
        return mr_fail(e, MR_EFORMAT,
            "columns of different lengths: key_bytes %zu, op %zu, args_bytes %zu, inputs_count %zu",
            n, m->n_op, m->n_args_bytes, m->n_inputs_count);
    uint64_t keys = 0;
    uint64_t args = 0;
    uint64_t inputs = 0;
    for (size_t i = 0; i < n; i++) {
        keys += m->key_bytes[i];
        args += m->args_bytes[i];
        inputs += m->inputs_count[i];
    }
    if (keys != m->keys.len || args != m->args.len || inputs != m->n_inputs)
        return mr_fail(e, MR_EFORMAT,
            "key_bytes, args_bytes or inputs_count do not add up to keys, args and inputs");
    return MR_OK;
}

int mr_pb_columns_declare(struct mr_builder *b, const Millrace__V1__SubmitColumns *m,
    uint32_t first, uint32_t *next, struct mr_error *e)
{
    int err = check_columns(m, e);
    if (err) return err;
    if (m->n_key_bytes > MR_TASKS_MAX - first)
        return mr_fail(e, MR_ELIMIT, "more than %d nodes", MR_TASKS_MAX);
    size_t at = 0;
    for (size_t i = 0; i < m->n_key_bytes; i++) {
        struct mr_str key =
            m->keys.len ? mr_str_of(m->keys.data + at, m->key_bytes[i]) : MR_STR("");
        uint32_t node = 0;
        at += key.n;
        err = mr_builder_node(b, key, &node, e);
        if (err) return err;
        if (node != first + i)
            return mr_fail(e, MR_EEXIST, "key \"%.*s\" is defined twice", MR_STR_ARG(key));
    }
    *next = first + (uint32_t)m->n_key_bytes;
    return MR_OK;
}

static int define_one(struct mr_builder *b, uint32_t node, struct mr_str op, struct mr_str args,
    const uint32_t *inputs, uint32_t inputs_count, uint32_t nodes, struct mr_error *e)
{
    struct mr_str key = mr_builder_key(b, node);
    struct mr_error why = {0};
    if (mr_pack_check(args, inputs_count, &why))
        return mr_fail(e, MR_EFORMAT, "key \"%.*s\": args: %s", MR_STR_ARG(key), why.text);
    if (!op.n) {
        if (inputs_count)
            return mr_fail(e, MR_EINVAL, "key \"%.*s\": a literal has no inputs", MR_STR_ARG(key));
        return mr_builder_literal(b, node, args, e);
    }
    int err = mr_builder_task(b, node, op, e);
    for (uint32_t i = 0; i < inputs_count && !err; i++) {
        uint32_t slot = 0;
        if (inputs[i] >= nodes)
            return mr_fail(
                e, MR_EINVAL, "key \"%.*s\": input %u is no node", MR_STR_ARG(key), inputs[i]);
        err = mr_builder_slot(b, inputs[i], &slot, e);
        if (!err && slot != i)
            err = mr_fail(
                e, MR_EINVAL, "key \"%.*s\": input %u is named twice", MR_STR_ARG(key), inputs[i]);
    }
    if (err) return err;
    mr_buf_add_str(mr_builder_args(b), args);
    return mr_builder_task_end(b, e);
}

int mr_pb_columns_define(struct mr_builder *b, const Millrace__V1__SubmitColumns *m, uint32_t first,
    uint32_t nodes, struct mr_pb_columns_ops *ops, struct mr_error *e)
{
    for (size_t i = 0; i < m->n_ops; i++) {
        struct mr_str name = text_of(m->ops[i]);
        mr_buf_add(&ops->names, &name, sizeof name);
    }
    const struct mr_str *names = (const void *)ops->names.p;
    size_t names_count = ops->names.n / sizeof *names;
    size_t args_at = 0;
    size_t inputs_at = 0;
    int err = MR_OK;
    for (uint32_t i = 0; i < m->n_key_bytes && !err; i++) {
        if (m->op[i] > names_count)
            return mr_fail(e, MR_EINVAL, "op %u of node %u is not in the table of %zu", m->op[i],
                first + i, names_count);
        struct mr_str op = m->op[i] ? names[m->op[i] - 1] : MR_STR("");
        struct mr_str args =
            m->args.len ? mr_str_of(m->args.data + args_at, m->args_bytes[i]) : MR_STR("");
        if (m->op[i] && !op.n) return mr_fail(e, MR_EINVAL, "op %u has no name", m->op[i]);
        const uint32_t *inputs = m->n_inputs ? m->inputs + inputs_at : NULL;
        err = define_one(b, first + i, op, args, inputs, m->inputs_count[i], nodes, e);
        args_at += args.n;
        inputs_at += m->inputs_count[i];
    }
    for (size_t i = 0; i < m->n_task_options && !err; i++) {
        const Millrace__V1__SparseOptions *o = m->task_options[i];
        if (o->node >= nodes)
            return mr_fail(e, MR_EINVAL, "task_options: node %u is not there", o->node);
        err = mr_pb_task_options(b, o->node, o->options, e);
    }
    for (size_t i = 0; i < m->n_targets && !err; i++) {
        if (m->targets[i] >= nodes)
            return mr_fail(e, MR_EINVAL, "targets: node %u is not there", m->targets[i]);
        err = mr_builder_target(b, m->targets[i], e);
    }
    for (uint32_t i = 0; m->all_targets && i < m->n_key_bytes && !err; i++)
        err = mr_builder_target(b, first + i, e);
    return err;
}
