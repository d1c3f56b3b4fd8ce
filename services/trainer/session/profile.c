/* The API's method Profile of a training. Asks the scheduler for the profile of the job that runs
 * the session's roles, and passes the scheduler's answer on. */
#include "services/trainer/session/internal.h"

#include "base/alloc.h"
#include "rpc/status.h"

#include <millrace/v1/jobs.pb-c.h>

/* This long, because the scheduler reads the trace of the whole job before it answers. */
#define CALL_TIME (60 * MR_SECOND)

struct question { /* context of the call to the scheduler */
    struct mr_rpc_loop *loop;
    mr_rpc_call_id call; /* the client's call; it may end before the scheduler answers */
};

static void on_profile(void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply)
{
    struct question *q = ctx;
    struct mr_error e = {0};
    struct mr_rpc_call *call = mr_rpc_call_find(q->loop, q->call);
    mr_release(q);
    if (!call) return;
    if (mr_rpc_status_error(status, &e))
        (void)mr_rpc_call_fail(call, &e);
    else
        (void)mr_rpc_call_reply(call, mr_rpc_message_str(reply));
}

static void ask(struct mr_rpc_call *call, mr_job_id job, uint32_t steps_max)
{
    struct mr_training_call *c = mr_training_call_of(call);
    Millrace__V1__ProfileRequest m = MILLRACE__V1__PROFILE_REQUEST__INIT;
    char id[MR_JOB_ID_TEXT_MAX];
    struct question *q = mr_alloc(sizeof *q);
    const struct mr_rpc_call_options options = {.timeout = CALL_TIME};
    struct mr_buf packed;
    q->loop = c->tr->t->loop;
    q->call = c->call;
    mr_job_id_format(job, id);
    m.id = id;
    m.steps_max = steps_max;
    mr_buf_init(&packed, 4096);
    mr_pb_pack(&m.base, &packed);
    mr_list_add_tail(&c->tr->waiting, &c->node); /* a trainer that stops fails the call */
    (void)mr_rpc_unary(c->tr->t->scheduler, "/millrace.v1.Jobs/Profile", mr_buf_str(&packed),
        &options, on_profile, q);
    mr_buf_fini(&packed);
}

void mr_training_profile(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    struct mr_training_info info;
    const Millrace__V1__TrainingProfileRequest *m = mr_trainer_request(
        c->tr->t, call, msg, &millrace__v1__training_profile_request__descriptor);
    if (!m || !mr_training_lookup(call, "id", m->id, &c->session, &info)) return;
    if (!info.role_job.v)
        mr_trainer_fail(call, MR_ESTATE, "session %s: its roles were not started", m->id);
    else if (!c->tr->t->scheduler)
        mr_trainer_fail(call, MR_ESTATE, "the trainer was started without --scheduler");
    else
        ask(call, info.role_job, m->steps_max);
}
