/* A rank of a ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", 2009). The rank sends blocks to the next rank by gRPC. Its own inbox
 * receives the blocks of the previous rank. The sum of the gradients of slice s starts at rank
 * s + 1 and is complete at rank s (reduce-scatter). With this sum the caller at rank s updates the
 * parameters of slice s. Then the updated slices go around the ring (all-gather). */
#include "train/allreduce/ring.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/protowire.h"
#include "host/clock.h"
#include "rpc/util/sync.h"
#include "train/allreduce/ring_inbox.h"
#include "train/transport/segment.h"

#include <stdio.h>
#include <string.h>

#define PROBE_PAUSE (10 * MR_MS)
#define PROBE_WAIT (2 * MR_SECOND)
/* limit of the wait at close until the next rank has received the last slices */
#define LEAVE_WAIT MR_SECOND

struct mr_ring {
    char session[MR_SESSION_MAX];
    uint32_t generation, rank, ranks;
    uint64_t count;
    const struct mr_flag *stop; /* NULL: none */
    struct mr_ring_inbox *inbox;
    struct mr_rpc_client *client; /* connection to the next rank */
    struct mr_rpc_stream *stream; /* stream to the next rank; NULL: there was no step yet */
    uint64_t step;
    uint32_t round, rounds; /* number of the running round; number of rounds in the step */
    /* number of ranks that had examples, among the ranks whose sum is in the next block to send */
    uint32_t contributors;
    /* this rank has sent all blocks of the step, so the next rank may close its end of the
     * stream */
    bool has_sent_all;
    bool has_failed; /* a step has failed, so close need not wait for the next rank */
    struct mr_buf head;
};

static int sentence(const struct mr_ring *r, int err, struct mr_error *e)
{
    struct mr_error why = {0};
    if (e) why = *e;
    uint32_t next = (r->rank + 1) % r->ranks;
    if (err == MR_ENOENT || err == MR_EAWAY)
        return mr_fail(
            e, MR_EAWAY, "rank %u of session \"%s\" is gone: %.400s", next, r->session, why.text);
    return mr_fail(e, err, "rank %u of session \"%s\": %.400s", next, r->session, why.text);
}

static bool is_stopped(void *ctx)
{
    const struct mr_ring *r = ctx;
    return mr_transport_is_stopped(r->stop);
}

static int may_wait(const struct mr_ring *r, mr_time deadline, struct mr_error *e)
{
    if (mr_transport_is_stopped(r->stop)) return mr_fail(e, MR_ECANCELED, "asked to stop");
    uint32_t before = (r->rank + r->ranks - 1) % r->ranks;
    if (mr_ring_inbox_is_broken(r->inbox))
        return mr_fail(e, MR_EAWAY, "rank %u of session \"%s\" is gone", before, r->session);
    if (mr_clock_now() >= deadline)
        return mr_fail(e, MR_ETIMEOUT, "session \"%s\": rank %u or %u did not answer in time",
            r->session, before, (r->rank + 1) % r->ranks);
    return MR_OK;
}

static void head_fill(struct mr_ring *r, uint32_t round, uint64_t count)
{
    mr_buf_clear(&r->head);
    mr_protowire_add_bytes(&r->head, 1, mr_str(r->session));
    mr_protowire_add_varint(&r->head, 2, r->rank);
    mr_protowire_add_varint(&r->head, 3, r->generation);
    mr_protowire_add_varint(&r->head, 4, r->step);
    mr_protowire_add_varint(&r->head, 5, round);
    mr_protowire_add_varint(&r->head, 6, count);
    mr_protowire_add_varint(&r->head, 8, r->contributors);
}

/* Sends a slice as one message, or as several if the slice is longer than MR_CHUNK_BYTES. */
static int block_send(struct mr_ring *r, const float *data, uint64_t count)
{
    struct mr_transport_traffic *t = mr_transport_traffic();
    uint64_t bytes = count * sizeof(float), at = 0;
    int err = MR_OK;
    do {
        size_t n = (size_t)MR_MIN(bytes - at, (uint64_t)MR_CHUNK_BYTES);
        head_fill(r, r->round, count);
        mr_protowire_varint(&r->head, 7 << 3 | MR_PROTOWIRE_BYTES);
        mr_protowire_varint(&r->head, n);
        const struct mr_rpc_part parts[] = {
            {.bytes = mr_buf_str(&r->head)}, {.bytes = mr_str_of((const char *)data + at, n)}};
        err = mr_rpc_stream_send_parts(r->stream, parts, MR_ARRAY_LEN(parts));
        at += n;
        (void)atomic_fetch_add(&t->ring_messages, 1);
        (void)atomic_fetch_add(&t->ring_bytes, r->head.n + n);
    } while (at < bytes && !err);
    (void)atomic_fetch_add(&t->grpc_bytes, at);
    return err;
}

/* Sends and receives on the stream until a block arrives in the inbox (its arrival wakes this
 * thread), MR_TRANSPORT_SLICE is over, or `deadline` has passed. Returns an error if the stream has
 * ended before the end of the step. */
static int pump(struct mr_ring *r, mr_time deadline, struct mr_error *e)
{
    mr_time slice = mr_time_after(mr_clock_now(), MR_TRANSPORT_SLICE);
    mr_rpc_client_wait(r->client, MR_MIN(slice, deadline));
    struct mr_rpc_message *m = NULL;
    int err = mr_rpc_stream_read(r->stream, 0, &m, e);
    mr_rpc_message_free(&m);
    bool goes_on = err == MR_ETIMEOUT && !mr_rpc_stream_status(r->stream)->code;
    /* The next rank may have closed its end after it had received everything. If the next rank has
     * failed instead, the next step of this rank returns an error. */
    if (goes_on || r->has_sent_all) return MR_OK;
    if (!err || err == MR_ENOENT)
        err = mr_fail(e, MR_EFORMAT, "it closed the stream before the end of the step");
    return sentence(r, err, e);
}

static int block_take(struct mr_ring *r, uint64_t count, mr_time deadline,
    struct mr_ring_block **out, struct mr_error *e)
{
    struct mr_ring_block *b;
    while (!(b = mr_ring_inbox_take(r->inbox, r->step, r->round))) {
        int err = may_wait(r, deadline, e);
        if (!err) err = pump(r, deadline, e);
        if (err) return err;
    }
    if (b->count != count || b->contributors > r->ranks) {
        mr_ring_inbox_give(r->inbox, &b);
        return mr_fail(e, MR_EABORTED,
            "ranks of session \"%s\" disagree about the size of the model", r->session);
    }
    *out = b;
    return MR_OK;
}

/* Returns the number of the rank `back` places before this rank in the ring. The same number names
 * the slice whose sum that rank completes. */
static uint32_t around(const struct mr_ring *r, uint32_t back)
{
    return (r->rank + 2 * r->ranks - back % r->ranks) % r->ranks;
}

/* Carries out one round: sends slice `send` of `v`, receives slice `receive`, and combines the
 * received slice with `v` by `fn`. */
static int round_do(struct mr_ring *r, float *v, uint32_t send, uint32_t receive, mr_time deadline,
    void (*fn)(float *to, const float *from, uint64_t n), uint32_t *contributors,
    struct mr_error *e)
{
    uint64_t first, count;
    mr_transport_slice(r->count, r->ranks, send, &first, &count);
    int err = block_send(r, v + first, count);
    if (err && err != MR_ECANCELED) return mr_fail(e, err, "a block cannot be sent");
    r->has_sent_all = !err && r->round + 1 == r->rounds;
    mr_transport_slice(r->count, r->ranks, receive, &first, &count);
    struct mr_ring_block *b = NULL;
    err = block_take(r, count, deadline, &b, e);
    if (err) return err;
    fn(v + first, b->data, count);
    *contributors = b->contributors;
    mr_ring_inbox_give(r->inbox, &b);
    r->round++;
    return MR_OK;
}

static void add(float *restrict to, const float *restrict from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = from[i] + to[i];
}

static void set(float *restrict to, const float *restrict from, uint64_t n)
{
    if (n) memcpy(to, from, n * sizeof *to);
}

void mr_ring_begin(struct mr_ring *r, uint64_t step, bool gathers_only)
{
    struct mr_transport_traffic *t = mr_transport_traffic();
    r->step = step;
    r->round = 0;
    r->contributors = 0;
    r->rounds = (r->ranks - 1) * (gathers_only ? 1 : 2);
    r->has_sent_all = false;
    (void)atomic_fetch_add(&t->ring_steps, 1);
    if (r->stream) return;
    const struct mr_rpc_call_options options = {.stop = {is_stopped, r}};
    r->stream = mr_rpc_stream_open(r->client, "/millrace.v1.Collective/Exchange", &options);
    (void)atomic_fetch_add(&t->ring_streams, 1);
}

int mr_ring_scatter(
    struct mr_ring *r, float *grads, uint32_t *contributors, mr_time deadline, struct mr_error *e)
{
    int err = MR_OK;
    uint32_t own = *contributors;
    r->contributors = own;
    for (uint32_t k = 0; k + 1 < r->ranks && !err; k++) {
        uint32_t before = 0;
        err = round_do(r, grads, around(r, k + 1), around(r, k + 2), deadline, add, &before, e);
        r->contributors = before + own;
    }
    *contributors = r->contributors;
    r->has_failed |= err != MR_OK;
    return err;
}

int mr_ring_gather(struct mr_ring *r, float *params, mr_time deadline, struct mr_error *e)
{
    int err = MR_OK;
    for (uint32_t k = 0; k + 1 < r->ranks && !err; k++) {
        uint32_t theirs = 0;
        err = round_do(r, params, around(r, k), around(r, k + 1), deadline, set, &theirs, e);
        if (!err && theirs != r->contributors)
            err = mr_fail(e, MR_EABORTED,
                "ranks of session \"%s\" disagree: %u or %u of them had examples in this step",
                r->session, r->contributors, theirs);
    }
    r->has_failed |= err != MR_OK;
    return err;
}

/* Ends the step, in which this rank has got all slices: waits until gRPC has sent all of this
 * rank's blocks to the next rank. */
int mr_ring_end(struct mr_ring *r, mr_time deadline, struct mr_error *e)
{
    int err = MR_OK;
    while (!err && mr_rpc_stream_is_sending(r->stream)) {
        err = pump(r, deadline, e);
        if (!err && is_stopped(r)) err = mr_fail(e, MR_ECANCELED, "asked to stop");
        if (!err && mr_clock_now() >= deadline)
            err = mr_fail(e, MR_ETIMEOUT,
                "rank %u of session \"%s\" did not receive its slices in time",
                (r->rank + 1) % r->ranks, r->session);
    }
    r->has_failed |= err != MR_OK;
    return err;
}

/* ---- opening ----------------------------------------------------------------------------------*/

static int probe_once(struct mr_ring *r, struct mr_error *e)
{
    head_fill(r, MR_RING_PROBE, 0);
    const struct mr_rpc_call_options options = {.timeout = PROBE_WAIT, .stop = {is_stopped, r}};
    return mr_rpc_call_sync(
        r->client, "/millrace.v1.Collective/Exchange", mr_buf_str(&r->head), &options, NULL, e);
}

static int probe(struct mr_ring *r, mr_time deadline, struct mr_error *e)
{
    int err;
    while ((err = probe_once(r, e))) {
        bool may_come =
            err == MR_ENOENT || err == MR_EAWAY || err == MR_EABORTED || err == MR_ETIMEOUT;
        if (!may_come) return sentence(r, err, e);
        struct mr_error end;
        int over = may_wait(r, deadline, &end);
        if (over == MR_ETIMEOUT) return mr_fail(e, over, "%s", e ? e->text : "");
        if (over) return mr_fail(e, over, "%s", end.text);
        mr_clock_sleep(PROBE_PAUSE);
    }
    return MR_OK;
}

static void wake(void *ctx)
{
    mr_rpc_client_wake(ctx);
}

int mr_ring_open(
    const struct mr_reduce_options *o, mr_time deadline, struct mr_ring **out, struct mr_error *e)
{
    uint32_t next = (o->rank + 1) % o->ranks;
    const char *address = o->places[next].address;
    if (!address || !*address)
        return mr_fail(
            e, MR_EAWAY, "rank %u of session \"%s\" has no gRPC address", next, o->session);
    MR_AUTO(mr_ring_close) struct mr_ring *r = mr_alloc(sizeof *r);
    (void)snprintf(r->session, sizeof r->session, "%s", o->session);
    r->generation = o->generation;
    r->rank = o->rank;
    r->ranks = o->ranks;
    r->count = o->count;
    r->stop = o->stop;
    mr_buf_init(&r->head, 4096);
    r->inbox = mr_alloc(sizeof *r->inbox);
    (void)snprintf(r->inbox->session, sizeof r->inbox->session, "%s", o->session);
    r->inbox->generation = o->generation;
    r->inbox->rank = o->rank;
    r->inbox->ranks = o->ranks;
    r->inbox->count = o->count;
    const struct mr_rpc_channel_options options = {.credential = mr_transport_credential()};
    r->client = mr_rpc_client_open(address, &options);
    r->inbox->wake = wake;
    r->inbox->ctx = r->client;
    mr_ring_inbox_open(r->inbox);
    int err = probe(r, deadline, e);
    if (err) return err;
    *out = MR_STEAL(r);
    return MR_OK;
}

/* Waits until the next rank has the last slices, which it would lose if the stream was
 * cancelled. */
static void wait_for_next_rank(struct mr_ring *r)
{
    if (!r->stream || r->has_failed || is_stopped(r) || mr_rpc_stream_half_close(r->stream)) return;
    mr_time until = mr_time_after(mr_clock_now(), LEAVE_WAIT);
    struct mr_rpc_message *m = NULL;
    while (mr_rpc_stream_read(r->stream, until, &m, NULL) == MR_OK)
        mr_rpc_message_free(&m);
}

void mr_ring_close(struct mr_ring **ring)
{
    if (!*ring) return;
    struct mr_ring *r = MR_STEAL(*ring);
    wait_for_next_rank(r);
    mr_rpc_stream_close(&r->stream);
    mr_ring_inbox_close(&r->inbox);
    mr_rpc_client_close(&r->client);
    mr_buf_fini(&r->head);
    mr_release(r);
}
