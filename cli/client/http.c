/* Requests with libcurl: its easy interface for one request, its multi interface for several
 * streams. A struct exchange is one request with its answer. */
#include "cli/client/http.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define REPLY_BYTES_MAX ((size_t)1 << 30)

struct exchange {
    CURL *curl;
    const struct mr_http_request *request;
    struct mr_http_reply *reply;
    FILE *file;
    struct curl_slist *headers;
    struct mr_error refused; /* the error of the callback request->on_data */
    char why[CURL_ERROR_SIZE];
};

void mr_http_reply_init(struct mr_http_reply *r)
{
    *r = (struct mr_http_reply){0};
    mr_buf_init(&r->body, REPLY_BYTES_MAX);
}

void mr_http_reply_fini(struct mr_http_reply *r)
{
    mr_buf_fini(&r->body);
}

/* Passes bytes to on_data. An error of on_data comes from this machine and not from the gateway, so
 * the request is not repeated. */
static int give_away(struct exchange *x, const char *p, size_t n)
{
    errno = 0;
    int err = x->request->on_data(x->request->ctx, p, n);
    if (err == MR_EIO)
        (void)mr_fail(&x->refused, err, "cannot write the answer: %s", strerror(errno));
    else if (err)
        (void)mr_fail(
            &x->refused, err, "%s: cannot use the answer: %s", x->request->url, mr_err_words(err));
    return err;
}

static size_t take(char *p, size_t size, size_t count, void *ctx)
{
    struct exchange *x = ctx;
    size_t n = size * count;
    long status = 0;
    (void)curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    if (x->request->on_data && status >= 200 && status < 300) return give_away(x, p, n) ? 0 : n;
    mr_buf_add(&x->reply->body, p, n);
    return mr_buf_status(&x->reply->body) ? 0 : n;
}

static size_t give(char *p, size_t size, size_t count, void *ctx)
{
    struct exchange *x = ctx;
    return fread(p, 1, size * count, x->file);
}

static int set_body(struct exchange *x, struct mr_error *e)
{
    const struct mr_http_request *q = x->request;
    if (!q->body_path) {
        if (!q->body.p) return MR_OK;
        (void)curl_easy_setopt(x->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
        (void)curl_easy_setopt(x->curl, CURLOPT_POSTFIELDS, q->body.p);
        return MR_OK;
    }
    struct stat st;
    x->file = fopen(q->body_path, "rbe");
    if (!x->file || fstat(fileno(x->file), &st))
        return mr_fail(e, MR_ENOENT, "%s: %s", q->body_path, strerror(errno));
    (void)curl_easy_setopt(x->curl, CURLOPT_UPLOAD, 1L);
    (void)curl_easy_setopt(x->curl, CURLOPT_READFUNCTION, give);
    (void)curl_easy_setopt(x->curl, CURLOPT_READDATA, x);
    (void)curl_easy_setopt(x->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)st.st_size);
    return MR_OK;
}

static void set_options(struct exchange *x, struct curl_slist *headers, char *why)
{
    const struct mr_http_request *q = x->request;
    (void)curl_easy_setopt(x->curl, CURLOPT_URL, q->url);
    (void)curl_easy_setopt(x->curl, CURLOPT_CUSTOMREQUEST, q->method);
    (void)curl_easy_setopt(x->curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(x->curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(x->curl, CURLOPT_TIMEOUT_MS, (long)(q->timeout_ns / MR_MS));
    (void)curl_easy_setopt(x->curl, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
    (void)curl_easy_setopt(x->curl, CURLOPT_ERRORBUFFER, why);
    (void)curl_easy_setopt(x->curl, CURLOPT_WRITEFUNCTION, take);
    (void)curl_easy_setopt(x->curl, CURLOPT_WRITEDATA, x);
    (void)curl_easy_setopt(x->curl, CURLOPT_NOPROXY, "*");
    if (q->ca) {
        (void)curl_easy_setopt(x->curl, CURLOPT_CAINFO, q->ca);
        (void)curl_easy_setopt(x->curl, CURLOPT_CAPATH, NULL);
    }
    if (!q->any_certificate) return;
    (void)curl_easy_setopt(x->curl, CURLOPT_SSL_VERIFYPEER, 0L);
    (void)curl_easy_setopt(x->curl, CURLOPT_SSL_VERIFYHOST, 0L);
}

/* Prepares a request without sending it. */
static int open_exchange(struct exchange *x, const struct mr_http_request *request,
    struct mr_http_reply *reply, struct mr_error *e)
{
    *x = (struct exchange){.curl = curl_easy_init(), .request = request, .reply = reply};
    if (!x->curl) return mr_fail(e, MR_EINTERNAL, "libcurl does not start");
    /* The empty field suppresses libcurl's "Expect: 100-continue", which would cost a round trip.
     */
    x->headers = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < MR_HTTP_HEADERS_MAX && request->headers[i]; i++)
        x->headers = curl_slist_append(x->headers, request->headers[i]);
    set_options(x, x->headers, x->why);
    return set_body(x, e);
}

/* Returns a text to add to libcurl's message: which flag or URL would help. */
static const char *advice(CURLcode code, const char *url)
{
    bool is_https = strncmp(url, "https://", 8) == 0;
    switch ((int)code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return " (--tls-ca or MILLRACE_TLS_CA: the file of the CA that has signed the gateway's "
               "certificate; the certificate must name this host)";
    case CURLE_SSL_CONNECT_ERROR: return " (without TLS the URL begins with http://)";
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR: return is_https ? "" : " (with TLS the URL begins with https://)";
    default: return "";
    }
}

static int read_outcome(struct exchange *x, CURLcode code, struct mr_error *e)
{
    long status = 0;
    char *type = NULL;
    const char *url = x->request->url;
    (void)curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(x->curl, CURLINFO_CONTENT_TYPE, &type);
    x->reply->status = (int)status;
    (void)snprintf(x->reply->content_type, sizeof x->reply->content_type, "%s", type ? type : "");
    if (!code) return MR_OK;
    if (x->refused.code) return mr_fail(e, x->refused.code, "%s", x->refused.text);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return mr_fail(e, MR_ETIMEOUT, "%s: no answer in time", url);
    return mr_fail(e, MR_EAWAY, "%s: %s%s", url, x->why[0] ? x->why : curl_easy_strerror(code),
        advice(code, url));
}

static void close_exchange(struct exchange *x)
{
    curl_easy_cleanup(x->curl);
    curl_slist_free_all(x->headers);
    if (x->file) (void)fclose(x->file);
    *x = (struct exchange){0};
}

int mr_http_send(
    const struct mr_http_request *request, struct mr_http_reply *reply, struct mr_error *e)
{
    struct exchange x;
    int err = open_exchange(&x, request, reply, e);
    if (!err) err = read_outcome(&x, curl_easy_perform(x.curl), e);
    close_exchange(&x);
    return err;
}

/* ---- streams --------------------------------------------------------------------------------- */

struct mr_http_streams {
    CURLM *multi;
    struct exchange slots[MR_HTTP_STREAMS_MAX];
};

struct mr_http_streams *mr_http_streams_new(void)
{
    struct mr_http_streams *s = mr_alloc(sizeof *s);
    s->multi = curl_multi_init();
    mr_assert(s->multi);
    return s;
}

void mr_http_streams_free(struct mr_http_streams **streams)
{
    struct mr_http_streams *s = *streams;
    if (!s) return;
    for (unsigned i = 0; i < MR_HTTP_STREAMS_MAX; i++)
        mr_http_streams_drop(s, i);
    (void)curl_multi_cleanup(s->multi);
    mr_release(s);
    *streams = NULL;
}

bool mr_http_streams_is_open(const struct mr_http_streams *s, unsigned slot)
{
    return s->slots[slot].curl != NULL;
}

int mr_http_streams_start(struct mr_http_streams *s, unsigned slot,
    const struct mr_http_request *request, struct mr_http_reply *reply, struct mr_error *e)
{
    mr_assert(slot < MR_HTTP_STREAMS_MAX);
    mr_assert(!s->slots[slot].curl);
    /* The struct must not move, because libcurl keeps its address. */
    struct exchange *x = &s->slots[slot];
    int err = open_exchange(x, request, reply, e);
    if (!err && curl_multi_add_handle(s->multi, x->curl))
        err = mr_fail(e, MR_EINTERNAL, "libcurl cannot start another stream");
    if (err) close_exchange(x);
    return err;
}

void mr_http_streams_drop(struct mr_http_streams *s, unsigned slot)
{
    struct exchange *x = &s->slots[slot];
    if (!x->curl) return;
    (void)curl_multi_remove_handle(s->multi, x->curl);
    close_exchange(x);
}

void mr_http_streams_wait(struct mr_http_streams *s, int fd, mr_duration timeout,
    struct mr_error outcome[MR_HTTP_STREAMS_MAX])
{
    int open = 0;
    int left = 0;
    struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
    (void)curl_multi_perform(s->multi, &open);
    (void)curl_multi_poll(s->multi, &extra, fd < 0 ? 0 : 1, (int)(timeout / MR_MS), NULL);
    (void)curl_multi_perform(s->multi, &open);
    for (CURLMsg *m = NULL; (m = curl_multi_info_read(s->multi, &left));) {
        for (unsigned i = 0; i < MR_HTTP_STREAMS_MAX; i++) {
            if (m->msg != CURLMSG_DONE || !m->easy_handle || s->slots[i].curl != m->easy_handle)
                continue;
            outcome[i] = (struct mr_error){0};
            (void)read_outcome(&s->slots[i], m->data.result, &outcome[i]);
            mr_http_streams_drop(s, i);
            break; /* `m` was freed together with its handle */
        }
    }
}

int mr_http_get(
    const char *url, mr_duration timeout_ns, struct mr_buf *out, int *status, struct mr_error *e)
{
    struct mr_http_reply reply;
    const struct mr_http_request request = {
        .method = "GET", .url = url, .timeout_ns = timeout_ns, .any_certificate = true};
    mr_http_reply_init(&reply);
    int err = mr_http_send(&request, &reply, e);
    *status = reply.status;
    mr_buf_add(out, reply.body.p, reply.body.n);
    mr_http_reply_fini(&reply);
    return err;
}

char *mr_http_escape(struct mr_str text)
{
    struct mr_buf out;
    mr_buf_init(&out, text.n * 3 + 1);
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain)
            mr_buf_add_byte(&out, c);
        else
            mr_buf_printf(&out, "%%%02X", c);
    }
    char *copy = mr_alloc(out.n + 1);
    if (out.n) memcpy(copy, out.p, out.n);
    mr_buf_fini(&out);
    return copy;
}
