#include "gateway/http/origin.h"

#include <strings.h>

static struct mr_str without_port(struct mr_str host)
{
    if (host.n && host.p[0] == '[') {
        const char *end = memchr(host.p, ']', host.n);
        return end ? mr_str_of(host.p, (size_t)(end - host.p) + 1) : host;
    }
    const char *colon = host.n ? memchr(host.p, ':', host.n) : NULL;
    return colon ? mr_str_of(host.p, (size_t)(colon - host.p)) : host;
}

int mr_origin_check_host(
    struct mr_str host, const char *const *names, size_t names_count, struct mr_error *e)
{
    struct mr_str name = without_port(host);
    for (size_t i = 0; i < names_count; i++)
        if (name.n == strlen(names[i]) && strncasecmp(name.p, names[i], name.n) == 0) return MR_OK;
    return mr_fail(e, MR_EPERM,
        "the header Host has \"%.*s\", which is not a name of this gateway; --allow-host adds a name",
        (int)MR_MIN(name.n, (size_t)100), name.n ? name.p : "");
}

int mr_origin_check(struct mr_str origin, struct mr_str host, struct mr_error *e)
{
    if (!origin.p) return MR_OK;
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < MR_ARRAY_LEN(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (origin.n != n + host.n || memcmp(origin.p, schemes[i], n) != 0) continue;
        if (host.n && strncasecmp(origin.p + n, host.p, host.n) == 0) return MR_OK;
    }
    return mr_fail(e, MR_EPERM,
        "requests from pages of \"%.*s\" (the header Origin) are not allowed",
        (int)MR_MIN(origin.n, (size_t)100), origin.p);
}
