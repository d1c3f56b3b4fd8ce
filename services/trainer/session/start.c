/* The method Start: collects the pieces of the document, parses the document after the last piece,
 * and gives it to the core. */
#include "services/trainer/session/internal.h"

#include "base/alloc.h"

struct mr_training_intake {
    struct mr_buf body;
    char *request_id;
    bool has_first;
};

void mr_training_intake_free(struct mr_training_intake **ip)
{
    struct mr_training_intake *in = MR_STEAL(*ip);
    if (!in) return;
    mr_buf_fini(&in->body);
    mr_release(in->request_id);
    mr_release(in);
}

static void on_open(struct mr_rpc_call *call)
{
    mr_training_call_open(call);
    struct mr_training_call *c = mr_training_call_of(call);
    c->intake = mr_alloc(sizeof *c->intake);
    mr_buf_init(&c->intake->body, MR_TRAINING_DOCUMENT_BYTES_MAX);
}

/* Takes the options of the first message. False: the call was failed. */
static bool take_first(struct mr_rpc_call *call, struct mr_training_call *c,
    const Millrace__V1__StartTrainingRequest *m)
{
    c->intake->has_first = true;
    if (!mr_training_is_text(call, "request_id", m->request_id, MR_TRAINING_REQUEST_ID_BYTES_MAX))
        return false;
    c->intake->request_id = mr_copy_text(m->request_id);
    return mr_training_take_wait(call, m->wait_s, MR_TRAINING_WAIT_S_MAX, &c->wait);
}

static void on_message(struct mr_rpc_call *call, struct mr_rpc_message *msg)
{
    struct mr_training_call *c = mr_training_call_of(call);
    const Millrace__V1__StartTrainingRequest *m =
        mr_trainer_request(c->tr->t, call, msg, &millrace__v1__start_training_request__descriptor);
    if (!m) mr_training_intake_free(&c->intake); /* an incomplete document must not be used */
    if (!m || !c->intake) return;
    if (!c->intake->has_first && !take_first(call, c, m)) {
        mr_training_intake_free(&c->intake);
        return;
    }
    if (!m->body) return;
    mr_buf_add(&c->intake->body, m->body->data.data, m->body->data.len);
    if (!mr_buf_status(&c->intake->body)) return;
    mr_training_intake_free(&c->intake);
    mr_trainer_fail(
        call, MR_ETOOBIG, "the document is larger than %zu bytes", MR_TRAINING_DOCUMENT_BYTES_MAX);
}

static void on_half_close(struct mr_rpc_call *call)
{
    struct mr_training_call *c = mr_training_call_of(call);
    struct mr_training_document *document = NULL;
    struct mr_error e = {0};
    if (!c->intake) return;
    if (!c->tr->t->options.scheduler) {
        mr_trainer_fail(call, MR_ESTATE,
            "this trainer was started without --scheduler: it has no cluster to train on");
        return;
    }
    int err = mr_training_document_parse(mr_buf_str(&c->intake->body), &document, &e);
    if (err) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    struct mr_trainer_event ev = {
        .type = MR_TE_START, .text = mr_str(c->intake->request_id), .document = document};
    mr_training_call_ask(call, &ev);
}

const struct mr_rpc_handler mr_training_start_handler = {.on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_done = mr_training_call_done};
