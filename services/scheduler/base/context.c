#include "services/scheduler/base/context.h"

#include "base/assert.h"
#include "host/clock.h"

#include <stdarg.h>
#include <stdio.h>

void mr_shell_step(struct mr_shell *sh, struct mr_sched_event *ev)
{
    ev->wall_ns = mr_clock_wall();
    mr_sched_step(sh->core, mr_clock_now(), ev, &sh->fx);
}

int mr_shell_push(struct mr_shell *sh, struct mr_shell_message m)
{
    return mr_inbox_push(sh->inbox, &m);
}

struct mr_shell *mr_shell_of(const struct mr_rpc_call *call)
{
    return mr_rpc_call_context(call);
}

void *mr_shell_take(struct mr_shell *sh, size_t bytes)
{
    void *p = mr_pb_arena_take(&sh->scratch, bytes ? bytes : 1);
    /* the request takes at most half of the arena, so the answer fits into the other half */
    mr_assert(p);
    return p;
}

char *mr_shell_text(struct mr_shell *sh, struct mr_str s)
{
    char *p = mr_shell_take(sh, s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return p;
}

void *mr_shell_request(struct mr_shell *sh, struct mr_rpc_call *call, struct mr_rpc_message *m,
    const ProtobufCMessageDescriptor *type)
{
    struct mr_error e = {0};
    mr_pb_arena_clear(&sh->scratch);
    void *request = mr_pb_unpack_request(type, mr_rpc_message_str(m), &sh->scratch, &e);
    if (!request) (void)mr_rpc_call_fail(call, &e);
    return request;
}

bool mr_shell_is_recovering(struct mr_shell *sh)
{
    struct mr_sched_totals t;
    if (sh->has_recovered) return false;
    mr_sched_totals(sh->core, &t);
    sh->has_recovered = !t.is_recovering;
    return t.is_recovering;
}

void mr_shell_fail(struct mr_rpc_call *call, int code, const char *fmt, ...)
{
    struct mr_error e = {0};
    char text[MR_ERROR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)mr_fail(&e, code, "%s", text);
    (void)mr_rpc_call_fail(call, &e);
}
