/* How a server call is answered: with metadata, a reply and a status. */
#include "rpc/core.h"

#include "base/assert.h"
#include "rpc/status.h"

/* Larger details are not sent, because peers by default refuse more than 8 KiB of trailers. */
#define DETAILS_BYTES_MAX ((size_t)4096)

int mr_rpc_call_add_initial(struct mr_rpc_call *call, const char *name, struct mr_str value)
{
    mr_assert(call->server);
    if (mr_rpc_state_is_over(&call->state)) return MR_ECANCELED;
    if (call->initial_sent) return MR_ESTATE;
    return mr_rpc_outgoing_add(&call->initial_out, name, value);
}

int mr_rpc_call_add_trailing(struct mr_rpc_call *call, const char *name, struct mr_str value)
{
    mr_assert(call->server);
    if (mr_rpc_state_is_over(&call->state)) return MR_ECANCELED;
    if (call->state.sending != MR_RPC_SENDING) return MR_ESTATE;
    return mr_rpc_outgoing_add(&call->trailing_out, name, value);
}

int mr_rpc_call_finish(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    mr_assert(call->server);
    mr_assert(status->code >= 0);
    if (mr_rpc_state_is_over(&call->state)) return MR_ECANCELED;
    if (call->state.sending != MR_RPC_SENDING) return MR_ESTATE;
    if (status->details.n && status->details.n <= DETAILS_BYTES_MAX)
        (void)mr_rpc_outgoing_add(&call->trailing_out, "grpc-status-details-bin", status->details);
    size_t n = MR_MIN(status->message.n, (size_t)MR_ERROR_TEXT_MAX);
    call->status = (grpc_status_code)status->code;
    call->status_text = grpc_slice_from_copied_buffer(status->message.p, n);
    mr_rpc_sending_move(&call->state, MR_RPC_FINISHING);
    mr_rpc_call_mark(call);
    return MR_OK;
}

int mr_rpc_call_finish_ok(struct mr_rpc_call *call)
{
    static const struct mr_rpc_status ok;
    return mr_rpc_call_finish(call, &ok);
}

int mr_rpc_call_reply(struct mr_rpc_call *call, struct mr_str bytes)
{
    int err = mr_rpc_call_send(call, bytes);
    if (err == MR_ETOOBIG) {
        struct mr_error e;
        (void)mr_fail(&e, err, "the answer has %zu bytes, more than the %zu of one message",
            bytes.n, MR_MESSAGE_BYTES_MAX);
        (void)mr_rpc_call_fail(call, &e);
        return err;
    }
    if (err) return err;
    return mr_rpc_call_finish_ok(call);
}

int mr_rpc_call_fail(struct mr_rpc_call *call, const struct mr_error *e)
{
    struct mr_buf details;
    mr_buf_init(&details, DETAILS_BYTES_MAX);
    struct mr_rpc_status status = mr_rpc_status_of(e, &details);
    int err = mr_rpc_call_finish(call, &status);
    mr_buf_fini(&details);
    return err;
}
