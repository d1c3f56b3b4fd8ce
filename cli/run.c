/* `millrace run`: submits a job, follows it, and fetches the targets. Without --out it prints small
 * values. With --out it writes each target to a file, in the format of the target's type. */
#include "base/alloc.h"
#include "base/limits.h"
#include "base/units.h"
#include "cli/view/follow.h"
#include "cli/client/interrupt.h"
#include "cli/client/jobfile.h"
#include "cli/internal.h"
#include "cli/term/text.h"
#include "host/os/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_MAX 50 /* limit of the targets that are printed */

static const struct mr_option options[] = {
    MR_SUBMIT_OPTIONS("write each target to a file in this directory"),
};

const struct mr_config_spec mr_run_spec = {.program = "millrace run",
    .summary =
        "Runs a job file (-: stdin) to its end and fetches its targets. --json prints one object: the\n"
        "`job`, `results`, `places` of values that are too large to print, and `errors`.",
    .usage = "[flags] FILE.json",
    .examples =
        "  millrace run examples/add.json\n"
        "  millrace run examples/mnist-stats.json --data /data/mnist --set copies=4 --out out\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_min = 1,
    .rest_max = 1};

struct output {
    FILE *file;
    const char *dir;
    const char *key;
    uint64_t bytes;
};

/* Returns the path for a target: DIR/svm_mean.npy for "svm/mean". The extension is not added
 * twice. */
static char *path_for(const char *dir, const char *key, const char *content_type)
{
    static const char *const types[][2] = {{"application/x-npy", ".npy"},
        {"application/json", ".json"}, {"text/csv", ".csv"}, {"image/png", ".png"},
        {"text/plain", ".txt"}};
    const char *extension = "";
    for (size_t i = 0; i < MR_ARRAY_LEN(types); i++)
        if (!strncmp(content_type, types[i][0], strlen(types[i][0]))) extension = types[i][1];
    size_t n = strlen(key);
    size_t m = strlen(extension);
    bool has = m && n > m && !strcmp(key + n - m, extension);
    char *path = mr_format("%s/%s%s", dir, key, has ? "" : extension);
    for (char *p = path + strlen(dir) + 1; *p; p++)
        if (*p == '/') *p = '_';
    return path;
}

static int on_data(void *ctx, const char *p, size_t n)
{
    struct output *o = ctx;
    o->bytes += n;
    return fwrite(p, 1, n, o->file) == n ? MR_OK : MR_EIO;
}

/* Fetches one target into a file. The file's name depends on the content type, so a temporary name
 * comes first. */
static int fetch(
    const struct mr_client *c, const char *id, const char *key, const char *dir, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *job = mr_http_escape(mr_str(id));
    MR_AUTO(mr_free_ptr) char *escaped = mr_http_escape(mr_str(key));
    MR_AUTO(mr_free_ptr) char *part = mr_format("%s/.fetch-%d.part", dir, (int)getpid());
    struct output o = {.dir = dir, .key = key, .file = fopen(part, "wbe")};
    struct mr_http_reply reply;
    struct mr_http_request request = {.method = "GET", .on_data = on_data, .ctx = &o};
    char size[MR_BYTES_TEXT_MAX];
    if (!o.file) return mr_fail(e, MR_EIO, "%s: %s", part, strerror(errno));
    mr_http_reply_init(&reply);
    int err =
        mr_client_send(c, &request, &reply, e, "/v1/jobs/%s/results/%s?wait_s=60", job, escaped);
    if (fclose(o.file) && !err) err = mr_fail(e, MR_EIO, "%s: %s", part, strerror(errno));
    MR_AUTO(mr_free_ptr) char *path = path_for(dir, key, reply.content_type);
    mr_http_reply_fini(&reply);
    if (!err && rename(part, path)) err = mr_fail(e, MR_EIO, "%s: %s", path, strerror(errno));
    if (err) {
        (void)remove(part);
        return err;
    }
    mr_bytes_text(o.bytes, size);
    if (!c->json) (void)printf("%s: %s (%s)\n", key, path, size);
    return MR_OK;
}

/* Fetches all targets. If the job has failed, fetches those that exist; a missing target is
 * printed, and is no error. */
static int fetch_all(const struct mr_client *c, yyjson_val *job, const char *dir, bool has_failed,
    struct mr_error *e)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *key = NULL;
    int err = mr_file_make_dirs(dir, 0755, e);
    yyjson_arr_foreach(yyjson_obj_get(job, "targets"), at, max, key)
    {
        if (!err) err = fetch(c, mr_json_get_text(job, "id"), yyjson_get_str(key), dir, e);
        if (!has_failed || !err || err == MR_EIO || err == MR_EAWAY) continue;
        (void)fprintf(stderr, "%s: %s\n", yyjson_get_str(key), e->text);
        err = MR_OK;
    }
    return err;
}

static void print_one(const char *key, yyjson_val *value)
{
    size_t n = 0;
    char *text = yyjson_val_write(value, 0, &n);
    (void)printf(
        "%s = %.*s%s\n", key, (int)MR_MIN(n, (size_t)2000), text ? text : "", n > 2000 ? "…" : "");
    free(text);
}

static void print_results(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *key = NULL;
    yyjson_val *value = NULL;
    yyjson_obj_foreach(yyjson_obj_get(root, "results"), at, max, key, value)
    {
        if (at == SHOWN_MAX) (void)printf("… and %zu more\n", max - at);
        if (at < SHOWN_MAX) print_one(yyjson_get_str(key), value);
    }
    yyjson_obj_foreach(yyjson_obj_get(root, "places"), at, max, key, value)
    {
        char size[MR_BYTES_TEXT_MAX];
        mr_bytes_text(mr_json_get_u64(value, "nbytes"), size);
        if (at < SHOWN_MAX)
            mr_text_print(
                2, "%s: %s in the store (--out DIR writes it)\n", yyjson_get_str(key), size);
    }
    yyjson_obj_foreach(yyjson_obj_get(root, "errors"), at, max, key, value)
    {
        if (at < SHOWN_MAX)
            mr_text_print(2, "%s: %s\n", yyjson_get_str(key), mr_json_get_text(value, "message"));
    }
}

/* Prints one object: the job and the members of /results, which are `results`, `places` and
 * `errors`. */
static void print_json(yyjson_val *job, yyjson_val *results)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *key = NULL;
    yyjson_val *value = NULL;
    yyjson_mut_doc *all = mr_json_object();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(all);
    (void)yyjson_mut_obj_add_val(all, root, "job", yyjson_val_mut_copy(all, job));
    yyjson_obj_foreach(results, at, max, key, value)(void)
        yyjson_mut_obj_add_val(all, root, yyjson_get_str(key), yyjson_val_mut_copy(all, value));
    yyjson_doc *doc = yyjson_mut_doc_imut_copy(all, NULL);
    mr_client_print(doc);
    yyjson_doc_free(doc);
    yyjson_mut_doc_free(all);
}

static int show_results(const struct mr_client *c, yyjson_val *job, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(mr_json_get_text(job, "id")));
    int err =
        mr_client_call(c, "GET", (struct mr_str){0}, &doc, e, "/v1/jobs/%s/results?wait_s=60", id);
    if (!err && c->json) print_json(job, yyjson_doc_get_root(doc));
    if (!err && !c->json) print_results(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return err;
}

static bool is_drawn(const struct mr_client *c, const char *object)
{
    yyjson_doc *doc = NULL;
    (void)mr_client_call(c, "GET", (struct mr_str){0}, &doc, NULL, "/v1/objects/%s/stat", object);
    bool drawn = mr_json_get_bool(yyjson_doc_get_root(doc), "drawn");
    yyjson_doc_free(doc);
    return drawn;
}

/* Warns if the results come from generated data, because no data was given. */
static void say_drawn(const struct mr_client *c, yyjson_val *job)
{
    yyjson_doc *doc = NULL;
    size_t at = 0;
    size_t max = 0;
    yyjson_val *key = NULL;
    yyjson_val *value = NULL;
    bool drawn = false;
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(mr_json_get_text(job, "id")));
    (void)mr_client_call(c, "GET", (struct mr_str){0}, &doc, NULL, "/v1/jobs/%s/results", id);
    yyjson_obj_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "places"), at, max, key, value)
        drawn = drawn || (at < SHOWN_MAX && is_drawn(c, mr_json_get_text(value, "object")));
    if (drawn) (void)printf("data: drawn, as none was given (--data DIR): so are the results\n");
    yyjson_doc_free(doc);
}

static int run(const struct mr_submit_options *k, const char *path, int *code, struct mr_error *e)
{
    struct mr_client c = {0};
    struct mr_buf body;
    yyjson_doc *doc = NULL;
    yyjson_doc *last = NULL;
    mr_buf_init(&body, MR_JOB_BODY_BYTES_MAX);
    MR_AUTO(mr_free_ptr) char *data = NULL;
    int err = mr_client_open(&k->client, &c, e);
    if (!err) err = mr_client_data(&c, k->data, &data, e);
    if (!err) err = mr_jobfile_read(path, &k->set, data, &body, e);
    if (!err) err = mr_client_submit(&c, mr_buf_str(&body), NULL, &doc, e);
    mr_buf_fini(&body);
    const char *id = mr_json_get_text(yyjson_doc_get_root(doc), "id");
    if (!err) {
        struct mr_interrupts *interrupts = mr_interrupts_open(&c, id);
        err = mr_client_follow(
            &c, id, c.tty && !c.json ? MR_FOLLOW_BAR : MR_FOLLOW_QUIET, code, &last, e);
        mr_interrupts_close(&interrupts);
    }
    yyjson_val *job = yyjson_obj_get(yyjson_doc_get_root(last), "job");
    if (!err && !c.json) mr_job_print(job);
    if (!err && k->out) err = fetch_all(&c, job, k->out, *code != MR_EXIT_OK, e);
    if (!err && (c.json || !k->out)) err = show_results(&c, job, e);
    if (!err && !c.json && !k->data) say_drawn(&c, job);
    yyjson_doc_free(doc);
    yyjson_doc_free(last);
    mr_client_fini(&c);
    return err;
}

int mr_command_run(int argc, char **argv)
{
    struct mr_submit_options k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    int code = MR_EXIT_OK;
    mr_config_load(&mr_run_spec, argc, argv, &k, &rest);
    int err = run(&k, rest.items[0], &code, &e);
    mr_texts_fini(&rest);
    mr_config_fini(&mr_run_spec, &k);
    return err ? mr_client_fail("run", &e) : code;
}
