/* Sends requests to the gateway and reads its answers in JSON. The gateway is that of --url, or
 * else that of the cluster that `up` started last. */
#include "cli/client/client.h"

#include "base/alloc.h"
#include "cli/client/paths.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the part ":8470" of a URL whose host is a name of loopback. NULL: the URL has another
 * host. */
static const char *loopback_port(const char *url)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host = strstr(url, "://");
    for (size_t i = 0; host && i < MR_ARRAY_LEN(hosts); i++) {
        size_t n = strlen(hosts[i]);
        if (!strncmp(host + 3, hosts[i], n) && host[3 + n] == ':') return host + 3 + n;
    }
    return NULL;
}

/* True: the URL means the gateway of `up`: the URLs are equal, or both have a name of loopback and
 * the same port. A tunnel to a gateway of another machine has another port, because `up` itself
 * listens on this port. */
static bool is_same(const char *url, const struct mr_last_cluster *last)
{
    const char *a = loopback_port(url);
    const char *b = loopback_port(last->url);
    return !strcmp(url, last->url) || (a && b && !strcmp(a, b));
}

/* Takes over what `up` wrote about its last cluster: the URL if the user gave none, the token if
 * the user gave neither URL nor token, and the CA if the user gave none and the URL is that of the
 * cluster. Also sets is_local. MR_EAWAY: there is neither a URL nor a cluster. */
static int add_last(char **token, struct mr_client *out, struct mr_error *e)
{
    struct mr_last_cluster last;
    bool is_given = out->url != NULL;
    int err = mr_last_cluster_read(&last, is_given ? NULL : e);
    if (err) return is_given ? MR_OK : err;
    bool is_it = !is_given || strcmp(out->url, last.url) == 0;
    if (!is_given) {
        out->url = mr_copy_text(last.url);
        if (!(*token)[0]) {
            mr_release(*token);
            *token = MR_STEAL(last.token);
        }
    }
    out->is_local = last.directory[0] && is_same(out->url, &last) && !access(last.directory, F_OK);
    if (is_it && last.ca[0] && !out->ca) out->ca = mr_copy_text(last.ca);
    mr_last_cluster_fini(&last);
    return MR_OK;
}

int mr_client_open(const struct mr_client_options *o, struct mr_client *out, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *token = mr_copy_text(o->token ? o->token : "");
    *out = (struct mr_client){.json = o->json, .tty = isatty(STDERR_FILENO) != 0};
    if (o->url && o->url[0]) {
        bool has_scheme = strncmp(o->url, "http://", 7) == 0 || strncmp(o->url, "https://", 8) == 0;
        out->url = mr_format("%s%s", has_scheme ? "" : "http://", o->url);
        size_t n = strlen(out->url);
        while (n && out->url[n - 1] == '/')
            out->url[--n] = 0;
    }
    if (o->tls_ca && o->tls_ca[0]) out->ca = mr_copy_text(o->tls_ca);
    int err = add_last(&token, out, e);
    if (err) return err;
    if (token[0]) out->authorization = mr_format("Authorization: Bearer %s", token);
    return MR_OK;
}

int mr_client_data(const struct mr_client *c, const char *data, char **path, struct mr_error *e)
{
    if (!data) return MR_OK;
    char *full = c->is_local ? realpath(data, NULL) : NULL;
    if (c->is_local && !full) return mr_fail(e, MR_ENOENT, "--data %s: %s", data, strerror(errno));
    *path = mr_copy_text(full ? full : data);
    free(full);
    return MR_OK;
}

void mr_client_fini(struct mr_client *c)
{
    mr_release(c->url);
    mr_release(c->authorization);
    mr_release(c->ca);
    *c = (struct mr_client){0};
}

/* Reads the error in an answer, whose body is {"code": 5, "message": "…"}. */
int mr_client_answer(const struct mr_http_reply *reply, struct mr_error *e)
{
    yyjson_doc *doc = yyjson_read((const char *)reply->body.p, reply->body.n, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *message = yyjson_get_str(yyjson_obj_get(root, "message"));
    int code = mr_err_from_grpc((int)yyjson_get_int(yyjson_obj_get(root, "code")));
    if (!code) code = MR_EUNKNOWN;
    int err = message ? mr_fail(e, code, "%s", message)
                      : mr_fail(e, code, "HTTP status %d", reply->status);
    yyjson_doc_free(doc);
    return err;
}

static int send_to(const struct mr_client *c, struct mr_http_request *request,
    struct mr_http_reply *reply, const char *path, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *url = mr_format("%s%s", c->url, path);
    size_t n = 0;
    while (request->headers[n])
        n++;
    if (c->authorization && n < MR_HTTP_HEADERS_MAX - 1) request->headers[n] = c->authorization;
    request->url = url;
    request->ca = c->ca;
    int err = mr_http_send(request, reply, e);
    request->url = NULL;
    if (err) return err;
    return reply->status >= 200 && reply->status < 300 ? MR_OK : mr_client_answer(reply, e);
}

MR_PRINTF(1, 0) static char *format_path(const char *fmt, va_list ap)
{
    char *path = mr_alloc(16384);
    (void)vsnprintf(path, 16384, fmt, ap);
    return path;
}

int mr_client_send(const struct mr_client *c, struct mr_http_request *request,
    struct mr_http_reply *reply, struct mr_error *e, const char *path_fmt, ...)
{
    va_list ap;
    va_start(ap, path_fmt);
    MR_AUTO(mr_free_ptr) char *path = format_path(path_fmt, ap);
    va_end(ap);
    return send_to(c, request, reply, path, e);
}

int mr_client_call(const struct mr_client *c, const char *method, struct mr_str body,
    yyjson_doc **doc, struct mr_error *e, const char *path_fmt, ...)
{
    va_list ap;
    va_start(ap, path_fmt);
    MR_AUTO(mr_free_ptr) char *path = format_path(path_fmt, ap);
    va_end(ap);
    struct mr_http_reply reply;
    struct mr_http_request request = {.method = method, .body = body};
    if (body.p) request.headers[0] = "Content-Type: application/json";
    mr_http_reply_init(&reply);
    int err = send_to(c, &request, &reply, path, e);
    if (!err && doc) {
        *doc = yyjson_read((const char *)reply.body.p, reply.body.n, YYJSON_READ_BIGNUM_AS_RAW);
        if (!*doc)
            err = mr_fail(
                e, MR_EFORMAT, "%s%s did not answer JSON: is it a millrace gateway?", c->url, path);
    }
    mr_http_reply_fini(&reply);
    return err;
}

/* Appends the rows of `page` to `all`, and takes over the page token of `page`. Returns the joined
 * document. */
static yyjson_doc *join_pages(yyjson_doc *all, yyjson_doc *page, const char *rows)
{
    yyjson_mut_doc *m = yyjson_doc_mut_copy(all, NULL);
    yyjson_mut_val *root = yyjson_mut_doc_get_root(m);
    yyjson_mut_val *list = yyjson_mut_obj_get(root, rows);
    size_t at = 0;
    size_t max = 0;
    yyjson_val *row = NULL;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(page), rows), at, max, row)
        yyjson_mut_arr_append(list, yyjson_val_mut_copy(m, row));
    yyjson_mut_val *token = yyjson_mut_obj_get(root, "next_page_token");
    yyjson_mut_set_str(token, mr_json_get_text(yyjson_doc_get_root(page), "next_page_token"));
    yyjson_doc *joined = yyjson_mut_doc_imut_copy(m, NULL);
    yyjson_mut_doc_free(m);
    yyjson_doc_free(all);
    yyjson_doc_free(page);
    return joined;
}

int mr_client_list(const struct mr_client *c, const char *path, const char *rows, yyjson_doc **doc,
    struct mr_error *e)
{
    yyjson_doc *all = NULL;
    int err = mr_client_call(c, "GET", (struct mr_str){0}, &all, e, "%s", path);
    for (;;) {
        const char *next = mr_json_get_text(yyjson_doc_get_root(all), "next_page_token");
        if (err || !next[0]) break;
        MR_AUTO(mr_free_ptr) char *token = mr_http_escape(mr_str(next));
        yyjson_doc *page = NULL;
        err = mr_client_call(c, "GET", (struct mr_str){0}, &page, e, "%s%spage_token=%s", path,
            strchr(path, '?') ? "&" : "?", token);
        if (!err) all = join_pages(all, page, rows);
    }
    if (err)
        yyjson_doc_free(all);
    else
        *doc = all;
    return err;
}

int mr_client_put(const struct mr_client *c, const char *method, yyjson_mut_doc **body,
    yyjson_doc **doc, struct mr_error *e, const char *path_fmt, ...)
{
    size_t n = 0;
    va_list ap;
    va_start(ap, path_fmt);
    MR_AUTO(mr_free_ptr) char *path = format_path(path_fmt, ap);
    va_end(ap);
    char *text = yyjson_mut_write(*body, 0, &n);
    yyjson_mut_doc_free(*body);
    *body = NULL;
    int err = mr_client_call(c, method, mr_str_of(text, n), doc, e, "%s", path);
    free(text);
    return err;
}

yyjson_mut_doc *mr_json_object(void)
{
    yyjson_mut_doc *d = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(d, yyjson_mut_obj(d));
    return d;
}

int mr_client_wrong_usage(const struct mr_config_spec *spec)
{
    const char *expected = strstr(spec->usage, "[flags] ");
    (void)fprintf(stderr, "%s: expected %s; see `%s --help`\n", spec->program,
        expected ? expected + strlen("[flags] ") : spec->usage, spec->program);
    return MR_EXIT_USAGE;
}

int mr_client_fail(const char *command, const struct mr_error *e)
{
    (void)fprintf(stderr, "millrace %s: %s\n", command, e->text);
    switch (e->code) {
    case MR_EAWAY: return MR_EXIT_AWAY;
    case MR_ENOENT: return MR_EXIT_NOT_FOUND;
    case MR_ETIMEOUT: return MR_EXIT_TIMEOUT;
    default: return MR_EXIT_FAILED;
    }
}

int mr_client_run(
    const struct mr_config_spec *spec, int argc, char **argv, void *config, mr_client_act act)
{
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    int code = MR_EXIT_OK;
    mr_config_load(spec, argc, argv, config, &rest);
    int err = mr_client_open(config, &c, &e);
    if (!err) err = act(&c, config, &rest, &code, &e);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    mr_config_fini(spec, config);
    return err ? mr_client_fail(argv[0], &e) : code;
}

int mr_client_show(const struct mr_client *c, void (*print)(yyjson_val *root), struct mr_error *e,
    const char *path_fmt, ...)
{
    va_list ap;
    va_start(ap, path_fmt);
    MR_AUTO(mr_free_ptr) char *path = format_path(path_fmt, ap);
    va_end(ap);
    yyjson_doc *doc = NULL;
    int err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e, "%s", path);
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json) print(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return err;
}

int mr_client_show_list(const struct mr_client *c, void (*print)(yyjson_val *root),
    const char *path, const char *rows, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    int err = mr_client_list(c, path, rows, &doc, e);
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json) print(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return err;
}

void mr_client_print(const yyjson_doc *doc)
{
    size_t n = 0;
    char *text = yyjson_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, &n);
    (void)fwrite(text, 1, n, stdout);
    (void)fputc('\n', stdout);
    free(text);
}

const char *mr_json_get_text(yyjson_val *object, const char *name)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, name));
    return text ? text : "";
}

uint64_t mr_json_get_u64(yyjson_val *object, const char *name)
{
    yyjson_val *v = yyjson_obj_get(object, name);
    if (yyjson_is_str(v)) return strtoull(yyjson_get_str(v), NULL, 10);
    return yyjson_get_uint(v);
}

double mr_json_get_real(yyjson_val *object, const char *name)
{
    yyjson_val *v = yyjson_obj_get(object, name);
    return yyjson_is_real(v) ? yyjson_get_real(v) : (double)yyjson_get_sint(v);
}

bool mr_json_get_bool(yyjson_val *object, const char *name)
{
    return yyjson_get_bool(yyjson_obj_get(object, name));
}

const char *mr_job_state_word(const char *state)
{
    static const char *const words[][2] = {{"JOB_PENDING", "pending"}, {"JOB_RUNNING", "running"},
        {"JOB_DONE", "done"}, {"JOB_FAILED", "failed"}, {"JOB_CANCELLED", "cancelled"}};
    for (size_t i = 0; i < MR_ARRAY_LEN(words); i++)
        if (!strcmp(words[i][0], state)) return words[i][1];
    return state;
}
