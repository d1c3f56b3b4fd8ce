/* The state of a training that is being followed, as a progress line, as a table at the end, and as
 * the curve of its scores. Reads the gateway's answers and sends no requests. */
#pragma once

#include "base/buf.h"
#include "base/time.h"
#include "cli/plot/plot.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#define MR_TRAIN_POINTS_MAX 20000 /* of a curve; when it is full, every second point is dropped */

struct mr_train_view {
    yyjson_doc *doc;      /* the latest answer */
    yyjson_val *training; /* in `doc`; NULL: no answer yet */
    bool is_over;
    bool is_done;

    char loss_name[32]; /* "cross_entropy"; "": no score yet */
    double loss;        /* of the latest score */
    double accuracy;    /* NaN: the scores have none */
    uint64_t step;
    struct mr_buf scores;         /* JSON, with commas between them */
    struct mr_plot_point *losses; /* by step */
    struct mr_plot_point *accuracies;
    size_t points_count;
    unsigned thinned; /* one of 2^thinned scores is a point */
    uint64_t scores_count;

    bool has_mark;
    double mark; /* the threshold that stops the training */
    char mark_field[32];
};

void mr_train_view_init(struct mr_train_view *v);
void mr_train_view_fini(struct mr_train_view *v);

/* Takes `doc`; `training` is the session in it. */
void mr_train_view_take(struct mr_train_view *v, yyjson_doc *doc, yyjson_val *training);
void mr_train_view_document(
    struct mr_train_view *v, const char *json); /* the session's document: reads the threshold */
void mr_train_view_score(struct mr_train_view *v, const char *json); /* one score */

const char *mr_train_state_word(const char *state); /* "TRAINING_DONE": "done" */
/* "running  12.3 s  step 4213  cross_entropy 0.1342  accuracy 96.1 %  182340 examples/s" */
void mr_train_view_line(const struct mr_train_view *v, mr_duration elapsed, struct mr_buf *out);
void mr_train_view_table(const struct mr_train_view *v, struct mr_buf *out);
struct mr_plot mr_train_view_plot(const struct mr_train_view *v);
