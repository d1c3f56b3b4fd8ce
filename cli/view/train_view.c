/* Keeps the latest state and all scores of a training, and writes them as a line, as a table, or as
 * a curve. */
#include "cli/view/train_view.h"

#include "base/alloc.h"
#include "base/units.h"
#include "cli/client/client.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SCORES_BYTES_MAX ((size_t)1 << 28)

static const char *const losses[] = {"cross_entropy", "mse", "hinge"};

void mr_train_view_init(struct mr_train_view *v)
{
    *v = (struct mr_train_view){.accuracy = (double)NAN};
    mr_buf_init(&v->scores, SCORES_BYTES_MAX);
    v->losses = mr_alloc(MR_TRAIN_POINTS_MAX * sizeof *v->losses);
    v->accuracies = mr_alloc(MR_TRAIN_POINTS_MAX * sizeof *v->accuracies);
}

void mr_train_view_fini(struct mr_train_view *v)
{
    yyjson_doc_free(v->doc);
    mr_buf_fini(&v->scores);
    mr_release(v->losses);
    mr_release(v->accuracies);
    *v = (struct mr_train_view){0};
}

/* ---- answers --------------------------------------------------------------------------------- */

void mr_train_view_take(struct mr_train_view *v, yyjson_doc *doc, yyjson_val *training)
{
    const char *state = mr_json_get_text(training, "state");
    yyjson_doc_free(v->doc);
    v->doc = doc;
    v->training = training;
    v->is_done = !strcmp(state, "TRAINING_DONE");
    v->is_over = v->is_done || !strcmp(state, "TRAINING_FAILED");
}

/* Reads a number, or a reference "${name}" to one of the document's params. */
static bool read_number(yyjson_val *root, yyjson_val *value, double *out)
{
    const char *text = yyjson_get_str(value);
    size_t n = text ? strlen(text) : 0;
    if (n > 3 && n < 64 && !strncmp(text, "${", 2) && text[n - 1] == '}')
        value = yyjson_obj_getn(yyjson_obj_get(root, "params"), text + 2, n - 3);
    if (!yyjson_is_num(value)) return false;
    *out = yyjson_get_num(value);
    return true;
}

void mr_train_view_document(struct mr_train_view *v, const char *json)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    yyjson_val *threshold = yyjson_obj_get(yyjson_obj_get(root, "stop"), "threshold");
    v->has_mark = read_number(root, yyjson_obj_get(threshold, "below"), &v->mark) ||
                  read_number(root, yyjson_obj_get(threshold, "above"), &v->mark);
    (void)snprintf(v->mark_field, sizeof v->mark_field, "%s", mr_json_get_text(threshold, "field"));
    yyjson_doc_free(doc);
}

static void thin(struct mr_train_view *v)
{
    size_t kept = 0;
    for (size_t i = 0; i < v->points_count; i += 2, kept++) {
        v->losses[kept] = v->losses[i];
        v->accuracies[kept] = v->accuracies[i];
    }
    v->points_count = kept;
    v->thinned++;
}

static void add_point(struct mr_train_view *v)
{
    if (v->points_count == MR_TRAIN_POINTS_MAX) thin(v);
    uint64_t every = (uint64_t)1 << v->thinned;
    if (v->scores_count++ % every != 0) return;
    v->losses[v->points_count] = (struct mr_plot_point){(double)v->step, v->loss};
    v->accuracies[v->points_count++] = (struct mr_plot_point){(double)v->step, v->accuracy};
}

void mr_train_view_score(struct mr_train_view *v, const char *json)
{
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    yyjson_val *score = yyjson_doc_get_root(doc);
    const char *name = NULL;
    for (size_t i = 0; i < MR_ARRAY_LEN(losses) && !name; i++)
        if (yyjson_obj_get(score, losses[i])) name = losses[i];
    if (name) {
        (void)snprintf(v->loss_name, sizeof v->loss_name, "%s", name);
        v->loss = mr_json_get_real(score, name);
        v->accuracy =
            yyjson_obj_get(score, "accuracy") ? mr_json_get_real(score, "accuracy") : (double)NAN;
        v->step = mr_json_get_u64(score, yyjson_obj_get(score, "version") ? "version" : "step");
        add_point(v);
        if (v->scores.n) mr_buf_add_text(&v->scores, ",");
        mr_buf_add_text(&v->scores, json);
    }
    yyjson_doc_free(doc);
}

/* ---- the line -------------------------------------------------------------------------------- */

const char *mr_train_state_word(const char *state)
{
    static const char *const words[][2] = {{"TRAINING_PREPARING", "preparing"},
        {"TRAINING_FORMING", "forming"}, {"TRAINING_RUNNING", "running"},
        {"TRAINING_RECOVERING", "recovering"}, {"TRAINING_STOPPING", "stopping"},
        {"TRAINING_DONE", "done"}, {"TRAINING_FAILED", "failed"}};
    for (size_t i = 0; i < MR_ARRAY_LEN(words); i++)
        if (!strcmp(words[i][0], state)) return words[i][1];
    return state[0] ? state : "unknown";
}

void mr_train_view_line(const struct mr_train_view *v, mr_duration elapsed, struct mr_buf *out)
{
    yyjson_val *counters = yyjson_obj_get(v->training, "counters");
    uint64_t version = MR_MAX(mr_json_get_u64(v->training, "version"), v->step);
    double rate = mr_json_get_real(v->training, "examples_per_s");
    mr_buf_printf(out, "%-10s %6.1f s",
        v->training ? mr_train_state_word(mr_json_get_text(v->training, "state")) : "starting",
        (double)elapsed / 1e9);
    if (!version && !v->loss_name[0]) return;
    mr_buf_printf(out, "  step %" PRIu64, version);
    if (v->loss_name[0])
        mr_buf_printf(out, "  %s %.4f", v->loss_name, v->loss);
    else
        mr_buf_printf(out, "  loss %.4f", mr_json_get_real(counters, "loss"));
    if (v->loss_name[0] && isfinite(v->accuracy))
        mr_buf_printf(out, "  accuracy %.2f %%", v->accuracy * 100);
    /* The rate is 0 while it is not known, and after the end of the training. */
    if (rate > 0) mr_buf_printf(out, "  %.0f examples/s", rate);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Appends the numbers of an object: "cross_entropy 0.1134, accuracy 97.12 %". */
static void add_numbers(yyjson_val *object, struct mr_buf *out)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *key = NULL;
    yyjson_val *value = NULL;
    bool first = true;
    yyjson_obj_foreach(object, at, max, key, value)
    {
        const char *name = yyjson_get_str(key);
        if (!yyjson_is_num(value)) continue;
        mr_buf_printf(out, "%s%s ", first ? "" : ", ", name);
        first = false;
        if (!strcmp(name, "accuracy"))
            mr_buf_printf(out, "%.2f %%", yyjson_get_num(value) * 100);
        else if (yyjson_is_real(value))
            mr_buf_printf(out, "%.4f", yyjson_get_num(value));
        else
            mr_buf_printf(out, "%" PRId64, yyjson_get_sint(value));
    }
    mr_buf_add_text(out, first ? "none\n" : "\n");
}

static void add_scores(const struct mr_train_view *v, struct mr_buf *out)
{
    const char *text = mr_json_get_text(v->training, "score_json");
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    yyjson_val *score = yyjson_doc_get_root(doc);
    static const char *const parts[] = {"validation", "test"};
    bool has_parts = false;
    for (size_t i = 0; i < MR_ARRAY_LEN(parts); i++) {
        yyjson_val *part = yyjson_obj_get(score, parts[i]);
        if (!yyjson_is_obj(part)) continue;
        mr_buf_printf(out, "  %-11s ", parts[i]);
        add_numbers(part, out);
        has_parts = true;
    }
    if (!has_parts && yyjson_is_obj(score)) {
        mr_buf_printf(out, "  %-11s ", "last score");
        add_numbers(score, out);
    }
    yyjson_doc_free(doc);
}

/* Appends a warning if no data was given and the training generated its own data. */
static void add_data(const struct mr_train_view *v, struct mr_buf *out)
{
    const char *text = mr_json_get_text(v->training, "score_json");
    yyjson_doc *doc = yyjson_read(text, strlen(text), 0);
    if (!strcmp(mr_json_get_text(yyjson_doc_get_root(doc), "data"), "drawn"))
        mr_buf_add_text(out,
            "  data        drawn, as none was given (--data DIR): the scores are of drawn data\n");
    yyjson_doc_free(doc);
}

static double seconds_between(yyjson_val *t, const char *from, const char *to)
{
    uint64_t a = mr_json_get_u64(t, from);
    uint64_t b = mr_json_get_u64(t, to);
    return a && b > a ? (double)(b - a) / 1e9 : 0;
}

static void add_speed(yyjson_val *t, struct mr_buf *out)
{
    yyjson_val *c = yyjson_obj_get(t, "counters");
    double ran = seconds_between(t, "started_ns", "ended_ns");
    double before = seconds_between(t, "created_ns", "started_ns");
    uint64_t examples = mr_json_get_u64(c, "examples");
    mr_buf_printf(out,
        "  steps       %" PRIu64 " versions from %" PRIu64 " gradients of %" PRIu64
        " examples, epoch %" PRIu64 "\n",
        mr_json_get_u64(t, "version"), mr_json_get_u64(c, "steps"), examples,
        mr_json_get_u64(c, "epoch"));
    mr_buf_printf(out, "  speed       %.0f examples/s over %.2f s, end included; %.2f s before\n",
        ran > 0 ? (double)examples / ran : 0, ran, before);
}

static void add_shares(yyjson_val *t, struct mr_buf *out)
{
    static const char *const names[] = {"compute", "feed", "pull", "push", "wait"};
    yyjson_val *c = yyjson_obj_get(t, "counters");
    double seconds[MR_ARRAY_LEN(names)] = {0};
    double all = 0;
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++) {
        char field[16];
        (void)snprintf(field, sizeof field, "%s_s", names[i]);
        all += seconds[i] = mr_json_get_real(c, field);
    }
    mr_buf_printf(out, "  time        ");
    for (size_t i = 0; i < MR_ARRAY_LEN(names) && all > 0; i++)
        mr_buf_printf(out, "%s%s %.1f %%", i ? ", " : "", names[i], seconds[i] * 100 / all);
    mr_buf_printf(out, "%s\n", all > 0 ? " of the workers' time" : "unknown");
}

static void add_moved(yyjson_val *t, struct mr_buf *out)
{
    yyjson_val *c = yyjson_obj_get(t, "counters");
    uint64_t parts = mr_json_get_u64(c, "moved_parts");
    char bytes[MR_BYTES_TEXT_MAX];
    mr_bytes_text(mr_json_get_u64(c, "moved_bytes"), bytes);
    if (parts)
        mr_buf_printf(out, "  moved       %" PRIu64 " partition%s of %s from other nodes' stores\n",
            parts, parts == 1 ? "" : "s", bytes);
    else
        mr_buf_printf(out, "  moved       nothing from other nodes' stores\n");
}

static void add_lost(yyjson_val *t, struct mr_buf *out)
{
    yyjson_val *c = yyjson_obj_get(t, "counters");
    mr_buf_printf(out,
        "  lost        %" PRIu64 " steps, %" PRIu64 " gradients; %" PRIu64
        " gradients came too late; %" PRIu64 " times reset to a checkpoint\n",
        mr_json_get_u64(c, "steps_lost"), mr_json_get_u64(c, "gradients_lost"),
        mr_json_get_u64(c, "gradients_stale"), mr_json_get_u64(t, "restores"));
}

void mr_train_view_table(const struct mr_train_view *v, struct mr_buf *out)
{
    yyjson_val *t = v->training;
    const char *name = mr_json_get_text(t, "name");
    const char *reason = mr_json_get_text(t, "reason");
    const char *model = mr_json_get_text(t, "model_name");
    const char *object = mr_json_get_text(t, "model_object");
    mr_buf_printf(out, "training %s%s%s: %s\n", mr_json_get_text(t, "id"), name[0] ? " " : "", name,
        mr_train_state_word(mr_json_get_text(t, "state")));
    if (reason[0]) mr_buf_printf(out, "  %-11s %s\n", v->is_done ? "stopped" : "failed", reason);
    if (v->is_over && !v->is_done && !mr_json_get_u64(yyjson_obj_get(t, "counters"), "steps")) {
        return; /* the session has not made a step */
    }
    add_data(v, out);
    add_scores(v, out);
    add_speed(t, out);
    add_shares(t, out);
    add_moved(t, out);
    add_lost(t, out);
    if (object[0])
        mr_buf_printf(out,
            "  kept        model %s; `millrace train --follow %s --out DIR` writes model.npz\n",
            model[0] ? model : object, mr_json_get_text(t, "id"));
    mr_buf_printf(out, "  scores      channel %s, %" PRIu64 " of them\n",
        mr_json_get_text(t, "channel"), v->scores_count);
}

struct mr_plot mr_train_view_plot(const struct mr_train_view *v)
{
    struct mr_plot p = {.x_name = "step",
        .left = {v->loss_name, v->losses, v->points_count},
        .has_mark = v->has_mark && !strcmp(v->mark_field, v->loss_name),
        .mark = v->mark};
    for (size_t i = 0; i < v->points_count; i++)
        if (isfinite(v->accuracies[i].y))
            p.right = (struct mr_plot_line){"accuracy", v->accuracies, v->points_count};
    return p;
}
