#include "base/err.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct row {
    int code;
    int grpc;
    int http;
    const char *name;
    const char *words;
};

static const struct row rows[] = {
#define MR_ROW(name, value, grpc, http, words) {value, grpc, http, #name, words},
    MR_ERRORS(MR_ROW)
#undef MR_ROW
};

static const struct row *find(int code)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++)
        if (rows[i].code == code) return &rows[i];
    return NULL;
}

int mr_fail(struct mr_error *e, int code, const char *fmt, ...)
{
    if (!e) return code;
    char raw[MR_ERROR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    e->code = code;
    mr_utf8_printable(raw, strlen(raw), e->text, sizeof e->text);
    return code;
}

const char *mr_err_name(int code)
{
    const struct row *r = find(code);
    if (r) return r->name;
    return code == MR_OK ? "MR_OK" : "MR_E?";
}

const char *mr_err_words(int code)
{
    const struct row *r = find(code);
    if (r) return r->words;
    return code == MR_OK ? "ok" : "unknown error";
}

int mr_err_grpc(int code)
{
    const struct row *r = find(code);
    if (r) return r->grpc;
    return code == MR_OK ? 0 : 2;
}

int mr_err_http(int code)
{
    const struct row *r = find(code);
    if (r) return r->http;
    return code == MR_OK ? 200 : 500;
}

int mr_err_from_grpc(int grpc_status)
{
    if (grpc_status == 0) return MR_OK;
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++)
        if (rows[i].grpc == grpc_status)
            /* Several error codes share one gRPC status. The first row of a status is its most
             * general code. */
            return rows[i].code;
    return MR_EUNKNOWN;
}
