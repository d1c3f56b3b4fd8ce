/* The client of a shard by gRPC. Pulls run on the caller's thread. Pushes run on a thread of this
 * module, so that sending overlaps with the next step, as with shared memory. When a connection
 * breaks, it is unknown whether the server has a push. So the thread sends the push again, and the
 * server ignores repeats. */
#include "train/params/remote.h"

#include "base/alloc.h"
#include "base/protowire.h"
#include "host/clock.h"
#include "host/monitor.h"
#include "host/thread.h"
#include "millrace/v1/parameters.pb-c.h"
#include "rpc/util/pb.h"
#include "rpc/util/sync.h"
#include "train/params/layout.h"
#include "train/params/wire.h"
#include "train/transport/segment.h"

#include <inttypes.h>

#define SLICE (50 * MR_MS)
#define AGAIN_PAUSE (20 * MR_MS)
/* limit of the time in which a push is repeated on new connections */
#define PUSH_TRIES_FOR (5 * MR_SECOND)
#define STREAM_WAIT (60 * MR_SECOND) /* limit of the wait for the rest of a vector */
/* limit of the wait in one Pull; after that another Pull is sent */
#define CALL_WAIT_MAX (30 * MR_SECOND)

struct mr_params_remote {
    struct mr_params_remote_options o;
    char session[MR_SESSION_MAX];
    char *address;
    struct mr_rpc_client *puller;
    struct mr_rpc_client *pusher; /* used by the push thread only */
    struct mr_thread *thread;
    struct mr_monitor *lock; /* guards all members below except has_pulled */
    struct mr_params_job jobs[MR_PARAMS_UNDER_WAY];
    uint32_t queued[MR_PARAMS_UNDER_WAY]; /* buffers in the order of their pushes */
    uint32_t queued_count;
    uint32_t done[MR_PARAMS_UNDER_WAY]; /* for each buffer, the serial of its last answered push */
    bool dropped[MR_PARAMS_UNDER_WAY];
    struct mr_error why; /* error of a push; code 0: none */
    bool ends;
    bool has_pulled; /* used by the caller's thread: the shard has answered a pull */
};

static struct mr_rpc_client *client_open(const char *address)
{
    const struct mr_rpc_channel_options options = {.credential = mr_transport_credential()};
    return mr_rpc_client_open(address, &options);
}

/* ---- push -------------------------------------------------------------------------------------*/

static bool is_ending(struct mr_params_remote *r)
{
    mr_monitor_enter(r->lock);
    bool ends = r->ends;
    mr_monitor_leave(r->lock);
    return ends;
}

static void head_add(
    const struct mr_params_remote *r, const struct mr_params_job *j, struct mr_buf *b)
{
    mr_protowire_add_bytes(b, 1, mr_str(r->session));
    mr_protowire_add_varint(b, 2, r->o.shard);
    mr_protowire_add_varint(b, 3, r->o.worker);
    mr_protowire_add_varint(b, 4, r->o.incarnation);
    mr_protowire_add_varint(b, 5, j->step);
    mr_protowire_add_varint(b, 6, j->base_version);
    mr_protowire_add_varint(b, 7, j->restore_epoch);
    mr_protowire_add_varint(b, 8, r->o.count);
    mr_protowire_add_varint(b, 9, j->examples);
}

static int gradient_send(
    struct mr_params_remote *r, struct mr_rpc_stream *stream, const struct mr_params_job *j)
{
    struct mr_buf b;
    mr_buf_init(&b, MR_CHUNK_BYTES + 4096);
    uint64_t bytes = r->o.count * sizeof(float), at = 0;
    int err = MR_OK;
    do { /* sends at least one message, because the last shards of a short vector are empty */
        mr_buf_clear(&b);
        if (!at) head_add(r, j, &b);
        size_t n = (size_t)MR_MIN(bytes - at, (uint64_t)MR_CHUNK_BYTES);
        mr_protowire_add_bytes(&b, 10, mr_str_of((const char *)j->grad + at, n));
        err = mr_rpc_stream_send(stream, mr_buf_str(&b));
        at += n;
    } while (at < bytes && !err);
    (void)atomic_fetch_add(&mr_transport_traffic()->grpc_bytes, at);
    mr_buf_fini(&b);
    if (!err) err = mr_rpc_stream_half_close(stream);
    return err;
}

static int reply_read(
    struct mr_params_remote *r, struct mr_rpc_stream *stream, bool *dropped, struct mr_error *e)
{
    struct mr_rpc_message *m = NULL;
    int err;
    while ((err = mr_rpc_stream_read(stream, mr_time_after(mr_clock_now(), SLICE), &m, e)) ==
               MR_ETIMEOUT &&
           !mr_rpc_stream_status(stream)->code) {
        if (is_ending(r)) return mr_fail(e, MR_ECANCELED, "the client closed");
    }
    if (err == MR_ENOENT && !mr_rpc_stream_status(stream)->code)
        return mr_fail(e, MR_EFORMAT, "no answer to a push");
    if (err) return err;
    struct mr_protowire_reader w = mr_protowire_read(mr_rpc_message_str(m));
    struct mr_protowire_field f;
    *dropped = false;
    while (!mr_protowire_next(&w, &f))
        if (f.number == 2 && f.type == MR_PROTOWIRE_VARINT) *dropped = f.value != 0;
    mr_rpc_message_free(&m);
    return MR_OK;
}

static bool ends_now(void *ctx)
{
    return is_ending(ctx);
}

static int push_once(
    struct mr_params_remote *r, const struct mr_params_job *j, bool *dropped, struct mr_error *e)
{
    const struct mr_rpc_call_options options = {.stop = {ends_now, r}};
    struct mr_rpc_stream *stream =
        mr_rpc_stream_open(r->pusher, "/millrace.v1.Parameters/Push", &options);
    (void)gradient_send(r, stream, j); /* if sending fails, reply_read returns the error */
    int err = reply_read(r, stream, dropped, e);
    mr_rpc_stream_close(&stream);
    return err;
}

static int push(
    struct mr_params_remote *r, const struct mr_params_job *j, bool *dropped, struct mr_error *e)
{
    mr_time until = mr_time_after(mr_clock_now(), PUSH_TRIES_FOR);
    int err;
    while ((err = push_once(r, j, dropped, e))) {
        bool passes = err == MR_EAWAY || err == MR_ELIMIT || err == MR_EAGAIN;
        if (!passes || is_ending(r) || mr_clock_now() >= until) break;
        mr_clock_sleep(AGAIN_PAUSE);
    }
    return err;
}

static void run(void *ctx)
{
    struct mr_params_remote *r = ctx;
    mr_monitor_enter(r->lock);
    while (!r->ends) {
        if (!r->queued_count) {
            (void)mr_monitor_wait(r->lock, MR_NEVER);
            continue;
        }
        uint32_t buffer = r->queued[0];
        struct mr_params_job job = r->jobs[buffer];
        mr_monitor_leave(r->lock);
        bool dropped = false;
        struct mr_error e = {0};
        int err = push(r, &job, &dropped, &e);
        mr_monitor_enter(r->lock);
        r->queued[0] = r->queued[1];
        r->queued_count--;
        r->done[buffer] = job.serial;
        r->dropped[buffer] = dropped;
        if (err) r->why = e;
        mr_monitor_notify(r->lock);
    }
    mr_monitor_leave(r->lock);
}

void mr_params_remote_push(
    struct mr_params_remote *r, uint32_t buffer, const struct mr_params_job *j)
{
    mr_monitor_enter(r->lock);
    r->jobs[buffer] = *j;
    r->queued[r->queued_count++] = buffer;
    mr_monitor_notify(r->lock);
    mr_monitor_leave(r->lock);
}

int mr_params_remote_wait(struct mr_params_remote *r, uint32_t buffer, uint32_t serial,
    mr_time deadline, bool *dropped, struct mr_error *e)
{
    int err = MR_OK;
    mr_monitor_enter(r->lock);
    while (r->done[buffer] != serial && !err) {
        mr_time now = mr_clock_now();
        if (mr_transport_is_stopped(r->o.stop)) {
            err = mr_fail(e, MR_ECANCELED, "asked to stop");
        } else if (now >= deadline) {
            err = mr_fail(e, MR_ETIMEOUT,
                "shard %u of session \"%s\": the answer to a push did not come in time", r->o.shard,
                r->session);
        } else {
            (void)mr_monitor_wait(r->lock, MR_MIN(deadline, mr_time_after(now, SLICE)));
        }
    }
    if (!err && r->why.code) {
        err = r->why.code == MR_ENOENT ? MR_EAWAY : r->why.code;
        err = mr_fail(e, err, "%s", r->why.text);
    }
    *dropped = r->dropped[buffer];
    mr_monitor_leave(r->lock);
    return err;
}

/* ---- pull -------------------------------------------------------------------------------------*/

struct incoming {
    float *to;
    uint64_t version, at, bytes;
};

static int chunk_take(struct incoming *in, struct mr_str bytes, struct mr_error *e)
{
    struct mr_parameter_chunk c;
    int err = mr_parameter_chunk_read(bytes, &c, e);
    if (err) return err;
    if (c.has_version) in->version = c.version;
    if (c.has_count && c.count != in->bytes / sizeof(float))
        return mr_fail(e, MR_EABORTED, "the shard has %" PRIu64 " numbers, not %" PRIu64, c.count,
            in->bytes / sizeof(float));
    if (c.data.n > in->bytes - in->at)
        return mr_fail(e, MR_EFORMAT, "a shard sent more than it has");
    if (c.data.n) memcpy((char *)in->to + in->at, c.data.p, c.data.n);
    (void)atomic_fetch_add(&mr_transport_traffic()->grpc_bytes, c.data.n);
    in->at += c.data.n;
    return MR_OK;
}

/* Reads the chunks of one vector. After the first chunk, waits for the others beyond the caller's
 * deadline, because half a vector is of no use. */
static int chunks_read(struct mr_params_remote *r, struct mr_rpc_stream *stream, mr_time until,
    struct incoming *in, struct mr_error *e)
{
    for (;;) {
        struct mr_rpc_message *m = NULL;
        mr_time slice = mr_time_after(mr_clock_now(), SLICE);
        int err = mr_rpc_stream_read(stream, slice, &m, e);
        /* The stream has ended without an error, so its status has no code. (A stream that ends
         * with NOT_FOUND also gives MR_ENOENT.) */
        if (err == MR_ENOENT && !mr_rpc_stream_status(stream)->code)
            return in->at == in->bytes ? MR_OK : mr_fail(e, MR_EFORMAT, "a shard sent too little");
        if (err == MR_ETIMEOUT && !mr_rpc_stream_status(stream)->code) {
            if (mr_transport_is_stopped(r->o.stop))
                return mr_fail(e, MR_ECANCELED, "asked to stop");
            if (mr_clock_now() < until) continue;
        }
        if (err) return err;
        if (!in->at) until = mr_time_after(mr_clock_now(), STREAM_WAIT);
        err = chunk_take(in, mr_rpc_message_str(m), e);
        mr_rpc_message_free(&m);
        if (err) return err;
    }
}

static bool is_stopped(void *ctx)
{
    const struct mr_params_remote *r = ctx;
    return mr_transport_is_stopped(r->o.stop);
}

static int pull_once(struct mr_params_remote *r, uint64_t version_min, uint32_t restore_epoch,
    mr_time deadline, struct incoming *in, struct mr_error *e)
{
    mr_time now = mr_clock_now();
    mr_duration wait = deadline > now ? MR_MIN(deadline - now, CALL_WAIT_MAX) : 0;
    Millrace__V1__PullParametersRequest q = MILLRACE__V1__PULL_PARAMETERS_REQUEST__INIT;
    q.session = r->session;
    q.shard = r->o.shard;
    q.version_min = version_min;
    q.restore_epoch = restore_epoch;
    q.wait_s = (double)wait / 1e9;
    struct mr_buf wire;
    mr_buf_init(&wire, 4096);
    mr_pb_pack(&q.base, &wire);
    const struct mr_rpc_call_options options = {.stop = {is_stopped, r}};
    struct mr_rpc_stream *stream =
        mr_rpc_stream_open(r->puller, "/millrace.v1.Parameters/Pull", &options);
    (void)mr_rpc_stream_send(stream, mr_buf_str(&wire));
    (void)mr_rpc_stream_half_close(stream);
    mr_buf_fini(&wire);
    int err = chunks_read(r, stream, mr_time_after(now, wait + MR_SECOND), in, e);
    mr_rpc_stream_close(&stream);
    return err;
}

int mr_params_remote_pull(struct mr_params_remote *r, uint64_t version_min, uint32_t restore_epoch,
    mr_time deadline, float *to, uint64_t *version, struct mr_error *e)
{
    for (;;) {
        struct incoming in = {.to = to, .bytes = r->o.count * sizeof(float)};
        int err = pull_once(r, version_min, restore_epoch, deadline, &in, e);
        if (!err) *version = in.version;
        r->has_pulled |= !err;
        /* until the first answer, the server may still be opening the shard */
        bool may_come = err == MR_ENOENT && !r->has_pulled;
        if (err == MR_ENOENT && !may_come)
            err = mr_fail(e, MR_EAWAY, "the server of shard %u of session \"%s\" is gone",
                r->o.shard, r->session);
        if (err != MR_ETIMEOUT && err != MR_EAGAIN && !may_come) return err;
        if (mr_transport_is_stopped(r->o.stop)) return mr_fail(e, MR_ECANCELED, "asked to stop");
        if (mr_clock_now() >= deadline)
            return mr_fail(e, MR_ETIMEOUT,
                "shard %u of session \"%s\": version %" PRIu64 " did not come in time", r->o.shard,
                r->session, version_min);
        mr_clock_sleep(may_come ? AGAIN_PAUSE : MR_MS);
    }
}

/* ---- opening ----------------------------------------------------------------------------------*/

struct mr_params_remote *mr_params_remote_open(const struct mr_params_remote_options *o)
{
    struct mr_params_remote *r = mr_alloc(sizeof *r);
    r->o = *o;
    memcpy(r->session, o->session, MR_MIN(strlen(o->session), sizeof r->session - 1));
    r->address = mr_copy_text(o->address);
    r->puller = client_open(o->address);
    r->pusher = client_open(o->address);
    r->lock = mr_monitor_new();
    r->thread = mr_thread_start("params-push", run, r);
    return r;
}

void mr_params_remote_close(struct mr_params_remote **remote)
{
    if (!*remote) return;
    struct mr_params_remote *r = MR_STEAL(*remote);
    mr_monitor_enter(r->lock);
    r->ends = true;
    mr_monitor_notify(r->lock);
    mr_monitor_leave(r->lock);
    mr_thread_join(&r->thread);
    mr_rpc_client_close(&r->puller);
    mr_rpc_client_close(&r->pusher);
    mr_monitor_free(&r->lock);
    mr_release(r->address);
    mr_release(r);
}
