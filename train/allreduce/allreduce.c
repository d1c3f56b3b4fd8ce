/* One rank of an all-reduce group: its slice, its optimizer slots and the step. Ranks exchange
 * vectors by shared memory (shm.c) or in a ring (ring.c). */
#include "train/allreduce/allreduce.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "train/allreduce/ring.h"
#include "train/allreduce/shm.h"

#include <string.h>

/* How many numbers are summed and updated together: they fit the second-level cache. */
#define PIECE ((uint64_t)16384)

struct mr_reduce {
    uint32_t rank, ranks;
    uint64_t count, trainable_count, first, slice_count;
    struct mr_nn_optim optim;
    uint64_t version;
    float *slots[MR_NN_SLOTS_MAX];
    struct mr_shm_group *shm;
    struct mr_ring *ring;
    uint64_t ring_steps;   /* number of steps that `ring` has begun; ring_open begins the first */
    float *grads, *params; /* in the group's segment, or owned if there is a ring */
    float *sum;            /* one piece of the vector: the sum of the gradients of all ranks */
    bool passes;           /* this rank has no examples in this step */
    uint32_t contributors; /* number of ranks that have examples in this step */
    uint64_t low;          /* the gradients of this rank are final from this index on */
    struct mr_reduce_counts counts;
};

static bool all_on_one_node(const struct mr_reduce_options *o)
{
    bool shm = !o->only_remote;
    for (uint32_t i = 0; i < o->ranks && shm; i++) {
        const struct mr_place *at = &o->places[i];
        shm = at->node && !strcmp(at->node, o->places[0].node ? o->places[0].node : "");
    }
    return shm && o->places[0].socket && *o->places[0].socket;
}

static int check(const struct mr_reduce_options *o, struct mr_error *e)
{
    if (!o->ranks || o->ranks > MR_RANKS_MAX || o->rank >= o->ranks)
        return mr_fail(e, MR_EINVAL, "rank %u of %u: from 1 to %u ranks may be", o->rank, o->ranks,
            MR_RANKS_MAX);
    if (strlen(o->session) >= MR_SESSION_MAX)
        return mr_fail(e, MR_EINVAL, "the id \"%s\" of a session is too long", o->session);
    return MR_OK;
}

static void slots_make(struct mr_reduce *r, const float *const *slots)
{
    size_t bytes = r->slice_count * sizeof(float);
    for (uint32_t i = 0; i < mr_nn_optim_slots(&r->optim); i++) {
        r->slots[i] = mr_alloc_aligned(bytes + 64, 64);
        if (slots && bytes) memcpy(r->slots[i], slots[i], bytes);
    }
}

static int shm_open_group(
    struct mr_reduce *r, const struct mr_reduce_options *o, mr_time deadline, struct mr_error *e)
{
    int err = mr_shm_group_open(o, deadline, &r->shm, e);
    if (err) return err;
    r->params = mr_shm_group_params(r->shm);
    r->grads = mr_shm_group_grads(r->shm, r->rank);
    r->sum = mr_alloc_aligned(PIECE * sizeof *r->sum, 64);
    r->low = r->trainable_count;
    memcpy(r->params + r->first, o->params, r->slice_count * sizeof(float));
    return mr_shm_group_barrier(r->shm, deadline, e);
}

static int ring_open(
    struct mr_reduce *r, const struct mr_reduce_options *o, mr_time deadline, struct mr_error *e)
{
    r->counts.is_remote = true;
    r->params = mr_alloc_aligned(r->count * sizeof(float) + 64, 64);
    r->grads = mr_alloc_aligned(r->count * sizeof(float) + 64, 64);
    memcpy(r->params + r->first, o->params, r->slice_count * sizeof(float));
    if (r->ranks == 1) return MR_OK;
    int err = mr_ring_open(o, deadline, &r->ring, e);
    if (err) return err;
    mr_ring_begin(r->ring, r->ring_steps++, true);
    err = mr_ring_gather(r->ring, r->params, deadline, e);
    if (!err) err = mr_ring_end(r->ring, deadline, e);
    return err;
}

int mr_reduce_open(
    const struct mr_reduce_options *o, mr_time deadline, struct mr_reduce **out, struct mr_error *e)
{
    int err = check(o, e);
    if (err) return err;
    MR_AUTO(mr_reduce_close) struct mr_reduce *r = mr_alloc(sizeof *r);
    r->rank = o->rank;
    r->ranks = o->ranks;
    r->count = o->count;
    r->trainable_count = o->trainable_count;
    r->optim = *o->optim;
    r->version = o->version;
    mr_transport_slice(o->count, o->ranks, o->rank, &r->first, &r->slice_count);
    slots_make(r, o->slots);
    err = all_on_one_node(o) ? shm_open_group(r, o, deadline, e) : ring_open(r, o, deadline, e);
    if (err) return err;
    struct mr_transport_traffic *t = mr_transport_traffic();
    (void)atomic_fetch_add(r->shm ? &t->shm_links : &t->grpc_links, 1);
    *out = MR_STEAL(r);
    return MR_OK;
}

void mr_reduce_close(struct mr_reduce **reduce)
{
    if (!*reduce) return;
    struct mr_reduce *r = MR_STEAL(*reduce);
    if (!r->shm) {
        mr_release(r->params);
        mr_release(r->grads);
    }
    mr_release(r->sum);
    mr_shm_group_close(&r->shm);
    mr_ring_close(&r->ring);
    for (uint32_t i = 0; i < MR_NN_SLOTS_MAX; i++)
        mr_release(r->slots[i]);
    mr_release(r);
}

/* Runs the optimizer on the `count` numbers from `first` on, which are in this rank's slice.
 * `grads`: for each of these numbers, the sum of its gradients of all ranks. */
static void apply(struct mr_reduce *r, uint64_t first, uint64_t count, const float *grads)
{
    float *slots[MR_NN_SLOTS_MAX] = {0};
    for (uint32_t i = 0; i < mr_nn_optim_slots(&r->optim); i++)
        slots[i] = r->slots[i] + (first - r->first);
    struct mr_nn_range range = {.from = r->params + first,
        .to = r->params + first,
        .slots = slots,
        .first = first,
        .count = count,
        .trainable_count = r->trainable_count};
    mr_nn_optim_apply(
        &r->optim, r->version + 1, &range, grads, 1 / (float)MR_MAX(r->contributors, 1u));
}

/* Averages the gradients of one piece of this rank's slice, and updates the parameters of this
 * piece. All ranks already have the final gradients of the piece. */
static void move_piece(struct mr_reduce *r, uint64_t first, uint64_t count)
{
    if (!r->contributors && first < r->trainable_count) return;
    mr_time begun = mr_clock_now();
    const float *grads[MR_RANKS_MAX];
    /* added in the order of a ring, so that shared memory and a ring give the same sums */
    for (uint32_t i = 0; i < r->ranks; i++)
        grads[i] = mr_shm_group_grads(r->shm, (r->rank + 1 + i) % r->ranks) + first;
    if (r->ranks > 1) mr_nn_optim_sum(grads, r->ranks, count, r->sum);
    mr_time added = mr_clock_now();
    apply(r, first, count, r->ranks > 1 ? r->sum : grads[0]);
    r->counts.average_ns += added - begun;
    r->counts.update_ns += mr_clock_now() - added;
}

static void move_numbers(struct mr_reduce *r, uint64_t from, uint64_t until)
{
    for (uint64_t at = from; at < until; at += MR_MIN(PIECE, until - at))
        move_piece(r, at, MR_MIN(PIECE, until - at));
}

/* Updates this rank's slice from its end to its start, which is the order in which the gradients of
 * all ranks become final. The part of the slice behind the trained parameters comes last. */
static int move_slice(struct mr_reduce *r, mr_time deadline, struct mr_error *e)
{
    uint64_t end = r->first + r->slice_count;
    uint64_t trained = MR_MAX(r->first, MR_MIN(end, r->trainable_count));
    uint64_t top = trained;
    for (;;) {
        bool all = false;
        uint64_t low = mr_shm_group_final(r->shm, &all);
        uint64_t from = MR_MAX(low, r->first);
        bool are_all_known = low != UINT64_MAX;
        if (are_all_known) r->contributors = mr_shm_group_contributors(r->shm);
        if (from < top) move_numbers(r, from, top);
        top = MR_MIN(top, from);
        if (all || (are_all_known && top == r->first && trained == end)) break;
        mr_time begun = mr_clock_now();
        int err = mr_shm_group_await(r->shm, top > r->first ? low : 0, deadline, e);
        r->counts.wait_ns += mr_clock_now() - begun;
        if (err) return err;
    }
    move_numbers(r, trained, end);
    return MR_OK;
}

static int step_shm(struct mr_reduce *r, mr_time deadline, struct mr_error *e)
{
    if (r->passes)
        mr_shm_group_announce_none(r->shm);
    else
        mr_shm_group_announce_all(r->shm);
    r->passes = false;
    int err = move_slice(r, deadline, e);
    if (err) return err;
    mr_time begun = mr_clock_now();
    err = mr_shm_group_barrier(r->shm, deadline, e);
    r->counts.wait_ns += mr_clock_now() - begun;
    r->low = r->trainable_count;
    return err;
}

static int step_ring(struct mr_reduce *r, mr_time deadline, struct mr_error *e)
{
    mr_time begun = mr_clock_now();
    int err = MR_OK;
    r->contributors = !r->passes;
    r->passes = false;
    if (r->ring) mr_ring_begin(r->ring, r->ring_steps++, false);
    if (r->ring) err = mr_ring_scatter(r->ring, r->grads, &r->contributors, deadline, e);
    if (err) return err;
    mr_time here = mr_clock_now();
    uint64_t end = r->first + r->slice_count;
    uint64_t from = r->contributors ? r->first : MR_MAX(r->first, MR_MIN(end, r->trainable_count));
    if (from < end) apply(r, from, end - from, r->grads + from);
    mr_time updated = mr_clock_now();
    if (r->ring) err = mr_ring_gather(r->ring, r->params, deadline, e);
    if (r->ring && !err) err = mr_ring_end(r->ring, deadline, e);
    r->counts.update_ns += updated - here;
    r->counts.wait_ns += mr_clock_now() - begun - (updated - here);
    return err;
}

int mr_reduce_step(struct mr_reduce *r, mr_time deadline, struct mr_error *e)
{
    int err = r->shm ? step_shm(r, deadline, e) : step_ring(r, deadline, e);
    if (err) return err;
    r->version += r->contributors != 0;
    r->counts.steps++;
    return MR_OK;
}

void mr_reduce_pass(struct mr_reduce *r)
{
    r->passes = true;
}

float *mr_reduce_buffer(struct mr_reduce *r)
{
    return r->grads;
}

void mr_reduce_ready(struct mr_reduce *r, uint64_t offset, uint64_t count)
{
    if (!r->shm || offset + count != r->low || !count) return;
    r->low = offset;
    if (count >= PIECE) mr_shm_group_announce(r->shm, offset);
}

const float *mr_reduce_params(const struct mr_reduce *r)
{
    return r->params;
}

uint64_t mr_reduce_version(const struct mr_reduce *r)
{
    return r->version;
}

void mr_reduce_slice(const struct mr_reduce *r, uint64_t *first, uint64_t *count)
{
    *first = r->first;
    *count = r->slice_count;
}

float *const *mr_reduce_slots(struct mr_reduce *r)
{
    return r->slots;
}

void mr_reduce_counts(const struct mr_reduce *r, struct mr_reduce_counts *out)
{
    *out = r->counts;
}
