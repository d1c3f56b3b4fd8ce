/* A role as a member of its session: what all roles share, from the first Join to the end of their
 * task. One thread, the role's, calls everything here.
 *
 *     err = mr_role_begin(call, &r, kind, socket, NULL);    joins; waits until all members joined
 *     while (!(err = mr_role_look(&r, &is_new)))            does not wait
 *         …work, mr_agent_report(r.agent, &r.post)…
 *     return mr_role_end(&r, err, &e);                      reports a failure; the task's result */
#pragma once

#include "host/flag.h"
#include "train/feed/feed.h"
#include "train/feed/store.h"
#include "train/member/agent.h"
#include "train/member/env.h"
#include "train/plan/plan.h"
#include "train/transport/transport.h"

#define MR_ROLE_TURN (50 * MR_MS) /* the longest wait between two calls of mr_role_look */
#define MR_ROLE_RUN MILLRACE__V1__TRAINING_PHASE__TRAINING_PHASE_RUN
#define MR_ROLE_HALT MILLRACE__V1__TRAINING_PHASE__TRAINING_PHASE_HALT
#define MR_ROLE_KEEP MILLRACE__V1__TRAINING_PHASE__TRAINING_PHASE_KEEP
#define MR_ROLE_EXIT MILLRACE__V1__TRAINING_PHASE__TRAINING_PHASE_EXIT
#define MR_ROLE_PS MILLRACE__V1__TRAINING_ROLE__TRAINING_PS
#define MR_ROLE_WORKER MILLRACE__V1__TRAINING_ROLE__TRAINING_WORKER
#define MR_ROLE_SCORER MILLRACE__V1__TRAINING_ROLE__TRAINING_SCORER

struct mr_role {
    struct mr_op_call *call;
    mr_time begun;
    const struct mr_role_env *env;
    Millrace__V1__TrainingRole kind;
    uint32_t index;
    char *session, *trainer;
    const struct mr_credential *credential; /* for the trainer; NULL: none */
    const struct mr_arg *data;              /* the task's argument: a dict of sets of x and y */
    struct mr_flag stop;                    /* ends every wait */
    struct mr_flag is_void;    /* ends waits inside a group: set with `stop`, and when the session
                                * went back to a checkpoint, which makes the parameters invalid */
    struct mr_agent *agent;    /* NULL until mr_role_begin has started it */
    struct mr_agent_view view; /* of the last mr_role_look */
    struct mr_membership *members; /* the latest complete one; NULL only inside mr_role_begin */
    struct mr_role_plan plan;
    struct mr_role_store store;
    struct mr_feed_store feed_store;
    struct mr_role_link *link; /* to the trainer; for the role's thread */
    struct mr_agent_post post; /* the state that the agent reports */
    bool is_drawn;             /* some of its data are generated test data (store/object/value.h) */
};

/* Reads the task's arguments, joins the session, and waits until all members have joined. `socket`:
 * path for shared memory, "" for none. `address`: of the role; NULL: the process's address. Call
 * mr_role_end after MR_OK and after an error; the error's text is in the call already.
 * MR_ECANCELED: the task was cancelled, or the session has ended. */
int mr_role_begin(struct mr_op_call *call, struct mr_role *r, Millrace__V1__TrainingRole kind,
    const char *socket, const char *address);
/* Fails the task when an error came before mr_role_begin: replaces begin and end. */
int mr_role_refuse(struct mr_op_call *call, int err, const struct mr_error *e);
/* Ends the task: with nil when the session has told its roles to exit, else with `err` and the text
 * of `e` (NULL: the text is in the call already). The trainer gets a failure that another attempt
 * would repeat. */
int mr_role_end(struct mr_role *r, int err, const struct mr_error *e);

/* Takes over the latest answer of the trainer into `view` and `members`; does not wait. `*is_new`
 * (may be NULL): there is a new membership. MR_ECANCELED: the role has to end. */
int mr_role_look(struct mr_role *r, bool *is_new);
bool mr_role_should_stop(void *ctx); /* of struct mr_stop; ctx is the role */
struct mr_stop mr_role_stop_of(struct mr_role *r);

/* Is the membership that of the current generation and restore epoch? */
bool mr_role_is_current(const struct mr_role *r);
/* Waits for a membership that is current. Returns MR_OK also when the phase changes first, so the
 * caller checks. MR_ECANCELED: the role has to end. */
int mr_role_await_members(struct mr_role *r);
/* Where a member is reached. Empty texts: it has not joined. */
struct mr_place mr_role_place(
    const struct mr_role *r, Millrace__V1__TrainingRole role, uint32_t index);

/* Part `part` ("x") of set `set` ("validation") of the data; NULL: not given. */
const struct mr_arg *mr_role_set(const struct mr_role *r, const char *set, const char *part);

/* Seconds since `*at`, which becomes now. */
double mr_role_lap(mr_time *at);
