/* What is known of a training that is being followed, and how people see it: a live line, a table
 * at the end, the curve of its scores. Knows the answers of Trainings and Channels; asks nobody. */
#pragma once

#include "base/buf.h"
#include "base/time.h"
#include "cli/plot/plot.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

#define MR_TRAIN_POINTS_MAX 20000 /* of a curve; when there are more, every other one goes */

struct mr_train_view {
    yyjson_doc *doc;      /* the latest answer; holds: */
    yyjson_val *training; /* NULL until something was heard */
    bool is_over;
    bool is_done;

    char loss_name[32]; /* "cross_entropy"; "": no score yet */
    double loss;        /* of the latest score */
    double accuracy;    /* NaN: scores have none */
    uint64_t step;
    struct mr_buf scores;         /* as they came, with commas between */
    struct mr_plot_point *losses; /* by step */
    struct mr_plot_point *accuracies;
    size_t points_count;
    unsigned thinned; /* of 2^thinned scores one is a point */
    uint64_t scores_count;

    bool has_mark;
    double mark; /* the threshold that stops it */
    char mark_field[32];
};

void mr_train_view_init(struct mr_train_view *v);
void mr_train_view_fini(struct mr_train_view *v);

/* Takes the document, whose `training` (or, for a plain answer, root) is the session. */
void mr_train_view_take(struct mr_train_view *v, yyjson_doc *doc, yyjson_val *training);
void mr_train_view_document(struct mr_train_view *v, const char *json); /* of the session */
void mr_train_view_score(struct mr_train_view *v, const char *json);    /* one entry */

const char *mr_train_state_word(const char *state); /* "TRAINING_DONE": "done" */
/* "running  12.3 s  step 4213  cross_entropy 0.1342  accuracy 96.1 %  182340 examples/s" */
void mr_train_view_line(const struct mr_train_view *v, mr_duration elapsed, struct mr_buf *out);
void mr_train_view_table(const struct mr_train_view *v, struct mr_buf *out);
struct mr_plot mr_train_view_plot(const struct mr_train_view *v);
