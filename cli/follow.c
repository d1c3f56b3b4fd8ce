#include "cli/follow.h"

#include "base/alloc.h"
#include "cli/sse.h"
#include "host/clock.h"

#include <inttypes.h>
#include <string.h>

#define BAR_WIDTH 30
#define AWAY_MAX (60 * MR_SECOND)

struct stream {
    enum mr_follow_style style;
    struct mr_sse sse;
    char state[32];
    yyjson_doc *job;
    bool over;
    mr_time since;
};

static uint64_t tasks_of(yyjson_val *counts)
{
    return mr_json_get_u64(counts, "submitted") - mr_json_get_u64(counts, "culled");
}

static void draw_bar(const struct stream *s, yyjson_val *job)
{
    yyjson_val *counts = yyjson_obj_get(job, "counts");
    uint64_t done = mr_json_get_u64(counts, "done");
    uint64_t all = tasks_of(counts);
    int filled = all ? (int)(done * BAR_WIDTH / all) : 0;
    double seconds = (double)(mr_clock_now() - s->since) / 1e9;
    (void)fprintf(stderr,
        "\r%-9s [%.*s%.*s] %" PRIu64 "/%" PRIu64 " tasks, %" PRIu64 " running, %.1f s \033[K",
        mr_job_state_word(mr_json_get_text(job, "state")), filled, "##############################",
        BAR_WIDTH - filled, "..............................", done, all,
        mr_json_get_u64(counts, "running"), seconds);
    (void)fflush(stderr);
}

static void show(struct stream *s, yyjson_val *job, struct mr_str data)
{
    yyjson_val *counts = yyjson_obj_get(job, "counts");
    switch (s->style) {
    case MR_FOLLOW_QUIET: break;
    case MR_FOLLOW_BAR: draw_bar(s, job); break;
    case MR_FOLLOW_LINES:
        (void)printf("%-9s %" PRIu64 " of %" PRIu64 " tasks done, %" PRIu64 " running, %" PRIu64
                     " failed\n",
            mr_job_state_word(mr_json_get_text(job, "state")), mr_json_get_u64(counts, "done"),
            tasks_of(counts), mr_json_get_u64(counts, "running"), mr_json_get_u64(counts, "erred"));
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
    struct stream *s = ctx;
    yyjson_doc *doc = yyjson_read(data.p, data.n, 0);
    yyjson_val *job = yyjson_obj_get(yyjson_doc_get_root(doc), "job");
    (void)type;
    if (!job) {
        yyjson_doc_free(doc);
        return;
    }
    const char *state = mr_json_get_text(job, "state");
    (void)snprintf(s->state, sizeof s->state, "%s", state);
    s->over = !strcmp(state, "JOB_DONE") || !strcmp(state, "JOB_FAILED") ||
              !strcmp(state, "JOB_CANCELLED");
    show(s, job, data);
    yyjson_doc_free(s->job);
    s->job = doc;
}

static int read_stream(
    const struct mr_client *c, const char *id, struct stream *s, struct mr_error *e)
{
    char resume[MR_SSE_ID_BYTES_MAX + 32];
    struct mr_http_reply reply;
    struct mr_http_request request = {.method = "GET",
        .headers = {"Accept: text/event-stream"},
        .on_data = mr_sse_take,
        .ctx = &s->sse};
    if (s->sse.id[0]) {
        (void)snprintf(resume, sizeof resume, "Last-Event-ID: %s", s->sse.id);
        request.headers[1] = resume;
    }
    MR_AUTO(mr_free_ptr) char *escaped = mr_http_escape(mr_str(id));
    mr_http_reply_init(&reply);
    mr_sse_restart(&s->sse);
    int err = mr_client_send(c, &request, &reply, e, "/v1/jobs/%s/events", escaped);
    mr_http_reply_fini(&reply);
    return err;
}

bool mr_job_has_exhausted(yyjson_val *job)
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
    struct stream s = {.style = style, .since = mr_clock_now()};
    mr_sse_init(&s.sse, on_event, &s);
    mr_time heard = mr_clock_now();
    int err = MR_OK;
    while (!s.over) {
        char before[sizeof s.sse.id];
        memcpy(before, s.sse.id, sizeof before);
        err = read_stream(c, id, &s, e);
        bool away = err == MR_EAWAY || !err;
        if (strcmp(before, s.sse.id) != 0 || !err) heard = mr_clock_now();
        if (s.over || !away || mr_clock_now() - heard > AWAY_MAX) break;
        mr_clock_sleep(200 * MR_MS); /* the gateway or the scheduler is coming back */
    }
    if (style == MR_FOLLOW_BAR) (void)fprintf(stderr, "\n");
    if (s.over) err = MR_OK;
    if (s.over && !job && style != MR_FOLLOW_JSON)
        print_loops(style == MR_FOLLOW_LINES ? stdout : stderr,
            yyjson_obj_get(yyjson_doc_get_root(s.job), "job"));
    *exit_code = !strcmp(s.state, "JOB_DONE") ? MR_EXIT_OK : MR_EXIT_JOB;
    if (job && !err) *job = MR_STEAL(s.job);
    yyjson_doc_free(s.job);
    mr_sse_fini(&s.sse);
    return err;
}

void mr_job_print(yyjson_val *job)
{
    yyjson_val *counts = yyjson_obj_get(job, "counts");
    yyjson_val *error = yyjson_obj_get(job, "error");
    const char *name = mr_json_get_text(job, "name");
    uint64_t started = mr_json_get_u64(job, "started_ns");
    uint64_t finished = mr_json_get_u64(job, "finished_ns");
    (void)printf("job %s%s%s: %s\n", mr_json_get_text(job, "id"), name[0] ? " " : "", name,
        mr_job_state_word(mr_json_get_text(job, "state")));
    (void)printf("  %" PRIu64 " submitted, %" PRIu64 " culled, %" PRIu64 " joined, %" PRIu64
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
        (void)printf("  %" PRIu64 " skipped: of rounds of loops that did not come\n",
            mr_json_get_u64(counts, "skipped"));
    print_loops(stdout, job);
    if (started && finished) (void)printf("  ran for %.3f s\n", (double)(finished - started) / 1e9);
    if (!error) return;
    const char *key = mr_json_get_text(error, "key");
    (void)printf(
        "  error%s%s: %s\n", key[0] ? " in " : "", key, mr_json_get_text(error, "message"));
    if (mr_json_get_u64(error, "fallen"))
        (void)printf("  %" PRIu64 " tasks fell with it\n", mr_json_get_u64(error, "fallen"));
}
