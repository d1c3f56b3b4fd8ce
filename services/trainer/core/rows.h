/* Row plans: they tell which worker has which rows of the training data. The plan of a session is
 * decided once, stored in the session's record, and sent to each worker that replaces another
 * one. */
#pragma once

#include "services/trainer/core/internal.h"

void mr_trainer__rows(struct mr_trainer *t, const struct mr_trainer_event *ev);
/* Called when the session first runs: decides for the even split if all workers are on one node. */
void mr_trainer__rows_settle(struct session *s);
void mr_trainer__rows_turn(struct mr_trainer *t, struct session *s, struct member *m);
void mr_trainer__rows_answer(struct mr_trainer *t, const struct session *s, struct member *m);
/* Copies the plan `rows` into the session, as its row plan. */
void mr_trainer__rows_take(struct session *s, const struct mr_training_rows *rows);
