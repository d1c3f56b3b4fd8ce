#include "gateway/json/status.h"

#include "base/protowire.h"
#include "gateway/json/base64.h"
#include "gateway/json/json_out.h"

#define ERROR_INFO "type.googleapis.com/google.rpc.ErrorInfo"

static struct mr_str bytes_of(struct mr_str message, uint32_t number)
{
    struct mr_protowire_reader r = mr_protowire_read(message);
    struct mr_protowire_field f;
    while (!mr_protowire_next(&r, &f))
        if (f.number == number && f.type == MR_PROTOWIRE_BYTES) return f.bytes;
    return mr_str_of("", 0);
}

static void member(struct mr_buf *out, const char *name, struct mr_str text)
{
    mr_buf_add_byte(out, ',');
    mr_json_text(out, mr_str(name));
    mr_buf_add_byte(out, ':');
    mr_json_text(out, text);
}

static void detail(struct mr_str any, struct mr_buf *out)
{
    struct mr_str url = bytes_of(any, 1), value = bytes_of(any, 2);
    mr_buf_add_text(out, "{\"@type\":");
    mr_json_text(out, url);
    if (mr_str_eq(url, MR_STR(ERROR_INFO))) {
        member(out, "reason", bytes_of(value, 1));
        member(out, "domain", bytes_of(value, 2));
    } else {
        mr_buf_add_text(out, ",\"value\":\"");
        mr_base64_encode(value, out);
        mr_buf_add_byte(out, '"');
    }
    mr_buf_add_byte(out, '}');
}

void mr_status_json(int code, struct mr_str message, struct mr_str details, struct mr_buf *out)
{
    mr_buf_printf(out, "{\"code\":%d,\"message\":", code);
    mr_json_text(out, message);
    mr_buf_add_text(out, ",\"details\":[");
    struct mr_protowire_reader r = mr_protowire_read(details);
    struct mr_protowire_field f;
    bool first = true;
    while (!mr_protowire_next(&r, &f)) {
        if (f.number != 3 || f.type != MR_PROTOWIRE_BYTES) continue;
        if (!first) mr_buf_add_byte(out, ',');
        first = false;
        detail(f.bytes, out);
    }
    mr_buf_add_text(out, "]}");
}
