/* Reads two streams at the same time on one thread: the states of a session, and the scores from
 * the session's channel. A stream that breaks is opened again after its last event. */
#include "cli/view/train_follow.h"

#include "base/alloc.h"
#include "cli/client/sse.h"
#include "cli/term/text.h"
#include "host/clock.h"
#include "host/os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AWAY_MAX (120 * MR_SECOND)
#define BEGIN_MAX (10 * MR_SECOND)
#define FINISH_MAX (30 * MR_SECOND)
#define AGAIN (500 * MR_MS)
#define PAGE 10000

enum { SESSION, SCORES, SIDES };

struct follow;

struct side { /* one of the two streams: state or scores */
    struct follow *f;
    struct mr_sse sse;
    struct mr_http_reply reply;
    struct mr_http_request request;
    char *url;
    char *resume;
    mr_time again; /* when the stream may be opened again */
};

struct follow {
    const struct mr_client *c;
    const char *id;
    const struct mr_train_follow_options *o;
    struct mr_train_view *view;
    struct mr_http_streams *streams;
    struct side sides[SIDES];
    int signal_pipe[2];
    unsigned interrupts;
    bool stop_asked; /* true: the trainer has confirmed the stop */
    mr_time since;   /* when the session began, on this machine's clock */
    mr_time heard;   /* time at which bytes last came */
    mr_time shown;   /* time at which the line of progress was last written */
};

/* ---- calls ----------------------------------------------------------------------------------- */

int mr_train_get(
    const struct mr_client *c, const char *id, struct mr_train_view *view, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    MR_AUTO(mr_free_ptr) char *escaped = mr_http_escape(mr_str(id));
    int err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e, "/v1/trainings/%s", escaped);
    if (err) return err;
    yyjson_val *training = yyjson_doc_get_root(doc);
    mr_train_view_document(view, mr_json_get_text(training, "document_json"));
    mr_train_view_take(view, doc, training);
    return MR_OK;
}

int mr_train_stop(const struct mr_client *c, const char *id, const char *reason, bool abandon,
    yyjson_doc **doc, struct mr_error *e)
{
    yyjson_mut_doc *body = mr_json_object();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(body);
    (void)yyjson_mut_obj_add_str(body, root, "reason", reason);
    (void)yyjson_mut_obj_add_bool(body, root, "abandon", abandon);
    MR_AUTO(mr_free_ptr) char *escaped = mr_http_escape(mr_str(id));
    return mr_client_put(c, "POST", &body, doc, e, "/v1/trainings/%s:stop", escaped);
}

/* Reads the scores after the last one that came in the stream. */
static int read_rest(struct follow *f, struct mr_error *e)
{
    struct mr_sse *sse = &f->sides[SCORES].sse;
    size_t got = PAGE;
    MR_AUTO(mr_free_ptr)
    char *channel = mr_http_escape(mr_str(mr_json_get_text(f->view->training, "channel")));
    while (got == PAGE) {
        yyjson_doc *doc = NULL;
        size_t max = 0;
        yyjson_val *entry = NULL;
        MR_AUTO(mr_free_ptr) char *after = mr_http_escape(mr_str(sse->id));
        int err = mr_client_call(f->c, "GET", (struct mr_str){0}, &doc, e,
            "/v1/channels/%s/entries?after_id=%s&entries_max=%d", channel, after, PAGE);
        if (err) return err == MR_ENOENT ? MR_OK : err;
        yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "entries"), got, max, entry)
        {
            mr_train_view_score(f->view, mr_json_get_text(entry, "value_json"));
            (void)snprintf(sse->id, sizeof sse->id, "%s", mr_json_get_text(entry, "id"));
        }
        got = max;
        yyjson_doc_free(doc);
    }
    return MR_OK;
}

/* ---- streams --------------------------------------------------------------------------------- */

static void on_session(void *ctx, const char *type, struct mr_str data)
{
    struct follow *f = ctx;
    yyjson_doc *doc = yyjson_read(data.p, data.n, 0);
    yyjson_val *training = yyjson_obj_get(yyjson_doc_get_root(doc), "training");
    if (!strcmp(type, "error") || !training) {
        yyjson_doc_free(doc);
        return;
    }
    mr_train_view_take(f->view, doc, training);
}

static void on_score(void *ctx, const char *type, struct mr_str data)
{
    struct follow *f = ctx;
    yyjson_doc *doc = yyjson_read(data.p, data.n, 0);
    const char *value = mr_json_get_text(yyjson_doc_get_root(doc), "value_json");
    if (strcmp(type, "error") != 0 && value[0]) mr_train_view_score(f->view, value);
    yyjson_doc_free(doc);
}

/* Handles bytes of a stream. Heartbeats set `heard`, too, because they show that the gateway is
 * there. */
static int on_bytes(void *ctx, const char *p, size_t n)
{
    struct side *s = ctx;
    s->f->heard = mr_clock_now();
    return mr_sse_take(&s->sse, p, n);
}

static void open_side(struct follow *f, unsigned i)
{
    struct side *s = &f->sides[i];
    size_t n = 0;
    mr_http_reply_fini(&s->reply);
    mr_http_reply_init(&s->reply);
    mr_sse_restart(&s->sse);
    mr_release(s->resume);
    s->resume = s->sse.id[0] ? mr_format("Last-Event-ID: %s", s->sse.id) : NULL;
    s->request = (struct mr_http_request){
        .method = "GET", .url = s->url, .ca = f->c->ca, .on_data = on_bytes, .ctx = s};
    s->request.headers[n++] = "Accept: text/event-stream";
    if (s->resume) s->request.headers[n++] = s->resume;
    if (f->c->authorization) s->request.headers[n++] = f->c->authorization;
    if (mr_http_streams_start(f->streams, i, &s->request, &s->reply, NULL))
        s->again = mr_clock_now() + AGAIN;
}

/* Handles the end of one of the two streams. Returns an error if the gateway has answered the
 * request for the session's states with a permanent error. MR_OK: the stream will be opened
 * again. */
static int on_end(struct follow *f, unsigned i, const struct mr_error *outcome, struct mr_error *e)
{
    struct side *s = &f->sides[i];
    int status = outcome->code ? 0 : s->reply.status;
    s->again = mr_clock_now() + AGAIN;
    if (status < 400 || status >= 500 || status == 429) return MR_OK;
    int err = mr_client_answer(&s->reply, e);
    if (i == SESSION && err != MR_EAWAY) return err;
    return MR_OK; /* no error: the channel does not exist before its first entry */
}

static int turn_streams(struct follow *f, struct mr_error *e)
{
    struct mr_error outcome[MR_HTTP_STREAMS_MAX];
    bool was_open[SIDES];
    mr_time now = mr_clock_now();
    for (unsigned i = 0; i < SIDES; i++) {
        if (!mr_http_streams_is_open(f->streams, i) && now >= f->sides[i].again) open_side(f, i);
        was_open[i] = mr_http_streams_is_open(f->streams, i);
    }
    mr_http_streams_wait(f->streams, f->signal_pipe[0], 100 * MR_MS, outcome);
    int err = MR_OK;
    for (unsigned i = 0; i < SIDES && !err; i++)
        if (was_open[i] && !mr_http_streams_is_open(f->streams, i))
            err = on_end(f, i, &outcome[i], e);
    return err;
}

/* ---- the terminal ---------------------------------------------------------------------------- */

static void on_signal(void *ctx, int number)
{
    struct follow *f = ctx;
    unsigned char byte = (unsigned char)number;
    (void)!write(f->signal_pipe[1], &byte, 1);
}

static void say(const struct follow *f, const char *text)
{
    if (!f->c->json) (void)fprintf(stderr, "%s%s\n", f->c->tty && !f->o->quiet ? "\n" : "", text);
}

static int take_signals(struct follow *f, struct mr_error *e)
{
    unsigned char bytes[16];
    ssize_t n = read(f->signal_pipe[0], bytes, sizeof bytes);
    f->interrupts += n > 0 ? (unsigned)n : 0;
    if (f->interrupts > 1) return mr_fail(e, MR_ECANCELED, "left while it runs");
    if (!f->interrupts || f->stop_asked) return MR_OK;
    int err = mr_train_stop(f->c, f->id, "stopped by Ctrl-C", false, NULL, e);
    if (!err) {
        f->stop_asked = true;
        say(f, "asked it to stop and to keep its model; Ctrl-C again leaves while it runs");
    }
    /* After a temporary error the next turn asks again. */
    return err == MR_EAWAY || err == MR_ETIMEOUT ? MR_OK : err;
}

static void show(struct follow *f)
{
    mr_time now = mr_clock_now();
    if (f->o->quiet || now - f->shown < (f->c->tty ? 100 * MR_MS : MR_SECOND)) return;
    f->shown = now;
    struct mr_buf line;
    struct mr_buf cut;
    mr_buf_init(&line, 4096);
    mr_buf_init(&cut, 8192);
    mr_train_view_line(f->view, now - f->since, &line);
    /* A live stream has a heartbeat every 15 s. */
    bool away = now - f->heard > 20 * MR_SECOND;
    if (away) mr_buf_add_text(&line, "  (no connection)");
    mr_text_add_truncated(mr_buf_str(&line), mr_text_live_columns(stderr), &cut);
    (void)fprintf(stderr, "%s%.*s%s", f->c->tty ? "\r" : "", MR_STR_ARG(mr_buf_str(&cut)),
        f->c->tty ? "\033[K" : "\n");
    (void)fflush(stderr);
    mr_buf_fini(&line);
    mr_buf_fini(&cut);
}

/* ---- all together ---------------------------------------------------------------------------- */

static int watch(struct follow *f, struct mr_error *e)
{
    int err = MR_OK;
    while (!err && !f->view->is_over) {
        err = turn_streams(f, e);
        if (!err) err = take_signals(f, e);
        if (!err) show(f);
        if (!err && !f->view->is_over && mr_clock_now() - f->heard > AWAY_MAX) {
            err = mr_train_get(
                /* Finds out whether the session is idle or the gateway is away. */
                f->c, f->id, f->view, e);
            f->heard = mr_clock_now();
        }
    }
    if (f->c->tty && !f->o->quiet) (void)fprintf(stderr, "\n");
    return err;
}

static bool is_away(int err, mr_time until)
{
    if ((err != MR_EAWAY && err != MR_ETIMEOUT) || mr_clock_now() > until) return false;
    mr_clock_sleep(AGAIN);
    return true;
}

/* Reads the session's state before the streams are opened. Retries, because the gateway may have
 * died since the session was created. */
static int begin(
    const struct mr_client *c, const char *id, struct mr_train_view *view, struct mr_error *e)
{
    mr_time until = mr_clock_now() + BEGIN_MAX;
    int err;
    do
        err = mr_train_get(c, id, view, e);
    while (is_away(err, until));
    return err;
}

/* Reads the last scores and the final state. Retries, because the trainer may be restarting. */
static int finish(struct follow *f, struct mr_error *e)
{
    mr_time until = mr_clock_now() + FINISH_MAX;
    int err;
    do {
        err = read_rest(f, e);
        if (!err) err = mr_train_get(f->c, f->id, f->view, e);
    } while (is_away(err, until));
    return err;
}

static void set_since(struct follow *f)
{
    uint64_t created = mr_json_get_u64(f->view->training, "created_ns");
    uint64_t wall = mr_clock_wall();
    f->since = f->heard - (mr_duration)(created && created < wall ? wall - created : 0);
}

int mr_train_follow(const struct mr_client *c, const char *id,
    const struct mr_train_follow_options *o, struct mr_train_view *view, struct mr_error *e)
{
    int err = begin(c, id, view, e);
    if (err) return err;
    struct follow f = {.c = c, .id = id, .o = o, .view = view, .heard = mr_clock_now()};
    f.sides[SESSION].f = f.sides[SCORES].f = &f;
    if (pipe2(f.signal_pipe, O_CLOEXEC | O_NONBLOCK))
        return mr_fail(e, MR_EIO, "pipe: %s", strerror(errno));
    MR_AUTO(mr_free_ptr) char *escaped = mr_http_escape(mr_str(id));
    MR_AUTO(mr_free_ptr)
    char *channel = mr_http_escape(mr_str(mr_json_get_text(view->training, "channel")));
    set_since(&f);
    mr_sse_init(&f.sides[SESSION].sse, on_session, &f);
    mr_sse_init(&f.sides[SCORES].sse, on_score, &f);
    f.sides[SESSION].url = mr_format("%s/v1/trainings/%s/events", c->url, escaped);
    f.sides[SCORES].url = mr_format("%s/v1/channels/%s/events", c->url, channel);
    f.streams = mr_http_streams_new();
    struct mr_signals *signals = mr_signal_open(on_signal, &f);
    err = watch(&f, e);
    mr_signal_close(&signals);
    mr_http_streams_free(&f.streams);
    if (!err) err = finish(&f, e);
    for (unsigned i = 0; i < SIDES; i++) {
        mr_sse_fini(&f.sides[i].sse);
        mr_http_reply_fini(&f.sides[i].reply);
        mr_release(f.sides[i].url);
        mr_release(f.sides[i].resume);
    }
    (void)close(f.signal_pipe[0]);
    (void)close(f.signal_pipe[1]);
    return err;
}
