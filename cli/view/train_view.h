/* The state of a training that is being followed, as a progress line, as a table at the end, and as
 * the curve of its scores. Reads the gateway's answers and sends no requests. */
#pragma once

#include "base/buf.h"
#include "base/time.h"
#include "cli/plot/plot.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

/* Limit of the points of a curve. When the curve is full, every second point is dropped. */
#define MR_TRAIN_POINTS_MAX 20000

struct mr_train_view {
    yyjson_doc *doc;      /* the latest answer of the gateway */
    yyjson_val *training; /* the session in `doc`; NULL: there is no answer yet */
    bool is_over;
    bool is_done;

    char loss_name[32]; /* for example "cross_entropy"; "": there is no score yet */
    double loss;        /* loss of the latest score */
    double accuracy;    /* accuracy of the latest score; NaN: scores have none */
    uint64_t step;
    struct mr_buf scores;         /* all scores as JSON, with commas between them */
    struct mr_plot_point *losses; /* points of the curve of the loss; x is the step */
    struct mr_plot_point *accuracies;
    size_t points_count;
    unsigned thinned; /* each point stands for 2^thinned scores */
    uint64_t scores_count;

    bool has_mark;
    double mark; /* the threshold at which the training stops */
    char mark_field[32];
};

void mr_train_view_init(struct mr_train_view *v);
void mr_train_view_fini(struct mr_train_view *v);

/* Takes over `doc`; `training` is the session in it. */
void mr_train_view_take(struct mr_train_view *v, yyjson_doc *doc, yyjson_val *training);
/* Reads from the session's document the threshold at which the training stops. */
void mr_train_view_document(struct mr_train_view *v, const char *json);
void mr_train_view_score(struct mr_train_view *v, const char *json); /* takes one score */

const char *mr_train_state_word(const char *state); /* for example "done" for "TRAINING_DONE" */
/* Appends one line, for example "running 12.3 s step 4213 cross_entropy 0.1342 accuracy 96.10 %
 * 182340 examples/s". */
void mr_train_view_line(const struct mr_train_view *v, mr_duration elapsed, struct mr_buf *out);
void mr_train_view_table(const struct mr_train_view *v, struct mr_buf *out);
struct mr_plot mr_train_view_plot(const struct mr_train_view *v);
