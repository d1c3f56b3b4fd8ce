/* Answers for paths outside the API: the files of the dashboard, or a built-in page. */
#include "gateway/server/internal.h"

#include "base/alloc.h"
#include "base/unconst.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_BYTES_MAX 1024

static const char page[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>millrace</title>"
    "<h1>millrace</h1><p>The API is described in <a href=\"/openapi.json\">/openapi.json</a>; "
    "<a href=\"/healthz\">/healthz</a> tells whether a job could run, "
    "<a href=\"/metrics\">/metrics</a> has the metrics.</html>\n";

static const struct {
    const char *extension;
    const char *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".wasm", "application/wasm"},
};

static const char *type_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < MR_ARRAY_LEN(types); i++)
        if (!strcmp(dot, types[i].extension)) return types[i].type;
    return "application/octet-stream";
}

/* Opens a file of the directory. Refuses paths and symbolic links that lead out of it. */
static int open_beneath(int directory, const char *path)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

static void add_page_headers(struct MHD_Response *m)
{
    (void)MHD_add_response_header(m, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
    (void)MHD_add_response_header(m, "Referrer-Policy", "no-referrer");
    (void)MHD_add_response_header(m, "Cache-Control", "no-cache");
}

static enum MHD_Result not_found(struct mr_request *r)
{
    (void)mr_fail(&r->error, MR_ENOENT,
        "there is nothing at %.*s; /openapi.json lists what there is",
        (int)MR_MIN(r->uri.path.n, (size_t)300), r->uri.path.p);
    return mr_answer_error(r);
}

static enum MHD_Result answer_file(struct mr_request *r, int fd, const char *path)
{
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        (void)close(fd);
        return not_found(r);
    }
    char tag[64];
    (void)snprintf(tag, sizeof tag, "\"%llx-%llx\"", (unsigned long long)st.st_mtim.tv_sec,
        (unsigned long long)st.st_size);
    const char *known =
        MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "If-None-Match");
    bool is_known = mr_etag_is_known(mr_str(known), tag);
    struct MHD_Response *m;
    if (is_known) {
        (void)close(fd);
        m = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    } else {
        m = MHD_create_response_from_fd64((uint64_t)st.st_size, fd);
    }
    (void)MHD_add_response_header(m, "ETag", tag);
    add_page_headers(m);
    return mr_answer_queue(r, is_known ? 304 : 200, type_of(path), &m);
}

enum MHD_Result mr_static_answer(struct mr_request *r)
{
    bool is_root = mr_str_eq(r->uri.path, MR_STR("/"));
    if (r->http->dashboard_fd < 0) {
        if (!is_root) return not_found(r);
        struct MHD_Response *m = MHD_create_response_from_buffer(
            sizeof page - 1, mr_unconst(page), MHD_RESPMEM_PERSISTENT);
        add_page_headers(m);
        return mr_answer_queue(r, 200, "text/html; charset=utf-8", &m);
    }
    struct mr_str path;
    if (mr_uri_decode(&r->text, r->uri.path, false, "the path", &path, &r->error))
        return mr_answer_error(r);
    char relative[PATH_BYTES_MAX];
    if (path.n >= sizeof relative - 16) return not_found(r);
    (void)snprintf(relative, sizeof relative, "%.*s%s", (int)path.n - 1, path.p + 1,
        path.p[path.n - 1] == '/' ? "index.html" : "");
    int fd = open_beneath(r->http->dashboard_fd, relative);
    return fd < 0 ? not_found(r) : answer_file(r, fd, relative);
}
