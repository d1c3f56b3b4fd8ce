/* Reads one stream on one thread, in turns of 200 ms. A stream whose connection breaks is opened
 * again, until the gateway has been silent for a minute. */
#include "cli/client/stream.h"

#include "base/alloc.h"
#include "host/clock.h"

#include <stdio.h>

/* The gateway is away after this time without bytes. It sends a heartbeat every 15 s. */
#define AWAY_MAX (60 * MR_SECOND)
#define AGAIN (200 * MR_MS)
#define TURN (200 * MR_MS)

struct reading {
    const struct mr_stream *s;
    struct mr_http_streams *streams;
    struct mr_http_request request;
    struct mr_http_reply reply;
    char *url;
    char resume[MR_SSE_ID_BYTES_MAX + 32];
    /* Time spent waiting without bytes. Time while this process was stopped does not count. */
    mr_duration silent;
    mr_time again; /* when the stream may be opened again */
};

static int on_bytes(void *ctx, const char *p, size_t n)
{
    struct reading *r = ctx;
    r->silent = 0;
    return mr_sse_take(r->s->sse, p, n);
}

static int start(struct reading *r, struct mr_error *e)
{
    const struct mr_client *c = r->s->client;
    size_t n = 0;
    mr_http_reply_fini(&r->reply);
    mr_http_reply_init(&r->reply);
    mr_sse_restart(r->s->sse);
    r->request = (struct mr_http_request){
        .method = "GET", .url = r->url, .ca = c->ca, .on_data = on_bytes, .ctx = r};
    r->request.headers[n++] = "Accept: text/event-stream";
    (void)snprintf(r->resume, sizeof r->resume, "Last-Event-ID: %s", r->s->sse->id);
    if (r->s->sse->id[0]) r->request.headers[n++] = r->resume;
    if (c->authorization) r->request.headers[n++] = c->authorization;
    return mr_http_streams_start(r->streams, 0, &r->request, &r->reply, e);
}

/* Returns the outcome of a connection that has ended. MR_EAWAY: the caller connects again. */
static int outcome_of(struct reading *r, const struct mr_error *outcome, struct mr_error *e)
{
    if (outcome->code) return mr_fail(e, outcome->code, "%s", outcome->text);
    if (r->reply.status < 200 || r->reply.status >= 300) return mr_client_answer(&r->reply, e);
    r->silent = 0;
    return MR_OK;
}

/* Opens the connection if it is closed, and reads for at most the time TURN. `*is_end` becomes true
 * if the connection has ended with a complete answer. MR_EAWAY: the connection broke. */
static int turn(struct reading *r, bool *is_end, struct mr_error *e)
{
    struct mr_error outcome[MR_HTTP_STREAMS_MAX];
    bool was_open = mr_http_streams_is_open(r->streams, 0);
    int err = MR_OK;
    if (!was_open && mr_clock_now() >= r->again) {
        err = start(r, e);
        was_open = !err;
    }
    if (err) return err;
    mr_time before = mr_clock_now();
    r->silent += TURN;
    mr_http_streams_wait(r->streams, r->s->fd, TURN, outcome);
    if (r->silent) r->silent -= TURN - MR_MIN(mr_clock_now() - before, TURN);
    if (!was_open || mr_http_streams_is_open(r->streams, 0)) return MR_OK;
    /* The pause gives a gateway or scheduler time to restart. */
    r->again = mr_clock_now() + AGAIN;
    err = outcome_of(r, &outcome[0], e);
    *is_end = !err;
    return err;
}

int mr_stream_read(const struct mr_stream *s, struct mr_error *e)
{
    struct reading r = {.s = s};
    int err = MR_OK;
    bool is_away = false;
    bool has_reason = false;
    mr_http_reply_init(&r.reply);
    r.url = mr_format("%s%s", s->client->url, s->path);
    r.streams = mr_http_streams_new();
    while (!is_away) {
        bool is_end = false;
        err = turn(&r, &is_end, e);
        if (s->is_over(s->ctx)) {
            err = MR_OK;
            break;
        }
        if (is_end && s->ends) break;
        if (err && err != MR_EAWAY) break;
        has_reason = err || (has_reason && r.silent);
        is_away = r.silent > AWAY_MAX;
        if (is_away && !err)
            err = has_reason ? MR_EAWAY
                             : mr_fail(e, MR_EAWAY, "%s: nothing was received for a minute", r.url);
    }
    mr_http_streams_free(&r.streams);
    mr_http_reply_fini(&r.reply);
    mr_release(r.url);
    return err;
}
