/* A blocking client, for programs without a loop: the command line and tests. Each client has a
 * loop, which runs inside these functions on the calling thread. At most one thread at a time may
 * use a client. */
#pragma once

#include "base/buf.h"
#include "rpc/client.h"

struct mr_rpc_client;
struct mr_rpc_stream;

/* Opens a client. `options` are those of client.h; may be NULL. */
struct mr_rpc_client *mr_rpc_client_open(
    const char *address, const struct mr_rpc_channel_options *options);
/* Closes the client; to be called after all streams are closed. */
void mr_rpc_client_close(struct mr_rpc_client **client);

/* Makes a unary call and waits for its end. Appends the reply to `reply` (may be NULL). Returns
 * MR_OK, or the error with which the call ended. MR_ETOOBIG: the reply does not fit into `reply`,
 * or the request is too large. */
int mr_rpc_call_sync(struct mr_rpc_client *client, const char *method, struct mr_str request,
    const struct mr_rpc_call_options *options, struct mr_buf *reply, struct mr_error *e);

/* Waits for an event on any stream of the client, for a wake, or until `deadline`. May return
 * early. Serves a caller that also waits for an event of another thread: that thread calls
 * mr_rpc_client_wake. */
void mr_rpc_client_wait(struct mr_rpc_client *client, mr_time deadline);
/* Ends the present wait, or the next one; may be called on any thread. */
void mr_rpc_client_wake(struct mr_rpc_client *client);

/* Opens a call of any of gRPC's four kinds. */
struct mr_rpc_stream *mr_rpc_stream_open(
    struct mr_rpc_client *client, const char *method, const struct mr_rpc_call_options *options);
/* Sends a message. Waits while the send queue is full (mr_rpc_call_is_writable). MR_ETOOBIG: the
 * message has more than MR_MESSAGE_BYTES_MAX bytes. MR_ESTATE: this side has half-closed the call.
 * MR_ECANCELED: the call is over, and mr_rpc_stream_read returns its error. */
int mr_rpc_stream_send(struct mr_rpc_stream *stream, struct mr_str bytes);
/* Like mr_rpc_stream_send, for a message in parts (rpc.h). */
int mr_rpc_stream_send_parts(
    struct mr_rpc_stream *stream, const struct mr_rpc_part *parts, size_t parts_count);
/* True: gRPC has not yet taken all messages. False: gRPC has taken all messages, or the call is
 * over. */
bool mr_rpc_stream_is_sending(const struct mr_rpc_stream *stream);
int mr_rpc_stream_half_close(struct mr_rpc_stream *stream);
/* Reads the next message. MR_OK: the message is in `*out`; the caller frees it. MR_ENOENT: there
 * are no more messages, and the status is OK. MR_ETIMEOUT: `deadline` has passed, and the call goes
 * on. Any other code is the error with which the call ended. `e` may be NULL. */
int mr_rpc_stream_read(struct mr_rpc_stream *stream, mr_time deadline, struct mr_rpc_message **out,
    struct mr_error *e);
/* Cancels the call, unless it is over. mr_rpc_stream_read still returns the messages that have
 * come, and then MR_ECANCELED. */
void mr_rpc_stream_cancel(struct mr_rpc_stream *stream);
/* Finds a value in the metadata from the server: the initial metadata and, once the call is over,
 * the trailing metadata. True: `*value` is the value, valid until the stream is closed. False: the
 * metadata has no such name. */
bool mr_rpc_stream_metadata(
    const struct mr_rpc_stream *stream, const char *name, struct mr_str *value);
/* Returns the status of the call, after the last message has been read. Its details are valid until
 * the stream is closed. */
const struct mr_rpc_status *mr_rpc_stream_status(const struct mr_rpc_stream *stream);
/* Frees the stream; cancels the call if it is not over. */
void mr_rpc_stream_close(struct mr_rpc_stream **stream);
