/* `millrace top`: shows the cluster's state again and again: in place on a terminal, as plain lines
 * elsewhere. On a terminal, requests run beside the handling of keys and signals. */
#include "base/alloc.h"
#include "base/units.h"
#include "cli/internal.h"
#include "cli/term/screen.h"
#include "cli/term/text.h"
#include "host/clock.h"

#include <inttypes.h>
#include <unistd.h>

#define AWAY_MAX (60 * MR_SECOND)
#define ANSWER_MAX (5 * MR_SECOND)
#define TURN (200 * MR_MS)

enum { INFO, WORKERS, ANSWERS };

struct config {
    struct mr_client_options client;
    mr_duration every;
    uint64_t count;
};

static const struct mr_option top_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "every",
        .type = MR_OPTION_DURATION,
        .value = "TIME",
        .init = "1s",
        .help = "interval between updates",
        .at = offsetof(struct config, every),
        .min = 50 * MR_MS,
        .max = 3600 * MR_SECOND},
    {.name = "count",
        .letter = 'n',
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "print N tables one after another (default: update in place until q or Ctrl-C)",
        .at = offsetof(struct config, count)},
};
const struct mr_config_spec mr_top_spec = {.program = "millrace top",
    .summary = "Shows what the cluster does, live.",
    .examples = "  millrace top\n  millrace top -n 1 --json\n",
    .options = top_options,
    .options_count = MR_ARRAY_LEN(top_options)};

/* The latest answers of the gateway. */
struct view {
    yyjson_doc *docs[ANSWERS];
    mr_time at;
    double rate; /* finished tasks a second */
};

static void view_take(struct view *v, yyjson_doc *docs[ANSWERS])
{
    mr_time now = mr_clock_now();
    uint64_t before = mr_json_get_u64(yyjson_doc_get_root(v->docs[INFO]), "tasks_done");
    uint64_t done = mr_json_get_u64(yyjson_doc_get_root(docs[INFO]), "tasks_done");
    v->rate = v->at && done > before ? (double)(done - before) * 1e9 / (double)(now - v->at) : 0;
    v->at = now;
    for (unsigned i = 0; i < ANSWERS; i++) {
        yyjson_doc_free(v->docs[i]);
        v->docs[i] = MR_STEAL(docs[i]);
    }
}

static void view_fini(struct view *v)
{
    for (unsigned i = 0; i < ANSWERS; i++)
        yyjson_doc_free(v->docs[i]);
}

static void write_stores(yyjson_val *info, struct mr_buf *out)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *s = NULL;
    yyjson_arr_foreach(yyjson_obj_get(info, "store"), at, max, s)
    {
        char used[MR_BYTES_TEXT_MAX];
        char all[MR_BYTES_TEXT_MAX];
        mr_bytes_text(mr_json_get_u64(s, "used_bytes"), used);
        mr_bytes_text(mr_json_get_u64(s, "memory_bytes"), all);
        mr_buf_printf(out, "store %s: %s of %s, %" PRIu64 " objects\n", mr_json_get_text(s, "node"),
            used, all, mr_json_get_u64(s, "objects"));
    }
}

static void view_write(const struct view *v, unsigned columns, struct mr_buf *out)
{
    yyjson_val *info = yyjson_doc_get_root(v->docs[INFO]);
    struct mr_buf line;
    mr_buf_init(&line, MR_CLUSTER_BYTES_MAX);
    mr_buf_printf(&line,
        "millrace %s, epoch %" PRIu64 ": %s%s, %" PRIu64 " jobs running, %" PRIu64
        " tasks done (%.0f a second)\n",
        mr_json_get_text(info, "version"), mr_json_get_u64(info, "epoch"),
        mr_json_get_bool(info, "ready") ? "ready" : "not ready: ",
        mr_json_get_text(info, "not_ready"), mr_json_get_u64(info, "jobs_running"),
        mr_json_get_u64(info, "tasks_done"), v->rate);
    write_stores(info, &line);
    mr_text_add_wrapped(mr_buf_str(&line), 0, 2, columns, out);
    mr_buf_fini(&line);
    mr_workers_write(yyjson_doc_get_root(v->docs[WORKERS]), columns, out);
}

static void view_print(const struct view *v)
{
    struct mr_buf out;
    mr_buf_init(&out, MR_CLUSTER_BYTES_MAX);
    view_write(v, mr_text_columns(stdout), &out);
    (void)fwrite(out.p, 1, out.n, stdout);
    (void)fflush(stdout);
    mr_buf_fini(&out);
}

static const char *const paths[ANSWERS] = {"/v1/cluster", "/v1/workers"};

/* ---- plain lines ----------------------------------------------------------------------------- */

static int print_on(const struct mr_client *c, const struct config *k, struct mr_error *e)
{
    struct view v = {0};
    int err = MR_OK;
    for (uint64_t i = 0; !err && (!k->count || i < k->count); i++) {
        yyjson_doc *docs[ANSWERS] = {0};
        if (i) mr_clock_sleep(k->every);
        err = mr_client_call(c, "GET", (struct mr_str){0}, &docs[INFO], e, "%s", paths[INFO]);
        if (!err) err = mr_client_list(c, paths[WORKERS], "workers", &docs[WORKERS], e);
        if (!err && c->json) mr_client_print(docs[INFO]);
        if (!err) view_take(&v, docs);
        if (!err && !c->json) view_print(&v);
        for (unsigned a = 0; a < ANSWERS; a++)
            yyjson_doc_free(docs[a]);
    }
    view_fini(&v);
    return err;
}

/* ---- in place -------------------------------------------------------------------------------- */

struct top {
    const struct mr_client *c;
    struct mr_screen *screen;
    struct mr_http_streams *streams;
    struct mr_http_request requests[ANSWERS];
    struct mr_http_reply replies[ANSWERS];
    char *urls[ANSWERS];
    struct view view;
    /* The reason why there is no answer; code 0: there is an answer. */
    struct mr_error why;
    mr_time away_since;
    bool is_left;
};

static void draw(struct top *t)
{
    struct mr_buf out;
    unsigned columns = mr_screen_columns(t->screen);
    mr_buf_init(&out, MR_CLUSTER_BYTES_MAX);
    if (t->why.code)
        mr_buf_printf(&out, "no answer for %.0f s: %s\n",
            (double)(mr_clock_now() - t->away_since) / 1e9, t->why.text);
    if (t->view.at) view_write(&t->view, columns, &out);
    mr_buf_add_text(&out, "\nq: leave\n");
    mr_screen_draw(t->screen, mr_buf_str(&out));
    mr_buf_fini(&out);
}

/* Waits for an answer, a key or a signal, for at most the time `most` and at most TURN. Draws the
 * screen again if a signal asks for it, and notes if the user leaves. */
static void turn(struct top *t, mr_duration most, struct mr_error outcome[MR_HTTP_STREAMS_MAX])
{
    mr_http_streams_wait(t->streams, mr_screen_fd(t->screen), MR_MIN(most, TURN), outcome);
    enum mr_screen_event event = mr_screen_take(t->screen);
    t->is_left = t->is_left || event == MR_SCREEN_LEAVE;
    if (event == MR_SCREEN_REDRAW) draw(t);
}

static void start(struct top *t, unsigned i)
{
    t->requests[i] = (struct mr_http_request){
        .method = "GET", .url = t->urls[i], .ca = t->c->ca, .timeout_ns = ANSWER_MAX};
    if (t->c->authorization) t->requests[i].headers[0] = t->c->authorization;
    mr_http_reply_fini(&t->replies[i]);
    mr_http_reply_init(&t->replies[i]);
}

static int ask(struct top *t, yyjson_doc *docs[ANSWERS], struct mr_error *e)
{
    struct mr_error outcome[MR_HTTP_STREAMS_MAX] = {0};
    bool is_open = true;
    int err = MR_OK;
    for (unsigned i = 0; i < ANSWERS && !err; i++) {
        start(t, i);
        err = mr_http_streams_start(t->streams, i, &t->requests[i], &t->replies[i], e);
    }
    while (!err && is_open && !t->is_left) {
        is_open = false;
        turn(t, TURN, outcome);
        for (unsigned i = 0; i < ANSWERS; i++)
            is_open = is_open || mr_http_streams_is_open(t->streams, i);
    }
    for (unsigned i = 0; i < ANSWERS; i++) {
        mr_http_streams_drop(t->streams, i);
        if (err || t->is_left) continue;
        const struct mr_http_reply *r = &t->replies[i];
        if (outcome[i].code)
            err = mr_fail(e, outcome[i].code, "%s", outcome[i].text);
        else if (r->status != 200)
            err = mr_client_answer(r, e);
        else
            docs[i] = yyjson_read((const char *)r->body.p, r->body.n, 0);
    }
    return err;
}

/* Requests the state. A temporary failure is shown on the screen; it becomes the returned error
 * when it has lasted for AWAY_MAX. */
static int look(struct top *t, struct mr_error *e)
{
    yyjson_doc *docs[ANSWERS] = {0};
    struct mr_error why = {0};
    int err = ask(t, docs, &why);
    mr_time now = mr_clock_now();
    if (!err && !t->is_left) view_take(&t->view, docs);
    for (unsigned i = 0; i < ANSWERS; i++)
        yyjson_doc_free(docs[i]);
    if (err && !t->why.code) t->away_since = now;
    t->why = why;
    bool may_pass = err == MR_EAWAY || err == MR_ETIMEOUT;
    if (err && (!may_pass || now - t->away_since > AWAY_MAX))
        return mr_fail(e, err, "%s", why.text);
    return MR_OK;
}

static int draw_on(const struct mr_client *c, const struct config *k, struct mr_error *e)
{
    struct top t = {.c = c, .screen = mr_screen_open(), .streams = mr_http_streams_new()};
    struct mr_error outcome[MR_HTTP_STREAMS_MAX];
    int err = MR_OK;
    for (unsigned i = 0; i < ANSWERS; i++) {
        t.urls[i] = mr_format("%s%s", c->url, paths[i]);
        mr_http_reply_init(&t.replies[i]);
    }
    while (!err && !t.is_left) {
        err = look(&t, e);
        if (!err && !t.is_left) draw(&t);
        mr_time until = mr_clock_now() + k->every;
        for (mr_time now; !err && !t.is_left && (now = mr_clock_now()) < until;)
            turn(&t, until - now, outcome);
    }
    mr_http_streams_free(&t.streams);
    view_fini(&t.view);
    for (unsigned i = 0; i < ANSWERS; i++) {
        mr_http_reply_fini(&t.replies[i]);
        mr_release(t.urls[i]);
    }
    mr_screen_close(&t.screen);
    return err;
}

static int top(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    const struct config *k = config;
    bool is_plain = k->count || c->json || !isatty(STDOUT_FILENO);
    (void)rest;
    (void)code;
    return is_plain ? print_on(c, k, e) : draw_on(c, k, e);
}

int mr_command_top(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_top_spec, argc, argv, &k, top);
}
