/* Splits the bytes of a stream of server-sent events into lines. Collects the lines of an event
 * until an empty line ends the event. */
#include "cli/client/sse.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

#define EVENT_BYTES_MAX ((size_t)1 << 24)

void mr_sse_init(
    struct mr_sse *s, void (*on_event)(void *ctx, const char *type, struct mr_str data), void *ctx)
{
    *s = (struct mr_sse){.on_event = on_event, .ctx = ctx};
    mr_buf_init(&s->line, EVENT_BYTES_MAX);
    mr_buf_init(&s->event, EVENT_BYTES_MAX);
}

void mr_sse_fini(struct mr_sse *s)
{
    mr_buf_fini(&s->line);
    mr_buf_fini(&s->event);
}

void mr_sse_restart(struct mr_sse *s)
{
    mr_buf_clear(&s->line);
    mr_buf_clear(&s->event);
    s->type[0] = 0;
}

/* Finds the text after "name: " or "name:". False: the line has another field. */
static bool field(struct mr_str line, const char *name, struct mr_str *value)
{
    size_t n = strlen(name);
    if (line.n <= n || memcmp(line.p, name, n) != 0 || line.p[n] != ':') return false;
    size_t from = n + 1 < line.n && line.p[n + 1] == ' ' ? n + 2 : n + 1;
    *value = mr_str_of(line.p + from, line.n - from);
    return true;
}

static void on_line(struct mr_sse *s, struct mr_str line)
{
    struct mr_str value = {0};
    if (!line.n) {
        if (s->event.n) s->on_event(s->ctx, s->type, mr_buf_str(&s->event));
        mr_buf_clear(&s->event);
        s->type[0] = 0;
    } else if (field(line, "data", &value)) {
        if (s->event.n) mr_buf_add_byte(&s->event, '\n');
        mr_buf_add_str(&s->event, value);
    } else if (field(line, "id", &value)) {
        (void)snprintf(s->id, sizeof s->id, "%.*s", MR_STR_ARG(value));
    } else if (field(line, "event", &value)) {
        (void)snprintf(s->type, sizeof s->type, "%.*s", MR_STR_ARG(value));
    }
}

int mr_sse_take(void *sse, const char *p, size_t n)
{
    struct mr_sse *s = sse;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '\n') {
            mr_buf_add_byte(&s->line, (unsigned char)p[i]);
            continue;
        }
        if (mr_buf_status(&s->line)) return MR_ELIMIT;
        if (s->line.n && s->line.p[s->line.n - 1] == '\r') s->line.n--;
        on_line(s, mr_buf_str(&s->line));
        mr_buf_clear(&s->line);
        if (mr_buf_status(&s->event)) return MR_ELIMIT;
    }
    return mr_buf_status(&s->line);
}
