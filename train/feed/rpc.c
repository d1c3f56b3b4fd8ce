/* Makes one call: sends the request, and checks the stop flag while it waits for the reply. */
#include "train/feed/rpc.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "rpc/util/sync.h"

#define LOOK_EVERY (10 * MR_MS) /* interval between two checks of the stop flag */

struct mr_role_link {
    struct mr_rpc_client *client;
    struct mr_buf wire;
};

struct mr_role_link *mr_role_link_open(const char *address, const struct mr_credential *credential)
{
    struct mr_role_link *l = mr_alloc(sizeof *l);
    const struct mr_rpc_channel_options options = {.credential = credential};
    l->client = mr_rpc_client_open(address, &options);
    mr_buf_init(&l->wire, MR_MESSAGE_BYTES_MAX);
    return l;
}

void mr_role_link_close(struct mr_role_link **link)
{
    if (!*link) return;
    mr_rpc_client_close(&(*link)->client);
    mr_buf_fini(&(*link)->wire);
    mr_release(*link);
    *link = NULL;
}

static int answer(struct mr_rpc_stream *s, mr_time until, struct mr_stop stop,
    struct mr_rpc_message **out, struct mr_error *e)
{
    for (;;) {
        mr_time now = mr_clock_now();
        int err = mr_rpc_stream_read(s, MR_MIN(until, mr_time_after(now, LOOK_EVERY)), out, e);
        /* true: the server sent the status DEADLINE_EXCEEDED; false: this read has timed out */
        bool is_over = mr_rpc_stream_status(s)->code;
        if (err != MR_ETIMEOUT || is_over) return err;
        if (stop.is_set && stop.is_set(stop.ctx))
            return mr_fail(e, MR_ECANCELED, "the role was asked to stop");
        if (now >= until) return mr_fail(e, MR_ETIMEOUT, "no answer in time");
    }
}

int mr_role_call(struct mr_role_link *l, const char *method, const ProtobufCMessage *request,
    mr_duration timeout, struct mr_stop stop, const ProtobufCMessageDescriptor *type,
    struct mr_pb_arena *arena, void *reply, struct mr_error *e)
{
    mr_buf_clear(&l->wire);
    mr_pb_pack(request, &l->wire);
    /* the server sees a deadline that is a little later than this caller's */
    const struct mr_rpc_call_options options = {.timeout = timeout + MR_SECOND, .one_reply = true};
    struct mr_rpc_stream *s = mr_rpc_stream_open(l->client, method, &options);
    struct mr_rpc_message *m = NULL;
    int err = mr_rpc_stream_send(s, mr_buf_str(&l->wire));
    if (!err) err = mr_rpc_stream_half_close(s);
    err = answer(s, mr_time_after(mr_clock_now(), timeout), stop, &m, e);
    if (!err && type) {
        mr_pb_arena_clear(arena);
        void *got = mr_pb_unpack(type, mr_rpc_message_str(m), arena, e);
        if (!got) err = MR_EFORMAT;
        if (got) memcpy(reply, &got, sizeof got);
    }
    /* reads the end of the stream, which brings the status and no message */
    struct mr_rpc_message *more = NULL;
    if (m) (void)mr_rpc_stream_read(s, mr_time_after(mr_clock_now(), LOOK_EVERY), &more, NULL);
    mr_rpc_message_free(&more);
    mr_rpc_message_free(&m);
    mr_rpc_stream_close(&s);
    return err;
}

bool mr_role_may_retry(int err)
{
    return err == MR_EAWAY || err == MR_ETIMEOUT || err == MR_ELIMIT || err == MR_EUNKNOWN ||
           err == MR_EABORTED;
}
