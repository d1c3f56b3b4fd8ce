/* A question is what a call asks the core, the directory or another part of the store (call.h).
 * mr_ostore_call_begin opens a question, and mr_ostore_call_end closes it. */
#include "services/objectstore/call/call.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GETS_AT_ONCE 64u

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
    if (!p) MR_PANIC("a call needs more than %zu bytes", MR_OSTORE_CALL_ARENA_MAX);
    memset(p, 0, bytes);
    return p;
}

char *mr_ostore_call_text(struct mr_ostore_call *call, struct mr_str s)
{
    char *p = mr_ostore_call_take(call, s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

void mr_ostore_call_reply(struct mr_ostore_call *call, const ProtobufCMessage *m)
{
    (void)mr_rpc_call_reply_pb(call->rpc, m);
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

void mr_ostore_call_unknown(struct mr_ostore_call *call)
{
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(call->id, id);
    call->err = mr_fail(&call->error, MR_ENOENT, "object %s is not in the store of node \"%s\"", id,
        call->sv->config.node);
}

void mr_ostore_call_fail_unknown(struct mr_ostore_call *call)
{
    mr_ostore_call_unknown(call);
    mr_ostore_call_fail_error(call);
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
        "%s: \"%s\" is not an object id; expected 32 hexadecimal digits, or name: and a name",
        field, text);
    return false;
}

bool mr_ostore_call_check_name(struct mr_ostore_call *call, const char *field, const char *name)
{
    if (mr_utf8_is_key(mr_str(name), MR_KEY_BYTES_MAX)) return true;
    mr_ostore_call_fail(call, MR_EINVAL,
        "%s: \"%s\" is not a name; expected 1 to %d bytes of UTF-8 without control characters",
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

static void end_posted(void *p)
{
    mr_ostore_call_end(p);
}

void mr_ostore_call_end_soon(struct mr_ostore_call *call)
{
    mr_posts_add(call->sv->posts, end_posted, call);
}

/* ---- the core ---------------------------------------------------------------------------------*/

static void answered(struct mr_ask *ask)
{
    struct mr_ostore_call *call = ask->ctx;
    call->err = ask->err;
    mr_ostore_call_end(call);
}

void mr_ostore_call_ask(struct mr_ostore_call *call, enum mr_ask_type type, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(call, then);
    if (type != MR_ASK_MISSING) { /* a MISSING question has its ids in `infos` */
        mr_release(call->ask.infos);
        call->ask.infos = NULL;
    }
    call->ask.type = type;
    call->ask.err = MR_OK;
    call->ask.done = answered;
    call->ask.ctx = call;
    if (!mr_ostore_shell_ask(call->sv->sh, &call->ask)) return;
    call->err = mr_fail(
        &call->error, MR_ELIMIT, "the object store is busy: too many requests wait for its core");
    mr_ostore_call_end_soon(call);
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

void mr_ostore_call_get(
    struct mr_ostore_call *call, const char *source, mr_duration timeout, mr_ostore_call_fn then)
{
    mr_ostore_call_begin(call, then);
    if (call->view.pin) mr_store_release(call->sv->self, &call->view);
    int err = mr_store_get_start(call->sv->self, call->id, source, timeout,
        (uint64_t)(uintptr_t)call, &call->view, &call->error);
    if (err == MR_EAGAIN) return; /* the answer comes later, to mr_ostore_calls_got */
    call->err = err;
    mr_ostore_call_end_soon(call);
}

static void end_get(struct mr_ostore_call *call, const struct mr_store_completion *done)
{
    call->err = done->err;
    call->view = done->view;
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(call->id, id);
    const char *why = call->err == MR_ETIMEOUT ? "did not arrive within the timeout"
                      : call->err == MR_ELOST  ? "was deleted, or its only copy is lost"
                      : call->err == MR_EAWAY  ? "is in a store that does not answer"
                                               : "is not available";
    if (call->err) (void)mr_fail(&call->error, call->err, "object %s %s", id, why);
    mr_ostore_call_end(call);
}

size_t mr_ostore_calls_got(struct mr_service *sv)
{
    struct mr_store_completion done[GETS_AT_ONCE];
    size_t n = sv->self ? mr_store_completions(sv->self, done, MR_ARRAY_LEN(done)) : 0;
    for (size_t i = 0; i < n; i++)
        end_get((struct mr_ostore_call *)(uintptr_t)done[i].token, &done[i]);
    return n;
}
