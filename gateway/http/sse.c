#include "gateway/http/sse.h"

static void add_line(struct mr_buf *out, const char *field, struct mr_str value)
{
    mr_buf_add_text(out, field);
    mr_buf_add_text(out, ": ");
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] != '\n' && value.p[i] != '\r')
            mr_buf_add_byte(out, (unsigned char)value.p[i]);
    mr_buf_add_byte(out, '\n');
}

void mr_sse_event(struct mr_buf *out, struct mr_str id, const char *type, struct mr_str data)
{
    if (id.n) add_line(out, "id", id);
    if (type) add_line(out, "event", mr_str(type));
    size_t from = 0;
    for (size_t i = 0; i <= data.n; i++) {
        if (i < data.n && data.p[i] != '\n') continue;
        mr_buf_add_text(out, "data: ");
        mr_buf_add(out, data.p + from, i - from);
        mr_buf_add_byte(out, '\n');
        from = i + 1;
    }
    mr_buf_add_byte(out, '\n');
}

void mr_sse_hello(struct mr_buf *out)
{
    mr_buf_add_text(out, "retry: 1000\n\n");
}

void mr_sse_heartbeat(struct mr_buf *out)
{
    mr_buf_add_text(out, ":\n\n");
}
