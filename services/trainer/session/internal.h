/* The shell of sessions: turns calls, records, jobs and channels into events of the core
 * (core/core.h), and carries out its effects. Decides nothing about a session. Private to
 * services/trainer/session. Its files call each other because each brings events to the core, and
 * the effects of a step concern all of them.
 *
 *   session.c        mr_trainings_part (session.h): steps, effects, turns, opening and closing
 *   service.c        the gRPC service: requests in, answers out
 *   start.c          Start, whose request is a stream
 *   watch.c          calls that follow a session: Watch, and Get and Start that wait
 *   rows.c           PlanRows
 *   profile.c        Profile, which the scheduler answers
 *   message.c        a session as messages
 *   records.c        connects link/record_log.h with Redis
 *   score_channel.c  channels whose entries stop a session
 *   erase.c          deletes objects of old checkpoints
 *
 * The core knows a call that waits for an answer by a ticket, which is the id of the call. */
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
    bool is_in_step; /* effects are being carried out, which must not cause a step */
    /* the trainer is stopping: it sends no requests about jobs, and starts no deletions */
    bool is_draining;
    struct mr_records *records;
    struct mr_sched_link *sched;
    struct mr_list waiting;   /* calls that the core will answer */
    struct mr_list followers; /* watch.c */
    struct mr_list channels;  /* score_channel.c */
    struct mr_list locations; /* score_channel.c */
    struct mr_list erasures;  /* erase.c */
    struct mr_counter *reports, *joins, *entries, *started;
};

struct mr_training_call { /* the context of every call of the service */
    struct mr_trainings *tr;
    /* the core has the call's ticket, and gets GONE if the call ends before its answer */
    bool is_waiting;
    mr_training_id session;
    mr_duration wait;    /* only in Start: how long to wait for the end of the session */
    struct mr_list node; /* member of tr->waiting or tr->followers */
    mr_rpc_call_id call;
    /* is_watch: the call is a Watch; has_sent: the client of this Watch has the change `seen` */
    bool is_watch, has_sent;
    uint64_t seen;                     /* only in Watch: number of the client's latest change */
    mr_time until;                     /* only in Get and Start: end of the wait */
    struct mr_training_intake *intake; /* only in Start */
};

/* session.c */
void mr_trainings_step(struct mr_trainings *tr, struct mr_trainer_event *ev);

/* service.c */
struct mr_training_call *mr_training_call_of(const struct mr_rpc_call *call);
void mr_training_call_open(struct mr_rpc_call *call);
void mr_training_call_done(struct mr_rpc_call *call, const struct mr_rpc_status *status);
/* Steps the core with `ev`. Then the call waits for the effect that answers it. */
void mr_training_call_ask(struct mr_rpc_call *call, struct mr_trainer_event *ev);
void mr_trainings_answer(struct mr_trainings *tr, const struct mr_trainer_effect *x);
/* Finds the session that a request names. False: the call has ended with an error. */
bool mr_training_lookup(struct mr_rpc_call *call, const char *field, const char *text,
    mr_training_id *id, struct mr_training_info *info);
/* Checks `wait_s`, a member of a request, and sets `*out` to that time. False: the call has ended
 * with an error. */
bool mr_training_take_wait(
    struct mr_rpc_call *call, double wait_s, double most_s, mr_duration *out);
/* Checks a text of a request. The text will appear in records and in the answers to other clients.
 * An empty text is allowed. False: the text was refused, and the call has ended with an error. */
bool mr_training_is_text(
    struct mr_rpc_call *call, const char *field, const char *text, size_t bytes_max);
/* Checks the session's id and the role of a request. False: the call has ended with an error. */
bool mr_training_take_role(
    struct mr_rpc_call *call, const char *session, int role, mr_training_id *id);
extern const struct mr_rpc_service mr_trainings_service;

/* rows.c */
void mr_training_plan_rows(struct mr_rpc_call *call, struct mr_rpc_message *msg);
void mr_training_reply_rows(
    struct mr_trainings *tr, struct mr_rpc_call *call, const struct mr_trainer_effect *x);

/* profile.c */
void mr_training_profile(struct mr_rpc_call *call, struct mr_rpc_message *msg);

/* start.c */
extern const struct mr_rpc_handler mr_training_start_handler;
void mr_training_intake_free(struct mr_training_intake **intake);

/* watch.c */
/* Lets the call follow the session that its struct mr_training_call names. A call that has nothing
 * to wait for is answered at once. */
void mr_training_follow(struct mr_rpc_call *call);
void mr_trainings_changed(struct mr_trainings *tr, mr_training_id session, bool progress);
mr_time mr_trainings_follow_turn(struct mr_trainings *tr, mr_time now);
/* Answers the Gets and Starts of this caller with the session as it is (rpc/server/waits.h). */
void mr_trainings_end_waits(struct mr_trainings *tr, struct mr_str waiter);
/* Answers the Gets and Starts of all callers with the session as it is, and ends each Watch with
 * UNAVAILABLE. */
void mr_training_followers_end(struct mr_trainings *tr);
/* Fails all calls of the list with UNAVAILABLE. */
void mr_training_calls_end(struct mr_trainings *tr, struct mr_list *calls);

/* message.c. These functions make messages in the scratch arena `t->scratch`, and do not clear the
 * arena first. mr_training_message and mr_training_joined_message return NULL if there is no such
 * session. */
Millrace__V1__Training *mr_training_message(
    struct mr_trainings *tr, mr_training_id id, bool is_whole);
Millrace__V1__JoinResponse *mr_training_joined_message(
    struct mr_trainings *tr, const struct mr_trainer_effect *x);
Millrace__V1__RowPlan *mr_training_rows_message(
    struct mr_trainings *tr, const struct mr_trainer_effect *x);
/* Returns the JSON document that describes the session, with defaults and parameters filled in. The
 * text is lent until the next step. n = 0: there is no such document. */
struct mr_str mr_training_json(const struct mr_trainings *tr, mr_training_id id);
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
