/* Shows a job while its events arrive. On a terminal, while no task ends, the job's state is also
 * requested once a second. */
#include "cli/view/follow.h"

#include "base/alloc.h"
#include "cli/view/progress.h"
#include "cli/term/screen.h"
#include "cli/client/stream.h"
#include "cli/term/text.h"
#include "host/clock.h"

#include <inttypes.h>
#include <string.h>

#define DRAWN_EVERY (500 * MR_MS)
#define ASKED_EVERY MR_SECOND
#define PICTURE_BYTES_MAX ((size_t)1 << 20)

struct follow {
    const struct mr_client *c;
    const char *path; /* path of the job's resource */
    enum mr_follow_style style;
    struct mr_sse sse;
    struct mr_progress progress;
    struct mr_screen *screen;
    yyjson_doc *event; /* the last event */
    yyjson_doc *asked; /* an answer of Jobs.Get that is newer than `event`; NULL: none */
    mr_time asked_at;
    mr_time drawn_at;
    bool is_left;
};

bool mr_job_is_over(yyjson_val *job)
{
    static const char *const ends[] = {"JOB_DONE", "JOB_FAILED", "JOB_CANCELLED"};
    for (size_t i = 0; i < MR_ARRAY_LEN(ends); i++)
        if (!strcmp(mr_json_get_text(job, "state"), ends[i])) return true;
    return false;
}

static yyjson_val *job_of(const struct follow *f)
{
    return f->asked ? yyjson_doc_get_root(f->asked)
                    : yyjson_obj_get(yyjson_doc_get_root(f->event), "job");
}

static void draw(struct follow *f)
{
    struct mr_buf out;
    mr_time now = mr_clock_now();
    yyjson_val *job = job_of(f);
    f->drawn_at = now;
    if (!job || (f->style != MR_FOLLOW_BAR && f->style != MR_FOLLOW_SCREEN)) return;
    mr_buf_init(&out, PICTURE_BYTES_MAX);
    if (f->style == MR_FOLLOW_SCREEN) {
        mr_progress_screen(
            &f->progress, job, now, mr_clock_wall(), mr_screen_columns(f->screen), &out);
        mr_screen_draw(f->screen, mr_buf_str(&out));
    } else {
        unsigned columns = mr_text_live_columns(stderr);
        mr_progress_line(&f->progress, job, now, mr_clock_wall(), columns, &out);
        (void)fprintf(stderr, "\r%.*s\033[K", MR_STR_ARG(mr_buf_str(&out)));
        (void)fflush(stderr);
    }
    mr_buf_fini(&out);
}

static void show(struct follow *f, struct mr_str data)
{
    yyjson_val *job = job_of(f);
    yyjson_val *counts = yyjson_obj_get(job, "counts");
    switch (f->style) {
    case MR_FOLLOW_QUIET: break;
    case MR_FOLLOW_BAR:
    case MR_FOLLOW_SCREEN: draw(f); break;
    case MR_FOLLOW_LINES:
        (void)printf("%-9s %" PRIu64 " of %" PRIu64 " tasks done, %" PRIu64 " running, %" PRIu64
                     " failed\n",
            mr_job_state_word(mr_json_get_text(job, "state")), mr_json_get_u64(counts, "done"),
            mr_json_get_u64(counts, "submitted") - mr_json_get_u64(counts, "culled"),
            mr_json_get_u64(counts, "running"), mr_json_get_u64(counts, "erred"));
        (void)fflush(stdout);
        break;
    case MR_FOLLOW_JSON:
        (void)printf("%.*s\n", MR_STR_ARG(data));
        (void)fflush(stdout);
        break;
    }
}

static void on_event(void *ctx, const char *type, struct mr_str data)
{
    struct follow *f = ctx;
    yyjson_doc *doc = yyjson_read(data.p, data.n, 0);
    (void)type;
    if (!yyjson_obj_get(yyjson_doc_get_root(doc), "job")) {
        yyjson_doc_free(doc);
        return;
    }
    yyjson_doc_free(f->event);
    yyjson_doc_free(f->asked);
    f->event = doc;
    f->asked = NULL;
    mr_progress_take(&f->progress, job_of(f), mr_clock_now());
    show(f, data);
}

/* Requests the job's state, to show what the job waits for. Events come only when tasks end. */
static void ask(struct follow *f)
{
    struct mr_http_reply reply;
    struct mr_http_request request = {.method = "GET", .timeout_ns = MR_SECOND};
    mr_http_reply_init(&reply);
    yyjson_doc *doc = mr_client_send(f->c, &request, &reply, NULL, "%s", f->path)
                          ? NULL
                          : yyjson_read((const char *)reply.body.p, reply.body.n, 0);
    if (doc) {
        yyjson_doc_free(f->asked);
        f->asked = doc;
    }
    mr_http_reply_fini(&reply);
    f->asked_at = mr_clock_now();
}

static bool is_over(void *ctx)
{
    struct follow *f = ctx;
    mr_time now = mr_clock_now();
    enum mr_screen_event event = f->screen ? mr_screen_take(f->screen) : MR_SCREEN_NONE;
    bool is_live = f->style == MR_FOLLOW_BAR || f->style == MR_FOLLOW_SCREEN;
    if (event == MR_SCREEN_LEAVE) f->is_left = true;
    if (mr_job_is_over(yyjson_obj_get(yyjson_doc_get_root(f->event), "job")) || f->is_left)
        return true;
    if (!is_live || !f->event) return false;
    bool is_quiet = mr_progress_is_idle(&f->progress, now);
    if (is_quiet && now - f->asked_at > ASKED_EVERY) ask(f);
    if (event == MR_SCREEN_REDRAW || now - f->drawn_at > DRAWN_EVERY) draw(f);
    return false;
}

bool mr_job_is_unconverged(yyjson_val *job)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *loop = NULL;
    yyjson_arr_foreach(yyjson_obj_get(job, "loops"), at, max, loop)
    {
        if (!strcmp(mr_json_get_text(loop, "end"), "JOB_LOOP_END_MAX")) return true;
    }
    return false;
}

static void print_loops(FILE *to, yyjson_val *job)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *loop = NULL;
    yyjson_arr_foreach(yyjson_obj_get(job, "loops"), at, max, loop)
    {
        bool by_max = !strcmp(mr_json_get_text(loop, "end"), "JOB_LOOP_END_MAX");
        (void)fprintf(to, "  loop '%s': ended after %" PRIu64 " rounds%s\n",
            mr_json_get_text(loop, "name"), mr_json_get_u64(loop, "rounds"),
            by_max ? " without `until`: not converged" : "");
    }
}

int mr_client_follow(const struct mr_client *c, const char *id, enum mr_follow_style style,
    int *exit_code, yyjson_doc **job, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *escaped = mr_http_escape(mr_str(id));
    MR_AUTO(mr_free_ptr) char *path = mr_format("/v1/jobs/%s", escaped);
    MR_AUTO(mr_free_ptr) char *events = mr_format("%s/events", path);
    struct follow f = {.c = c, .path = path, .style = style};
    mr_progress_init(&f.progress, mr_clock_now());
    mr_sse_init(&f.sse, on_event, &f);
    if (style == MR_FOLLOW_SCREEN) f.screen = mr_screen_open();
    const struct mr_stream stream = {.client = c,
        .path = events,
        .sse = &f.sse,
        .fd = f.screen ? mr_screen_fd(f.screen) : -1,
        .is_over = is_over,
        .ctx = &f};
    int err = mr_stream_read(&stream, e);
    mr_screen_close(&f.screen);
    if (style == MR_FOLLOW_BAR) (void)fprintf(stderr, "\n");
    yyjson_val *last = yyjson_obj_get(yyjson_doc_get_root(f.event), "job");
    const char *state = mr_json_get_text(last, "state");
    if (mr_job_is_over(last) && !job && style != MR_FOLLOW_JSON)
        print_loops(style == MR_FOLLOW_LINES ? stdout : stderr, last);
    *exit_code = !strcmp(state, "JOB_DONE") ? MR_EXIT_OK : MR_EXIT_JOB;
    if (job && !err) *job = MR_STEAL(f.event);
    yyjson_doc_free(f.event);
    yyjson_doc_free(f.asked);
    mr_sse_fini(&f.sse);
    return err;
}

void mr_job_print(yyjson_val *job)
{
    yyjson_val *counts = yyjson_obj_get(job, "counts");
    yyjson_val *error = yyjson_obj_get(job, "error");
    const char *name = mr_json_get_text(job, "name");
    uint64_t started = mr_json_get_u64(job, "started_ns");
    uint64_t finished = mr_json_get_u64(job, "finished_ns");
    mr_text_print(2, "job %s%s%s: %s\n", mr_json_get_text(job, "id"), name[0] ? " " : "", name,
        mr_job_state_word(mr_json_get_text(job, "state")));
    mr_text_print(2,
        "  %" PRIu64 " submitted, %" PRIu64 " culled, %" PRIu64 " joined, %" PRIu64
        " done, %" PRIu64 " running, %" PRIu64 " waiting, %" PRIu64 " failed, %" PRIu64
        " retried, %" PRIu64 " recomputed\n",
        mr_json_get_u64(counts, "submitted"), mr_json_get_u64(counts, "culled"),
        mr_json_get_u64(counts, "joined"), mr_json_get_u64(counts, "done"),
        mr_json_get_u64(counts, "running"),
        mr_json_get_u64(counts, "waiting") + mr_json_get_u64(counts, "ready") +
            mr_json_get_u64(counts, "sent"),
        mr_json_get_u64(counts, "erred"), mr_json_get_u64(counts, "retried"),
        mr_json_get_u64(counts, "recomputed"));
    if (mr_json_get_u64(counts, "skipped"))
        (void)printf("  %" PRIu64 " skipped: they belong to rounds of loops that did not run\n",
            mr_json_get_u64(counts, "skipped"));
    print_loops(stdout, job);
    if (started && finished) (void)printf("  ran for %.3f s\n", (double)(finished - started) / 1e9);
    if (!error) return;
    const char *key = mr_json_get_text(error, "key");
    mr_text_print(
        4, "  error%s%s: %s\n", key[0] ? " in " : "", key, mr_json_get_text(error, "message"));
    if (mr_json_get_u64(error, "fallen"))
        (void)printf("  %" PRIu64 " tasks failed with it\n", mr_json_get_u64(error, "fallen"));
}
