/* HTTP to the gateway: one request at a time, or a few streams that are read together on one
 * thread. No other file uses libcurl. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/time.h"

#include <stdbool.h>

#define MR_HTTP_HEADERS_MAX 8

struct mr_http_request {
    const char *method; /* "GET" */
    const char *url;
    /* For https: a file with the CA to trust; NULL: the CAs of the system. */
    const char *ca;
    /* True: the certificate is not verified. For requests without secrets. */
    bool any_certificate;
    /* For example "Accept: application/json"; NULL at the end. */
    const char *headers[MR_HTTP_HEADERS_MAX];
    struct mr_str body; /* p NULL: none */
    /* A file whose content is sent in pieces, instead of `body`; NULL: none. */
    const char *body_path;
    mr_duration timeout_ns; /* 0: none */
    /* Receives the body of a 2xx answer in pieces. If on_data returns an error, the request ends.
     * NULL: the body goes to `reply`. */
    int (*on_data)(void *ctx, const char *p, size_t n);
    void *ctx;
};

struct mr_http_reply {
    int status;
    struct mr_buf body; /* body of an error, or of a 2xx answer without on_data */
    char content_type[128];
};

void mr_http_reply_init(struct mr_http_reply *r);
void mr_http_reply_fini(struct mr_http_reply *r);

/* Sends a request and waits for the answer. MR_OK: the answer is complete, whatever its status.
 * MR_EAWAY: there was no complete answer. MR_ETIMEOUT: there was none within timeout_ns. MR_ENOENT:
 * the file body_path cannot be read. An error of on_data is returned, too. */
int mr_http_send(
    const struct mr_http_request *request, struct mr_http_reply *reply, struct mr_error *e);
/* Sends a GET without a token. The server's certificate is not verified. */
int mr_http_get(
    const char *url, mr_duration timeout_ns, struct mr_buf *out, int *status, struct mr_error *e);

/* Several requests at the same time, for streams that do not end. `request` and `reply` are lent
 * until the stream has ended or was dropped. on_data is called inside mr_http_streams_wait. */
#define MR_HTTP_STREAMS_MAX 4
struct mr_http_streams;

struct mr_http_streams *mr_http_streams_new(void);
void mr_http_streams_free(struct mr_http_streams **streams);
/* Starts a stream. `slot` is below MR_HTTP_STREAMS_MAX and has no stream. */
int mr_http_streams_start(struct mr_http_streams *s, unsigned slot,
    const struct mr_http_request *request, struct mr_http_reply *reply, struct mr_error *e);
bool mr_http_streams_is_open(const struct mr_http_streams *s, unsigned slot);
void mr_http_streams_drop(struct mr_http_streams *s, unsigned slot);
/* Waits until bytes come, `fd` (-1: none) is readable, or `timeout` is over. When a stream has
 * ended, its slot is free again, and outcome[slot] is the error that mr_http_send would return. */
void mr_http_streams_wait(struct mr_http_streams *s, int fd, mr_duration timeout,
    struct mr_error outcome[MR_HTTP_STREAMS_MAX]);

/* Returns `text`, percent-encoded for a path segment or a query, to be freed with mr_release. */
char *mr_http_escape(struct mr_str text);
