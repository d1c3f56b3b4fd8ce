/* Questions and their answers. */
#include "services/objectstore/api/call.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_PREFIX "name:"

#include <xxhash.h>

struct mr_op *mr_op_new(struct mr_rpc_call *call)
{
    struct mr_op *op = mr_alloc(sizeof *op);
    op->sv = mr_rpc_call_context(call);
    op->call = call;
    mr_pb_arena_init(&op->arena, MR_OP_ARENA_MAX);
    mr_rpc_call_set_context(call, op);
    return op;
}

struct mr_op *mr_op_of(const struct mr_rpc_call *call)
{
    return mr_rpc_call_context(call);
}

static void op_free(struct mr_op *op)
{
    if (op->fini) op->fini(op);
    if (op->view.pin) mr_store_release(op->sv->self, &op->view);
    mr_release(op->ask.infos);
    mr_pb_arena_fini(&op->arena);
    mr_release(op);
}

void mr_op_over(struct mr_op *op)
{
    op->call = NULL;
    if (!op->open) op_free(op);
}

void *mr_op_take(struct mr_op *op, size_t bytes)
{
    void *p = mr_pb_arena_take(&op->arena, bytes);
    if (!p) MR_PANIC("an op needs more than %zu bytes", MR_OP_ARENA_MAX);
    memset(p, 0, bytes);
    return p;
}

char *mr_op_text(struct mr_op *op, struct mr_str s)
{
    char *p = mr_op_take(op, s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

void mr_op_fail(struct mr_op *op, int code, const char *fmt, ...)
{
    char text[MR_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    struct mr_error e;
    (void)mr_fail(&e, code, "%s", text);
    (void)mr_rpc_call_fail(op->call, &e);
}

void mr_op_fail_error(struct mr_op *op)
{
    (void)mr_rpc_call_fail(op->call, &op->error);
}

void *mr_op_request(
    struct mr_op *op, struct mr_rpc_message *m, const ProtobufCMessageDescriptor *type)
{
    void *p = mr_pb_unpack_request(type, mr_rpc_message_str(m), &op->arena, &op->error);
    if (!p) mr_op_fail_error(op);
    return p;
}

bool mr_op_parse_id(struct mr_op *op, const char *field, const char *text)
{
    if (!mr_object_id_parse(mr_str(text), &op->id)) return true;
    mr_op_fail(op, MR_EINVAL,
        "%s: \"%s\" is no object id: 32 hexadecimal digits would be one, or name: and a name",
        field, text);
    return false;
}

bool mr_op_check_name(struct mr_op *op, const char *field, const char *name)
{
    if (mr_utf8_is_key(mr_str(name), MR_KEY_BYTES_MAX)) return true;
    mr_op_fail(op, MR_EINVAL,
        "%s: \"%s\" is no name: 1 to %d bytes of UTF-8 without control characters would be one",
        field, name, MR_KEY_BYTES_MAX);
    return false;
}

void mr_op_begin(struct mr_op *op, mr_op_fn then)
{
    mr_assert(!op->open);
    op->open = true;
    op->then = then;
    op->err = MR_OK;
}

void mr_op_end(struct mr_op *op)
{
    mr_assert(op->open);
    op->open = false;
    if (op->call)
        op->then(op);
    else
        op_free(op);
}

/* ---- the core ---------------------------------------------------------------------------------*/

static void answered(struct mr_ask *ask)
{
    struct mr_op *op = ask->ctx;
    op->err = ask->err;
    mr_op_end(op);
}

static void refused(void *p)
{
    struct mr_op *op = p;
    op->err = mr_fail(&op->error, MR_ELIMIT, "the object store has too many questions to answer");
    mr_op_end(op);
}

void mr_op_ask(struct mr_op *op, enum mr_ask_type type, mr_op_fn then)
{
    mr_op_begin(op, then);
    if (type != MR_ASK_MISSING) { /* which asks with them */
        mr_release(op->ask.infos);
        op->ask.infos = NULL;
    }
    op->ask.type = type;
    op->ask.err = MR_OK;
    op->ask.done = answered;
    op->ask.ctx = op;
    if (mr_shell_ask(op->sv->sh, &op->ask)) mr_service_post(op->sv, refused, op);
}

void mr_op_stat(struct mr_op *op, mr_op_fn then)
{
    op->ask.ev = (struct mr_ostore_event){.id = op->id};
    mr_op_ask(op, MR_ASK_STAT, then);
}

void mr_op_event(struct mr_op *op, enum mr_ostore_event_type type, mr_op_fn then)
{
    op->ask.ev.type = type;
    op->ask.ev.id = op->id;
    mr_op_ask(op, MR_ASK_EVENT, then);
}

/* ---- memory -----------------------------------------------------------------------------------*/

static void got_at_once(void *p)
{
    mr_op_end(p);
}

void mr_op_get(struct mr_op *op, const char *source, mr_duration timeout, mr_op_fn then)
{
    mr_op_begin(op, then);
    if (op->view.pin) mr_store_release(op->sv->self, &op->view);
    int err = mr_store_get_start(
        op->sv->self, op->id, source, timeout, (uint64_t)(uintptr_t)op, &op->view, &op->error);
    if (err == MR_EAGAIN) return; /* service.c takes the completions */
    op->err = err;
    mr_service_post(op->sv, got_at_once, op);
}

/* ---- names ------------------------------------------------------------------------------------*/

struct name_answer { /* from the directory's thread to ours */
    struct mr_op *op;
    int err;
    struct mr_name_record *records; /* texts in `texts` */
    size_t count;
    bool more;
    char *texts;
    char *place;
};

static struct mr_str keep(char **at, struct mr_str s)
{
    struct mr_str kept = {*at, s.n};
    if (s.n) memcpy(*at, s.p, s.n);
    *at += s.n;
    return kept;
}

static void take_records(struct name_answer *a, const struct mr_name_record *records, size_t count)
{
    size_t bytes = 1;
    for (size_t i = 0; i < count; i++)
        bytes +=
            records[i].name.n + records[i].summary.n + records[i].node.n + records[i].address.n;
    a->records = mr_alloc_array(count ? count : 1, sizeof *records);
    a->texts = mr_alloc(bytes);
    a->count = count;
    char *at = a->texts;
    for (size_t i = 0; i < count; i++) {
        struct mr_name_record *r = &a->records[i];
        *r = records[i];
        r->name = keep(&at, r->name);
        r->summary = keep(&at, r->summary);
        r->node = keep(&at, r->node);
        r->address = keep(&at, r->address);
    }
}

static void on_names(void *p)
{
    struct name_answer *a = p;
    struct mr_op *op = a->op;
    op->err = a->err;
    op->names_more = a->more;
    op->names_count = a->count;
    op->names = mr_op_take(op, (a->count + 1) * sizeof *op->names);
    for (size_t i = 0; i < a->count; i++) {
        struct mr_name_record *r = &op->names[i];
        *r = a->records[i];
        r->name = mr_str(mr_op_text(op, r->name));
        r->summary = mr_str(mr_op_text(op, r->summary));
        r->node = mr_str(mr_op_text(op, r->node));
        r->address = mr_str(mr_op_text(op, r->address));
    }
    op->place = a->place ? mr_str(mr_op_text(op, mr_str(a->place))) : (struct mr_str){0};
    mr_release(a->records);
    mr_release(a->texts);
    mr_release(a->place);
    mr_release(a);
    mr_op_end(op);
}

static void name_came(void *ctx, int err, const struct mr_name_record *record)
{
    struct name_answer *a = ctx;
    a->err = err;
    take_records(a, record, record ? 1 : 0);
    mr_service_post(a->op->sv, on_names, a);
}

static void names_came(
    void *ctx, int err, const struct mr_name_record *records, size_t count, bool more)
{
    struct name_answer *a = ctx;
    a->err = err;
    a->more = more;
    take_records(a, records, err ? 0 : count);
    mr_service_post(a->op->sv, on_names, a);
}

static void place_came(void *ctx, int err, const struct mr_place_record *record)
{
    struct name_answer *a = ctx;
    a->err = err;
    if (!err && record) a->place = mr_format("%.*s", MR_STR_ARG(record->address));
    mr_service_post(a->op->sv, on_names, a);
}

static struct name_answer *ask_names(struct mr_op *op, mr_op_fn then)
{
    mr_op_begin(op, then);
    struct name_answer *a = mr_alloc(sizeof *a);
    a->op = op;
    return a;
}

void mr_op_resolve(struct mr_op *op, struct mr_str name, mr_op_fn then)
{
    mr_names_resolve(op->sv->names, name, name_came, ask_names(op, then));
}

static void id_resolved(struct mr_op *op)
{
    if (op->err == MR_ENOENT) {
        mr_op_fail(op, op->err, "id: no object has the name \"%s\"", op->wanted);
    } else if (op->err) {
        mr_op_fail(op, op->err, "id: the name \"%s\" cannot be looked up: %s", op->wanted,
            op->err == MR_EAWAY ? "names are kept in Redis, which does not answer"
                                : mr_err_words(op->err));
    } else {
        op->id = op->names[0].object;
        op->wanted_by(op);
    }
}

void mr_op_find_id(struct mr_op *op, const char *field, const char *text, mr_op_fn then)
{
    bool is_name = !strncmp(text, NAME_PREFIX, strlen(NAME_PREFIX));
    if (!is_name) {
        if (mr_op_parse_id(op, field, text)) then(op);
        return;
    }
    op->wanted = text + strlen(NAME_PREFIX);
    op->wanted_by = then;
    if (mr_op_check_name(op, field, op->wanted)) mr_op_resolve(op, mr_str(op->wanted), id_resolved);
}

void mr_op_unname(struct mr_op *op, struct mr_str name, mr_op_fn then)
{
    mr_names_remove(op->sv->names, name, (mr_object_id){0}, name_came, ask_names(op, then));
}

void mr_op_set_name(
    struct mr_op *op, const struct mr_name_record *record, bool replace, mr_op_fn then)
{
    mr_names_set(op->sv->names, record, replace, name_came, ask_names(op, then));
}

void mr_op_list_names(
    struct mr_op *op, struct mr_str prefix, struct mr_str after, uint32_t n_max, mr_op_fn then)
{
    mr_names_list(op->sv->names, prefix, after, n_max, names_came, ask_names(op, then));
}

void mr_op_find(struct mr_op *op, mr_op_fn then)
{
    mr_names_find(op->sv->names, op->id, place_came, ask_names(op, then));
}

uint64_t mr_name_key(struct mr_str name)
{
    return XXH3_64bits(name.p, name.n);
}
