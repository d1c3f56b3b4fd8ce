/* Which worker has which rows of the training data. Decided once, kept in the session's record,
 * and sent to every replacement of a worker. For the core's own files only. */
#pragma once

#include "services/trainer/core/internal.h"

void mr_trainer__rows(struct mr_trainer *t, const struct mr_trainer_event *ev);
void mr_trainer__rows_settle(
    struct session *s); /* when it first runs: nothing to decide on one node */
void mr_trainer__rows_turn(struct mr_trainer *t, struct session *s, struct member *m);
void mr_trainer__rows_answer(struct mr_trainer *t, const struct session *s, struct member *m);
void mr_trainer__rows_take(struct session *s, const struct mr_training_rows *rows); /* copies */
