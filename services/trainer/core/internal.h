/* The functions that the files of the trainer's core call from each other. */
#pragma once

#include "services/trainer/core/state.h"

/* core.c */
struct mr_trainer_effect *mr_trainer__emit(struct mr_trainer *t, enum mr_trainer_effect_type type);
void mr_trainer__text(struct mr_trainer *t, struct mr_trainer_effect *x, struct mr_str s);
void mr_trainer__refuse(struct mr_trainer *t, enum mr_trainer_effect_type type, uint64_t ticket,
    int err, const char *fmt, ...) MR_PRINTF(5, 6);
void mr_trainer__enter(struct mr_trainer *t, struct session *s, enum mr_training_state state);
void mr_trainer__fail(struct mr_trainer *t, struct session *s, const char *fmt, ...)
    MR_PRINTF(3, 4);
struct session *mr_trainer__find(const struct mr_trainer *t, mr_training_id id);
struct session *mr_trainer__session_new(struct mr_trainer *t, struct mr_training_document *d);
void mr_trainer__session_free(struct session **s);
void mr_trainer__add(struct mr_trainer *t, struct session *s);
uint32_t mr_trainer__copy(char *to, size_t max, struct mr_str s);
void mr_trainer__answer(struct mr_trainer *t, struct session *s, const struct call *c, int err);
/* Keeps the call until Redis has the session's current state, and then answers it. */
void mr_trainer__wait(struct mr_trainer *t, struct session *s, enum mr_trainer_effect_type type,
    uint64_t ticket, bool existed);
void mr_trainer__follow(struct mr_trainer *t, struct session *s, bool on);
void mr_trainer__follow_one(struct mr_trainer *t, struct session *s, int which, bool on);
static inline bool mr_trainer__is_over(enum mr_training_state state)
{
    return state == MR_TRAINING_DONE || state == MR_TRAINING_FAILED;
}

/* calls.c */
void mr_trainer__start(struct mr_trainer *t, const struct mr_trainer_event *ev);
void mr_trainer__stop(struct mr_trainer *t, const struct mr_trainer_event *ev);
void mr_trainer__forget(struct mr_trainer *t, const struct mr_trainer_event *ev);
void mr_trainer__forget_old(struct mr_trainer *t);

/* member.c */
void mr_trainer__join(struct mr_trainer *t, const struct mr_trainer_event *ev);
void mr_trainer__barrier(struct mr_trainer *t, const struct mr_trainer_event *ev);
void mr_trainer__report(struct mr_trainer *t, const struct mr_trainer_event *ev);
/* Treats members whose lease has expired as lost. Answers calls of members that have waited too
 * long, and calls of Join and PlanRows that can be answered now. */
void mr_trainer__members_turn(struct mr_trainer *t, struct session *s);
void mr_trainer__members_gone(struct session *s, uint64_t ticket);
/* Called when the id of the roles' job has become known. Answers the Joins that came before, so
 * that their roles ask again. */
void mr_trainer__members_ask_again(struct mr_trainer *t, struct session *s);
/* Called when the session has ended: answers all waiting calls of members. */
void mr_trainer__members_release(struct mr_trainer *t, struct session *s);
mr_time mr_trainer__members_next(const struct session *s);
bool mr_trainer__is_owner(const struct session *s, const struct member *m);
struct member *mr_trainer__saver(struct session *s);
struct mr_trainer_instruction mr_trainer__instruction(
    const struct session *s, const struct member *m);

/* Returns the member that a call is about, and its session in *sp; NULL: the call was refused. */
struct member *mr_trainer__member_of(struct mr_trainer *t, const struct mr_trainer_event *ev,
    enum mr_trainer_effect_type answer, struct session **sp);
bool mr_trainer__is_in_force(const struct member *m, uint64_t incarnation);

/* stop.c */
void mr_trainer__begin_stop(struct mr_trainer *t, struct session *s, const char *fmt, ...)
    MR_PRINTF(3, 4);
/* Applies the stop rules, and moves the session from state to state. */
void mr_trainer__evaluate(struct mr_trainer *t, struct session *s);
void mr_trainer__bound(struct mr_trainer *t, struct session *s);
mr_time mr_trainer__stop_next(const struct mr_trainer *t, const struct session *s);
void mr_trainer__entry(struct mr_trainer *t, const struct mr_trainer_event *ev);
void mr_trainer__located(struct mr_trainer *t, const struct mr_trainer_event *ev);
/* Returns the name of a channel whose entries the stop rules read. `which` 0: the session's own
 * channel. 1: the other channel that the threshold rule names; empty: it names no other one. */
struct mr_str mr_trainer__channel(const struct session *s, int which);
/* Returns the longest time that the session may stay in its present state; MR_NEVER: there is no
 * bound. */
mr_duration mr_trainer__bound_of(const struct session *s);

/* checkpoint.c */
void mr_trainer__checkpoint_reported(
    struct mr_trainer *t, struct session *s, struct member *m, const struct mr_training_report *r);
void mr_trainer__restore(struct mr_trainer *t, struct session *s);
void mr_trainer__doom_all(struct session *s);

/* job.c */
void mr_trainer__job_turn(struct mr_trainer *t, struct session *s);
void mr_trainer__job_event(struct mr_trainer *t, const struct mr_trainer_event *ev);
mr_time mr_trainer__job_next(const struct mr_trainer *t, const struct session *s);

/* record.c */
void mr_trainer__record_write(struct session *s, struct mr_buf *out);
void mr_trainer__record_read(struct mr_trainer *t, const struct mr_trainer_event *ev);
