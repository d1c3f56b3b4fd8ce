/* The questions of a call (call.h) and the delivery of their answers. */
#include "services/objectstore/api/call.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_PREFIX "name:"

#include <xxhash.h>

struct mr_ostore_call *mr_ostore_call_new(struct mr_rpc_call *rpc)
{
    struct mr_ostore_call *call = mr_alloc(sizeof *call);
    call->sv = mr_rpc_call_context(rpc);
    call->rpc = rpc;
    mr_pb_arena_init(&call->arena, MR_OSTORE_CALL_ARENA_MAX);
    mr_rpc_call_set_context(rpc, call);
    return call;
}

struct mr_ostore_call *mr_ostore_call_of(const struct mr_rpc_call *rpc)
{
    return mr_rpc_call_context(rpc);
}

static void call_free(struct mr_ostore_call *call)
{
    if (call->fini) call->fini(call);
    if (call->view.pin) mr_store_release(call->sv->self, &call->view);
    mr_release(call->ask.infos);
    mr_pb_arena_fini(&call->arena);
    mr_release(call);
}

void mr_ostore_call_over(struct mr_ostore_call *call)
{
    call->rpc = NULL;
    if (!call->open) call_free(call);
}

void *mr_ostore_call_take(struct mr_ostore_call *call, size_t bytes)
{
    void *p = mr_pb_arena_take(&call->arena, bytes);
    if (!p) MR_PANIC("an op needs more than %zu bytes", MR_OSTORE_CALL_ARENA_MAX);
    memset(p, 0, bytes);
    return p;
}

char *mr_ostore_call_text(struct mr_ostore_call *call, struct mr_str s)
{
    char *p = mr_ostore_call_take(call, s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

void mr_ostore_call_fail(struct mr_ostore_call *call, int code, const char *fmt, ...)
{
    char text[MR_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    struct mr_error e;
    (void)mr_fail(&e, code, "%s", text);
    (void)mr_rpc_call_fail(call->rpc, &e);
}

void mr_ostore_call_fail_error(struct mr_ostore_call *call)
{
    (void)mr_rpc_call_fail(call->rpc, &call->error);
}

void *mr_ostore_call_request(
    struct mr_ostore_call *call, struct mr_rpc_message *m, const ProtobufCMessageDescriptor *type)
{
    void *p = mr_pb_unpack_request(type, mr_rpc_message_str(m), &call->arena, &call->error);
    if (!p) mr_ostore_call_fail_error(call);
    return p;
}

bool mr_ostore_call_parse_id(struct mr_ostore_call *call, const char *field, const char *text)
{
    if (!mr_object_id_parse(mr_str(text), &call->id)) return true;
    mr_ostore_call_fail(call, MR_EINVAL,
        "%s: \"%s\" is no object id: 32 hexadecimal digits would be one, or name: and a name",
        field, text);
    return false;
}

bool mr_ostore_call_check_name(struct mr_ostore_call *call, const char *field, const char *name)
{
    if (mr_utf8_is_key(mr_str(name), MR_KEY_BYTES_MAX)) return true;
    mr_ostore_call_fail(call, MR_EINVAL,
        "%s: \"%s\" is no name: 1 to %d bytes of UTF-8 without control characters would be one",
        field, name, MR_KEY_BYTES_MAX);
    return false;
}

void mr_ostore_call_begin(struct mr_ostore_call *call, mr_ostore_call_fn then)
{
    mr_assert(!call->open);
    call->open = true;
    call->then = then;
    call->err = MR_OK;
}

void mr_ostore_call_end(struct mr_ostore_call *call)
{
    mr_assert(call->open);
    call->open = false;
    if (call->rpc)
        call->then(call);
    else
        call_free(call);
}

/* ---- the core ---------------------------------------------------------------------------------*/

static void answered(struct mr_ask *ask)
{
    struct mr_ostore_call *call = ask->ctx;
    call->err = ask->err;
    mr_ostore_call_end(call);
}

static void refused(void *p)
{
    struct mr_ostore_call *call = p;
    call->err =
        mr_fail(&call->error, MR_ELIMIT, "the object store has too many questions to answer");
    mr_ostore_call_end(call);
}

void mr_ostore_call_ask(struct mr_ostore_call *call, enum mr_ask_type type, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(call, then);
    if (type != MR_ASK_MISSING) { /* which asks with them */
        mr_release(call->ask.infos);
        call->ask.infos = NULL;
    }
    call->ask.type = type;
    call->ask.err = MR_OK;
    call->ask.done = answered;
    call->ask.ctx = call;
    if (mr_ostore_shell_ask(call->sv->sh, &call->ask)) mr_service_post(call->sv, refused, call);
}

void mr_ostore_call_stat(struct mr_ostore_call *call, mr_ostore_call_fn then)
{
    call->ask.ev = (struct mr_ostore_event){.id = call->id};
    mr_ostore_call_ask(call, MR_ASK_STAT, then);
}

void mr_ostore_call_event(
    struct mr_ostore_call *call, enum mr_ostore_event_type type, mr_ostore_call_fn then)
{
    call->ask.ev.type = type;
    call->ask.ev.id = call->id;
    mr_ostore_call_ask(call, MR_ASK_EVENT, then);
}

/* ---- memory -----------------------------------------------------------------------------------*/

static void got_at_once(void *p)
{
    mr_ostore_call_end(p);
}

void mr_ostore_call_get(
    struct mr_ostore_call *call, const char *source, mr_duration timeout, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(call, then);
    if (call->view.pin) mr_store_release(call->sv->self, &call->view);
    int err = mr_store_get_start(call->sv->self, call->id, source, timeout,
        (uint64_t)(uintptr_t)call, &call->view, &call->error);
    if (err == MR_EAGAIN) return; /* service.c takes the completions */
    call->err = err;
    mr_service_post(call->sv, got_at_once, call);
}

/* ---- names ------------------------------------------------------------------------------------*/

struct name_answer { /* from the directory's thread to ours */
    struct mr_ostore_call *call;
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
    struct mr_ostore_call *call = a->call;
    call->err = a->err;
    call->names_more = a->more;
    call->names_count = a->count;
    call->names = mr_ostore_call_take(call, (a->count + 1) * sizeof *call->names);
    for (size_t i = 0; i < a->count; i++) {
        struct mr_name_record *r = &call->names[i];
        *r = a->records[i];
        r->name = mr_str(mr_ostore_call_text(call, r->name));
        r->summary = mr_str(mr_ostore_call_text(call, r->summary));
        r->node = mr_str(mr_ostore_call_text(call, r->node));
        r->address = mr_str(mr_ostore_call_text(call, r->address));
    }
    call->place =
        a->place ? mr_str(mr_ostore_call_text(call, mr_str(a->place))) : (struct mr_str){0};
    mr_release(a->records);
    mr_release(a->texts);
    mr_release(a->place);
    mr_release(a);
    mr_ostore_call_end(call);
}

static void name_came(void *ctx, int err, const struct mr_name_record *record)
{
    struct name_answer *a = ctx;
    a->err = err;
    take_records(a, record, record ? 1 : 0);
    mr_service_post(a->call->sv, on_names, a);
}

static void names_came(
    void *ctx, int err, const struct mr_name_record *records, size_t count, bool more)
{
    struct name_answer *a = ctx;
    a->err = err;
    a->more = more;
    take_records(a, records, err ? 0 : count);
    mr_service_post(a->call->sv, on_names, a);
}

static void place_came(void *ctx, int err, const struct mr_place_record *record)
{
    struct name_answer *a = ctx;
    a->err = err;
    if (!err && record) a->place = mr_format("%.*s", MR_STR_ARG(record->address));
    mr_service_post(a->call->sv, on_names, a);
}

static struct name_answer *ask_names(struct mr_ostore_call *call, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(call, then);
    struct name_answer *a = mr_alloc(sizeof *a);
    a->call = call;
    return a;
}

void mr_ostore_call_resolve(struct mr_ostore_call *call, struct mr_str name, mr_ostore_call_fn then)
{
    mr_names_resolve(call->sv->names, name, name_came, ask_names(call, then));
}

static void id_resolved(struct mr_ostore_call *call)
{
    if (call->err == MR_ENOENT) {
        mr_ostore_call_fail(call, call->err, "id: no object has the name \"%s\"", call->wanted);
    } else if (call->err) {
        mr_ostore_call_fail(call, call->err, "id: the name \"%s\" cannot be looked up: %s",
            call->wanted,
            call->err == MR_EAWAY ? "names are kept in Redis, which does not answer"
                                  : mr_err_words(call->err));
    } else {
        call->id = call->names[0].object;
        call->wanted_by(call);
    }
}

void mr_ostore_call_find_id(
    struct mr_ostore_call *call, const char *field, const char *text, mr_ostore_call_fn then)
{
    bool is_name = !strncmp(text, NAME_PREFIX, strlen(NAME_PREFIX));
    if (!is_name) {
        if (mr_ostore_call_parse_id(call, field, text)) then(call);
        return;
    }
    call->wanted = text + strlen(NAME_PREFIX);
    call->wanted_by = then;
    if (mr_ostore_call_check_name(call, field, call->wanted))
        mr_ostore_call_resolve(call, mr_str(call->wanted), id_resolved);
}

void mr_ostore_call_unname(struct mr_ostore_call *call, struct mr_str name, mr_ostore_call_fn then)
{
    mr_names_remove(call->sv->names, name, (mr_object_id){0}, name_came, ask_names(call, then));
}

void mr_ostore_call_set_name(struct mr_ostore_call *call, const struct mr_name_record *record,
    bool replace, mr_ostore_call_fn then)
{
    mr_names_set(call->sv->names, record, replace, name_came, ask_names(call, then));
}

void mr_ostore_call_list_names(struct mr_ostore_call *call, struct mr_str prefix,
    struct mr_str after, uint32_t n_max, mr_ostore_call_fn then)
{
    mr_names_list(call->sv->names, prefix, after, n_max, names_came, ask_names(call, then));
}

void mr_ostore_call_find(struct mr_ostore_call *call, mr_ostore_call_fn then)
{
    mr_names_find(call->sv->names, call->id, place_came, ask_names(call, then));
}

uint64_t mr_name_key(struct mr_str name)
{
    return XXH3_64bits(name.p, name.n);
}
