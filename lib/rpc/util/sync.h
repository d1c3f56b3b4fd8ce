/* A blocking client for programs without a loop of their own: the command line and tests. Its
 * private loop runs inside these functions, on the calling thread; one thread at a time. */
#pragma once

#include "base/buf.h"
#include "rpc/client.h"

struct mr_rpc_client;
struct mr_rpc_stream;

/* `options` as in client.h, may be NULL. */
struct mr_rpc_client *mr_rpc_client_open(
    const char *address, const struct mr_rpc_channel_options *options);
void mr_rpc_client_close(struct mr_rpc_client **client); /* after its streams */

/* A unary call. The reply is appended to `reply` (may be NULL). The error is the server's. */
int mr_rpc_call_sync(struct mr_rpc_client *client, const char *method, struct mr_str request,
    const struct mr_rpc_call_options *options, struct mr_buf *reply, struct mr_error *e);

/* For a caller that waits also for something outside its streams: returns after an event on the
 * client, a wake or `deadline`. May return early. */
void mr_rpc_client_wait(struct mr_rpc_client *client, mr_time deadline);
/* Any thread: ends the wait that is under way, or the next one. */
void mr_rpc_client_wake(struct mr_rpc_client *client);

/* A call with streams: any of the four kinds. */
struct mr_rpc_stream *mr_rpc_stream_open(
    struct mr_rpc_client *client, const char *method, const struct mr_rpc_call_options *options);
/* Waits while the send queue is over its mark. MR_ESTATE after a half close; MR_ECANCELED when the
 * call is over: mr_rpc_stream_read then returns its error. */
int mr_rpc_stream_send(struct mr_rpc_stream *stream, struct mr_str bytes);
/* The same for a message in parts (rpc.h). */
int mr_rpc_stream_send_parts(
    struct mr_rpc_stream *stream, const struct mr_rpc_part *parts, size_t parts_count);
/* Has gRPC not yet taken all that was sent? */
bool mr_rpc_stream_is_sending(const struct mr_rpc_stream *stream);
int mr_rpc_stream_half_close(struct mr_rpc_stream *stream);
/* The next message: MR_OK with `*out` (free it); MR_ENOENT after the last one, the call being OK;
 * MR_ETIMEOUT by `deadline`, the call goes on; or the server's error. `e` may be NULL. */
int mr_rpc_stream_read(struct mr_rpc_stream *stream, mr_time deadline, struct mr_rpc_message **out,
    struct mr_error *e);
void mr_rpc_stream_cancel(struct mr_rpc_stream *stream); /* read then returns CANCELLED */
/* The server's metadata, initial and, once the call is over, trailing. Lent until the stream is
 * closed. */
bool mr_rpc_stream_metadata(
    const struct mr_rpc_stream *stream, const char *name, struct mr_str *value);
/* The outcome after the last message; details, if any, are lent until the stream is closed. */
const struct mr_rpc_status *mr_rpc_stream_status(const struct mr_rpc_stream *stream);
void mr_rpc_stream_close(struct mr_rpc_stream **stream); /* cancels if it goes on */
