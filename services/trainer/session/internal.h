/* The shell of sessions: calls, records, jobs and channels become events of the core (core/core.h),
 * and its effects are carried out. Decides nothing about a session.
 * Private to services/trainer/session.
 *
 *   session.c          the part: steps, effects, turns, life
 *   service.c    the service: requests in, answers out
 *   start.c    Start, which comes in pieces
 *   watch.c   calls that follow a session: Get and Start that wait, Watch
 *   message.c     a session as messages
 *   records.c  between link/record_log.h and Redis
 *   score_channel.c  the channels whose entries stop a session
 *   erase.c    objects of checkpoints that are not wanted any more
 *
 * A call that waits for the core is known to it by its call id (the ticket). */
#pragma once

#include "services/trainer/core/core.h"
#include "services/trainer/link/record_log.h"
#include "services/trainer/session/scheduler_client.h"
#include "services/trainer/session/session.h"
#include "services/trainer/shell/shell.h"

#include <millrace/v1/trainings.pb-c.h>

#define MR_TRAINING_WAIT_S_MAX 3600.0
#define MR_TRAINING_ROLE_WAIT_S_MAX 60.0

struct mr_trainings {
    struct mr_trainer_shell *t;
    struct mr_trainer *core;
    struct mr_trainer_effects fx;
    bool is_in_step;  /* effects are being carried out: no event may come from there */
    bool is_draining; /* nothing new is asked of anybody */
    struct mr_records *records;
    struct mr_sched_link *sched;
    struct mr_list waiting;   /* calls that the core will answer */
    struct mr_list followers; /* watch.c */
    struct mr_list channels;  /* score_channel.c */
    struct mr_list locations; /* there, too */
    struct mr_list erasures;  /* erase.c */
    struct mr_counter *reports, *joins, *entries, *started;
};

struct mr_training_call { /* context of every call */
    struct mr_trainings *tr;
    bool is_waiting; /* for the core: the core is notified when the call ends */
    mr_training_id session;
    mr_duration wait;    /* of Start: for the end of the session */
    struct mr_list node; /* on tr->waiting or tr->followers */
    mr_rpc_call_id call;
    bool is_watch, has_sent;           /* of a follower */
    uint64_t seen;                     /* of Watch: the last change that was sent */
    mr_time until;                     /* of Get and Start */
    struct mr_training_intake *intake; /* of Start */
};

/* session.c */
void mr_trainings_step(struct mr_trainings *tr, struct mr_trainer_event *ev);

/* service.c */
struct mr_training_call *mr_training_call_of(const struct mr_rpc_call *call);
void mr_training_call_open(struct mr_rpc_call *call);
void mr_training_call_done(struct mr_rpc_call *call, const struct mr_rpc_status *status);
/* The call waits for the core, under its id as ticket. */
void mr_training_call_ask(struct mr_rpc_call *call, struct mr_trainer_event *ev);
void mr_trainings_answer(struct mr_trainings *tr, const struct mr_trainer_effect *x);
bool mr_training_take_wait(
    struct mr_rpc_call *call, double wait_s, double most_s, mr_duration *out); /* or failed */
/* The session that a request names, or the call is failed. */
bool mr_training_lookup(struct mr_rpc_call *call, const char *field, const char *text,
    mr_training_id *id, struct mr_training_info *info);
/* A text that goes into records and other people's answers; "" is one. Or the call is failed. */
bool mr_training_is_text(
    struct mr_rpc_call *call, const char *field, const char *text, size_t bytes_max);
bool mr_training_take_role(
    struct mr_rpc_call *call, const char *session, int role, mr_training_id *id); /* or failed */
extern const struct mr_rpc_service mr_trainings_service;

/* rows.c */
void mr_training_plan_rows(struct mr_rpc_call *call, struct mr_rpc_message *msg);
void mr_training_reply_rows(
    struct mr_trainings *tr, struct mr_rpc_call *call, const struct mr_trainer_effect *x);

/* start.c */
extern const struct mr_rpc_handler mr_training_start_handler;
void mr_training_intake_free(struct mr_training_intake **intake);

/* watch.c */
void mr_training_follow(struct mr_rpc_call *call); /* as its context says, or answers at once */
void mr_trainings_changed(struct mr_trainings *tr, mr_training_id session, bool progress);
mr_time mr_trainings_follow_turn(struct mr_trainings *tr, mr_time now);
/* Get and Start of this caller are answered with the session as it is (rpc/waits.h). */
void mr_trainings_end_waits(struct mr_trainings *tr, struct mr_str waiter);
void mr_training_followers_end(struct mr_trainings *tr); /* the same for all; Watch: UNAVAILABLE */
void mr_training_calls_end(struct mr_trainings *tr, struct mr_list *calls); /* UNAVAILABLE */

/* message.c: in the scratch arena, which is not cleared. NULL: there is no such session */
Millrace__V1__Training *mr_training_message(
    struct mr_trainings *tr, mr_training_id id, bool is_whole);
Millrace__V1__JoinResponse *mr_training_joined_message(
    struct mr_trainings *tr, const struct mr_trainer_effect *x);
Millrace__V1__RowPlan *mr_training_rows_message(
    struct mr_trainings *tr, const struct mr_trainer_effect *x);
/* The document with defaults and parameters; n = 0: not known. A loan until the next step. */
struct mr_str mr_training_json(const struct mr_trainings *tr, mr_training_id id);
char *mr_training_text(struct mr_trainings *tr, struct mr_str s);
void mr_training_reply(struct mr_rpc_call *call, struct mr_trainings *tr, mr_training_id id);

/* records.c */
int mr_trainings_recover(struct mr_trainings *tr, struct mr_error *e);
void mr_trainings_write(struct mr_trainings *tr, const struct mr_trainer_effect *x);

/* score_channel.c */
void mr_trainings_channel(struct mr_trainings *tr, const struct mr_trainer_effect *x);
void mr_trainings_locate(struct mr_trainings *tr, const struct mr_trainer_effect *x);
mr_time mr_trainings_channels_turn(struct mr_trainings *tr, mr_time now);
void mr_trainings_channels_close(struct mr_trainings *tr);

/* erase.c */
void mr_trainings_erase(struct mr_trainings *tr, const struct mr_trainer_effect *x);
mr_time mr_trainings_erase_turn(struct mr_trainings *tr, mr_time now);
void mr_trainings_erase_close(struct mr_trainings *tr);
