/* `millrace train`: starts a session from a file, follows it and shows its result, or follows or
 * stops an existing session. */
#include "base/alloc.h"
#include "base/limits.h"
#include "cli/client/jobfile.h"
#include "cli/internal.h"
#include "cli/term/text.h"
#include "cli/view/train_follow.h"
#include "host/clock.h"
#include "host/os/file.h"
#include "host/os/signal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define PLOT_COLUMNS 60
#define PLOT_ROWS 12
#define PICTURE_WIDTH 800
#define PICTURE_HEIGHT 400
#define BODY_BYTES_MAX ((size_t)4 << 20) /* bytes; the trainer has the same bound */
#define START_TRIES 20

struct config {
    struct mr_submit_options submit;
    const char *plot;
    const char *follow;
    const char *stop;
    bool abandon;
    bool detach;
    bool ascii;
};

static const struct mr_option options[] = {
    MR_SUBMIT_OPTIONS(
        "write training.json, scores.json, scores.png and model.npz to this directory"),
    {.name = "plot",
        .type = MR_OPTION_TEXT,
        .value = "FILE.png",
        .help = "draw the curve of the scores into this file",
        .at = offsetof(struct config, plot)},
    {.name = "detach",
        .type = MR_OPTION_BOOL,
        .help = "print the id and do not follow the training",
        .at = offsetof(struct config, detach)},
    {.name = "follow",
        .type = MR_OPTION_TEXT,
        .value = "ID",
        .help = "follow a training that was started before",
        .at = offsetof(struct config, follow)},
    {.name = "stop",
        .type = MR_OPTION_TEXT,
        .value = "ID",
        .help = "ask a training to stop and keep its model",
        .at = offsetof(struct config, stop)},
    {.name = "abandon",
        .type = MR_OPTION_BOOL,
        .help = "with --stop: cancel it and keep nothing",
        .at = offsetof(struct config, abandon)},
    {.name = "ascii",
        .type = MR_OPTION_BOOL,
        .help = "draw the curve in ASCII",
        .at = offsetof(struct config, ascii)},
};

const struct mr_config_spec mr_train_spec = {.program = "millrace train",
    .summary = "Trains the model that a file describes, and follows the training to its end.",
    .usage = "[flags] FILE.json | --follow ID | --stop ID",
    .examples =
        "  millrace train examples/mnist.json --data /data/mnist --set copies=4 --plot scores.png\n"
        "  millrace train examples/mnist-cnn.json --data /data/mnist --set rule=sync --detach\n"
        "  millrace train --follow t1-7\n"
        "\nCtrl-C asks the training to stop and keep its model. A second Ctrl-C leaves it running.\n"
        "The exit code is 0 when the training is done, 4 when it failed or was left.\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_max = 1};

/* ---- starting -------------------------------------------------------------------------------- */

/* Posts the document. After a broken connection the document is posted again with the same
 * idempotency key, so that only one session starts. */
static int start(const struct mr_client *c, struct mr_str body, char **id, struct mr_error *e)
{
    uint64_t dice[2];
    if (getrandom(dice, sizeof dice, 0) != sizeof dice)
        return mr_fail(e, MR_EINTERNAL, "no random numbers: %s", strerror(errno));
    MR_AUTO(mr_free_ptr)
    char *key = mr_format("Idempotency-Key: train-%016" PRIx64 "%016" PRIx64, dice[0], dice[1]);
    int err = MR_EAWAY;
    for (unsigned i = 0; i < START_TRIES && err == MR_EAWAY; i++) {
        if (i) mr_clock_sleep(500 * MR_MS);
        struct mr_http_reply reply;
        struct mr_http_request request = {
            .method = "POST", .headers = {"Content-Type: application/json", key}, .body = body};
        mr_http_reply_init(&reply);
        err = mr_client_send(c, &request, &reply, e, "/v1/trainings");
        yyjson_doc *doc = err ? NULL : yyjson_read((char *)reply.body.p, reply.body.n, 0);
        if (doc) *id = mr_copy_text(mr_json_get_text(yyjson_doc_get_root(doc), "id"));
        if (!err && (!doc || !(*id)[0]))
            err = mr_fail(e, MR_EFORMAT, "the gateway did not answer with a training");
        yyjson_doc_free(doc);
        mr_http_reply_fini(&reply);
    }
    return err;
}

static int start_file(const struct mr_client *c, const struct config *k, const char *path,
    char **id, struct mr_error *e)
{
    struct mr_buf body;
    mr_buf_init(&body, BODY_BYTES_MAX);
    MR_AUTO(mr_free_ptr) char *data = NULL;
    int err = mr_client_data(c, k->submit.data, &data, e);
    if (!err) err = mr_jobfile_read(path, &k->submit.set, data, &body, e);
    if (!err) err = start(c, mr_buf_str(&body), id, e);
    mr_buf_fini(&body);
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int write_picture(const struct mr_train_view *v, const char *path, struct mr_error *e)
{
    struct mr_buf png;
    struct mr_plot p = mr_train_view_plot(v);
    mr_buf_init(&png, (size_t)1 << 26);
    int err = mr_plot_png(&p, PICTURE_WIDTH, PICTURE_HEIGHT, &png, e);
    if (!err) err = mr_file_write(path, mr_buf_str(&png), 0644, e);
    mr_buf_fini(&png);
    return err;
}

static int on_data(void *ctx, const char *p, size_t n)
{
    return fwrite(p, 1, n, ctx) == n ? MR_OK : MR_EIO;
}

/* Runs a small job that converts the model to .npz, and fetches its result. */
static int fetch_model(
    const struct mr_client *c, const char *object, const char *dir, bool quiet, struct mr_error *e)
{
    yyjson_doc *job = NULL;
    struct mr_http_reply reply;
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/model.npz", dir);
    MR_AUTO(mr_free_ptr) char *part = mr_format("%s/.model-%d.part", dir, (int)getpid());
    MR_AUTO(mr_free_ptr)
    char *graph =
        mr_format("{\"name\": \"model.npz\", \"tasks\": {\"model.npz\": {\"op\": \"nn.npz\", "
                  "\"args\": [{\"object\": \"%s\"}]}}}",
            object);
    FILE *file = fopen(part, "wbe");
    if (!file) return mr_fail(e, MR_EIO, "%s: %s", part, strerror(errno));
    struct mr_http_request request = {.method = "GET", .on_data = on_data, .ctx = file};
    mr_http_reply_init(&reply);
    int err = mr_client_submit(c, mr_str(graph), NULL, &job, e);
    const char *id = mr_json_get_text(yyjson_doc_get_root(job), "id");
    if (!err)
        err = mr_client_send(c, &request, &reply, e, "/v1/jobs/%s/results/model.npz?wait_s=60", id);
    mr_http_reply_fini(&reply);
    if (fclose(file) && !err) err = mr_fail(e, MR_EIO, "%s: %s", part, strerror(errno));
    if (!err && rename(part, path)) err = mr_fail(e, MR_EIO, "%s: %s", path, strerror(errno));
    if (err)
        (void)remove(part);
    else if (!quiet)
        (void)printf("  model       %s\n", path);
    if (job) (void)mr_client_call(c, "DELETE", (struct mr_str){0}, NULL, NULL, "/v1/jobs/%s", id);
    yyjson_doc_free(job);
    return err;
}

static int write_out(
    const struct mr_client *c, const struct mr_train_view *v, const char *dir, struct mr_error *e)
{
    size_t n = 0;
    const char *object = mr_json_get_text(v->training, "model_object");
    MR_AUTO(mr_free_ptr) char *scores_path = mr_format("%s/scores.json", dir);
    MR_AUTO(mr_free_ptr) char *picture_path = mr_format("%s/scores.png", dir);
    MR_AUTO(mr_free_ptr) char *training_path = mr_format("%s/training.json", dir);
    MR_AUTO(mr_free_ptr)
    char *scores = mr_format("[%.*s]\n", MR_STR_ARG(mr_buf_str(&v->scores)));
    char *training = yyjson_val_write(v->training, YYJSON_WRITE_PRETTY_TWO_SPACES, &n);
    int err = mr_file_make_dirs(dir, 0755, e);
    if (!err) err = mr_file_write(scores_path, mr_str(scores), 0644, e);
    if (!err) err = mr_file_write(training_path, mr_str_of(training, n), 0644, e);
    if (!err && v->points_count) err = write_picture(v, picture_path, e);
    if (!err && object[0]) err = fetch_model(c, object, dir, c->json, e);
    free(training);
    return err;
}

static void print_json(const struct mr_train_view *v)
{
    size_t n = 0;
    char *training = yyjson_val_write(v->training, 0, &n);
    MR_AUTO(mr_free_ptr)
    char *whole = mr_format(
        "{\"training\": %s, \"scores\": [%.*s]}", training, MR_STR_ARG(mr_buf_str(&v->scores)));
    yyjson_doc *doc = yyjson_read(whole, strlen(whole), YYJSON_READ_BIGNUM_AS_RAW);
    if (doc) mr_client_print(doc);
    yyjson_doc_free(doc);
    free(training);
}

static void print_end(const struct mr_train_view *v, bool ascii)
{
    struct mr_buf text;
    mr_buf_init(&text, (size_t)1 << 20);
    mr_train_view_table(v, &text);
    mr_text_print(14, "%.*s", MR_STR_ARG(mr_buf_str(&text)));
    mr_buf_clear(&text);
    if (v->points_count > 1) {
        struct mr_plot p = mr_train_view_plot(v);
        mr_buf_add_byte(&text, '\n');
        mr_plot_text(&p, PLOT_COLUMNS, PLOT_ROWS, ascii, &text);
    }
    (void)fwrite(text.p, 1, text.n, stdout);
    mr_buf_fini(&text);
}

static int follow(const struct mr_client *c, const struct config *k, const char *id, int *code,
    struct mr_error *e)
{
    struct mr_train_view v;
    const struct mr_train_follow_options o = {.quiet = c->json};
    mr_train_view_init(&v);
    int err = mr_train_follow(c, id, &o, &v, e);
    if (err == MR_ECANCELED) {
        (void)fprintf(stderr, "%s goes on: `millrace train --follow %s` shows it\n", id, id);
        mr_train_view_fini(&v);
        *code = MR_EXIT_JOB;
        return MR_OK;
    }
    *code = v.is_done ? MR_EXIT_OK : MR_EXIT_JOB;
    if (!err && c->json) print_json(&v);
    if (!err && !c->json) print_end(&v, k->ascii);
    if (!err && k->plot) err = write_picture(&v, k->plot, e);
    if (!err && k->submit.out) err = write_out(c, &v, k->submit.out, e);
    mr_train_view_fini(&v);
    return err;
}

static int stop(const struct mr_client *c, const struct config *k, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    int err = mr_train_stop(c, k->stop, "stopped by `millrace train --stop`", k->abandon, &doc, e);
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json)
        (void)printf("%s: %s\n", k->stop,
            mr_train_state_word(mr_json_get_text(yyjson_doc_get_root(doc), "state")));
    yyjson_doc_free(doc);
    return err;
}

static int run(const struct config *k, const struct mr_texts *rest, int *code, struct mr_error *e)
{
    struct mr_client c = {0};
    MR_AUTO(mr_free_ptr) char *id = k->follow ? mr_copy_text(k->follow) : NULL;
    int err = mr_client_open(&k->submit.client, &c, e);
    if (!err && k->stop) err = stop(&c, k, e);
    if (!err && rest->count) err = start_file(&c, k, rest->items[0], &id, e);
    if (!err && rest->count && (k->detach || !c.json))
        (void)fprintf(k->detach ? stdout : stderr, "%s\n", id);
    if (!err && id && !k->detach) err = follow(&c, k, id, code, e);
    mr_client_fini(&c);
    return err;
}

int mr_command_train(int argc, char **argv)
{
    struct config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    int code = MR_EXIT_OK;
    mr_config_load(&mr_train_spec, argc, argv, &k, &rest);
    mr_signal_block(); /* so that Ctrl-C can ask the training to stop */
    bool is_clear = rest.count + (k.follow != NULL) + (k.stop != NULL) == 1;
    int err = is_clear ? run(&k, &rest, &code, &e) : MR_OK;
    mr_texts_fini(&rest);
    mr_config_fini(&mr_train_spec, &k);
    if (!is_clear) {
        (void)fprintf(stderr, "millrace train: give one of FILE.json, --follow ID and --stop ID\n");
        return MR_EXIT_USAGE;
    }
    return err ? mr_client_fail("train", &e) : code;
}
