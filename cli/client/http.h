/* HTTP to the gateway, over libcurl; the only file that knows it. One request at a time, or a few
 * streams read together on one thread. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/time.h"

#include <stdbool.h>

#define MR_HTTP_HEADERS_MAX 8

struct mr_http_request {
    const char *method; /* "GET" */
    const char *url;
    const char *ca; /* of an https: URL: a file with the CA that is believed; NULL: the system's */
    bool any_certificate; /* it is not verified: for what says and asks nothing secret */
    const char *headers[MR_HTTP_HEADERS_MAX]; /* "Accept: application/json"; a NULL ends */
    struct mr_str body;                       /* or: */
    const char *body_path;                    /* a file to send, in pieces */
    mr_duration timeout_ns;                   /* 0: none */
    /* The body of a 2xx answer, piece by piece; NULL: it goes to `reply`. Not MR_OK ends the
     * request. */
    int (*on_data)(void *ctx, const char *p, size_t n);
    void *ctx;
};

struct mr_http_reply {
    int status;
    struct mr_buf body; /* of an error always; of 2xx without on_data */
    char content_type[128];
};

void mr_http_reply_init(struct mr_http_reply *r);
void mr_http_reply_fini(struct mr_http_reply *r);

/* MR_EAWAY: no answer, or it broke off. Any status is MR_OK here. */
int mr_http_send(
    const struct mr_http_request *request, struct mr_http_reply *reply, struct mr_error *e);
/* A question to a gateway of our own, without a token; its certificate is not looked at. */
int mr_http_get(
    const char *url, mr_duration timeout_ns, struct mr_buf *out, int *status, struct mr_error *e);

/* GETs that are read together, for streams that do not end. `request` and `reply` are lent until
 * the stream has ended or was dropped; on_data is called inside mr_http_streams_wait. */
#define MR_HTTP_STREAMS_MAX 4
struct mr_http_streams;

struct mr_http_streams *mr_http_streams_new(void);
void mr_http_streams_free(struct mr_http_streams **streams);
/* `slot` is below MR_HTTP_STREAMS_MAX and free. */
int mr_http_streams_start(struct mr_http_streams *s, unsigned slot,
    const struct mr_http_request *request, struct mr_http_reply *reply, struct mr_error *e);
bool mr_http_streams_is_open(const struct mr_http_streams *s, unsigned slot);
void mr_http_streams_drop(struct mr_http_streams *s, unsigned slot);
/* Waits until something came, `fd` (-1: none) is readable, or `timeout` is over. An ended stream's
 * slot is free again, and its outcome is in `outcome[slot]`, as mr_http_send returns it. */
void mr_http_streams_wait(struct mr_http_streams *s, int fd, mr_duration timeout,
    struct mr_error outcome[MR_HTTP_STREAMS_MAX]);

/* `text` with everything escaped that is special in a path segment or a query; mr_release it. */
char *mr_http_escape(struct mr_str text);
