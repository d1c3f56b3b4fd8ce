/* A role is a task of a training session: a parameter server, a worker or a scorer. This module has
 * what all roles share, from the first Join to the end of the task. The role's thread calls all
 * functions.
 *
 *     err = mr_role_begin(call, &r, kind, socket, NULL);   joins; waits until all members joined
 *     while (!(err = mr_role_look(&r, &is_new)))           does not wait
 *         …work, mr_agent_report(r.agent, &r.post)…
 *     return mr_role_end(&r, err, &e);                     reports a failure; returns the result */
#pragma once

#include "host/flag.h"
#include "train/feed/feed.h"
#include "train/feed/store.h"
#include "train/member/agent.h"
#include "train/member/env.h"
#include "train/plan/plan.h"
#include "train/transport/transport.h"

#define MR_ROLE_TURN (50 * MR_MS) /* limit of the time between two calls of mr_role_look */
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
    const struct mr_credential *credential; /* credential for the trainer; NULL: none */
    const struct mr_arg *data; /* the task's argument: a dict of data sets, each with x and y */
    struct mr_flag stop;       /* ends every wait of the role when it is set */
    /* Ends waits inside an all-reduce group when it is set. It is set whenever `stop` is set. It is
     * also set when the session goes back to a checkpoint: then the parameters are invalid. */
    struct mr_flag is_void;
    struct mr_agent *agent;    /* NULL until mr_role_begin has started it */
    struct mr_agent_view view; /* result of the last mr_role_look */
    /* the latest complete membership; NULL only inside mr_role_begin */
    struct mr_membership *members;
    struct mr_role_plan plan;
    struct mr_role_store store;
    struct mr_feed_store feed_store;
    struct mr_role_link *link; /* link to the trainer, for the role's thread */
    struct mr_agent_post post; /* the state that the agent reports */
    mr_duration waited_ns;     /* time in mr_role_wait; `post` does not count it */
    bool is_drawn; /* some of the role's data are generated test data (store/object/value.h) */
};

/* Reads the task's arguments, joins the session, and waits until all members have joined. `socket`:
 * path of the socket for shared memory, or "". `address`: of the role; NULL: the address of the
 * process. mr_role_end has to be called after MR_OK and after an error, whose text is then in the
 * call. MR_ECANCELED: the task was cancelled, or the session has ended. */
int mr_role_begin(struct mr_op_call *call, struct mr_role *r, Millrace__V1__TrainingRole kind,
    const char *socket, const char *address);
/* Fails the task for an error before mr_role_begin. Called instead of mr_role_begin and
 * mr_role_end. */
int mr_role_refuse(struct mr_op_call *call, int err, const struct mr_error *e);
/* Ends the task. The result is nil if `err` is 0 or the session has told its roles to exit. It is
 * MR_ECANCELED if the task was cancelled, and MR_EABORTED if another attempt has replaced this role
 * or the trainer has refused it (`view.is_over`). Else it is `err` with the text of `e` (NULL: the
 * call already has the text). A failure that another attempt would repeat is reported to the
 * trainer. */
int mr_role_end(struct mr_role *r, int err, const struct mr_error *e);

/* Takes over the trainer's latest answer into `view` and `members`, without waiting. `*is_new` (may
 * be NULL): there is a new membership. MR_ECANCELED: the role has to end. */
int mr_role_look(struct mr_role *r, bool *is_new);
/* Returns true if the role `ctx` has to end, else false. For struct mr_stop. */
bool mr_role_should_stop(void *ctx);
struct mr_stop mr_role_stop_of(struct mr_role *r);

/* True: `members` is up to date: no member has come or gone, and the session has not gone back to a
 * checkpoint since. */
bool mr_role_is_current(const struct mr_role *r);
/* Waits for a membership that is current. Also returns MR_OK if the phase changes first, so the
 * caller has to call mr_role_is_current. MR_ECANCELED: the role has to end. */
int mr_role_await_members(struct mr_role *r);
/* Returns where a member can be reached. Empty texts: the member has not joined. */
struct mr_place mr_role_place(
    const struct mr_role *r, Millrace__V1__TrainingRole role, uint32_t index);

/* Returns a part of the data: part `part` ("x") of set `set` ("validation"). NULL: not given. */
const struct mr_arg *mr_role_set(const struct mr_role *r, const char *set, const char *part);

/* Waits like mr_agent_wait. The time counts as waiting for other roles. */
void mr_role_wait(struct mr_role *r, mr_time deadline);
/* Returns the seconds since `*at`, and sets `*at` to the present time. */
double mr_role_lap(mr_time *at);
