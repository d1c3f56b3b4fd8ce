/* Writes checkpoints. A role is one process's part in a training. Its thread copies the parameters
 * and the optimizer's state vectors (slots) into an object of the store; a second thread persists
 * the object. The head of an object consists of whole numbers below 2^16, which f32 represents
 * exactly. */
#include "train/state/checkpoint.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/inbox.h"
#include "host/os/log.h"
#include "host/thread.h"
#include "store/object/value.h"

#include <inttypes.h>
#include <stdio.h>

#define HEAD_MAGIC 29283 /* the letters "rc" */
#define WRITTEN_MAX 64   /* limit of checkpoints of this role that exist at the same time */
#define ROOM_TIMEOUT (2 * MR_SECOND) /* limit of the wait until the object store has made room */

struct snapshot { /* a snapshot for the second thread */
    uint64_t version;
    struct mr_store_draft draft;
};

struct mr_checkpointer {
    /* The second thread uses only role->agent, the texts of the role that do not change, and
     * mr_role_should_stop. */
    struct mr_role *role;
    uint32_t shard;
    bool waits;
    struct mr_role_store store; /* the store's link is used on the second thread */
    struct mr_inbox *inbox;
    struct mr_thread *thread;
    struct mr_flag busy;
    /* versions that were written, the oldest first; owned by the second thread */
    uint64_t written[WRITTEN_MAX];
    uint32_t written_count;
};

static float *u64_write(uint64_t v, float *to)
{
    for (unsigned i = 0; i < 4; i++)
        *to++ = (float)(v >> (16 * i) & 0xffff);
    return to;
}

static const float *u64_read(const float *from, uint64_t *v)
{
    *v = 0;
    for (unsigned i = 0; i < 4; i++, from++)
        *v |= (uint64_t)(*from >= 0 && *from < 65536 ? *from : 0) << (16 * i);
    return from;
}

void mr_checkpoint_head_write(const struct mr_checkpoint_head *h, float *to)
{
    *to++ = HEAD_MAGIC;
    *to++ = (float)h->slots;
    *to++ = (float)h->optim;
    to = u64_write(h->version, to);
    to = u64_write(h->model_count, to);
    to = u64_write(h->first, to);
    *to = HEAD_MAGIC;
}

bool mr_checkpoint_head_read(const float *from, struct mr_checkpoint_head *out)
{
    if (from[0] != HEAD_MAGIC || from[MR_CHECKPOINT_HEAD_WORDS - 1] != HEAD_MAGIC) return false;
    if (!(from[1] >= 0 && from[1] <= MR_NN_SLOTS_MAX)) return false;
    if (!(from[2] >= 0 && from[2] <= MR_NN_RMSPROP)) return false;
    out->slots = (uint32_t)from[1];
    out->optim = (enum mr_nn_optim_type)from[2];
    from = u64_read(from + 3, &out->version);
    from = u64_read(from, &out->model_count);
    (void)u64_read(from, &out->first);
    return true;
}

static void name_of(const struct mr_checkpointer *c, uint64_t version, char *out, size_t bytes)
{
    (void)snprintf(
        out, bytes, "training/%s/checkpoint/%" PRIu64 "/%u", c->role->session, version, c->shard);
}

/* Drops the oldest checkpoints beyond WRITTEN_MAX. The trainer deletes old checkpoints, because
 * only the trainer knows which ones are complete. This function bounds their number while the
 * trainer is away for long. */
static void drop_old(struct mr_checkpointer *c)
{
    char name[MR_KEY_BYTES_MAX];
    while (c->written_count == WRITTEN_MAX) {
        name_of(c, c->written[0], name, sizeof name);
        (void)mr_role_unname(&c->store, name, NULL);
        c->written_count--;
        memmove(c->written, c->written + 1, c->written_count * sizeof c->written[0]);
    }
}

static void write_one(struct mr_checkpointer *c, struct snapshot *snapshot)
{
    char name[MR_KEY_BYTES_MAX], text[MR_OBJECT_ID_TEXT_MAX];
    struct mr_error e;
    mr_object_id id;
    name_of(c, snapshot->version, name, sizeof name);
    int err = mr_role_save(&c->store, &snapshot->draft, name, true, &id, &e);
    if (err) {
        mr_log(MR_WARN, "checkpoint.failed", "session=%s version=%" PRIu64 " why=\"%s\"",
            c->role->session, snapshot->version, e.text);
        return;
    }
    mr_object_id_format(id, text);
    mr_agent_report_checkpoint(c->role->agent, snapshot->version, text);
    drop_old(c);
    c->written[c->written_count++] = snapshot->version;
}

static void writer_main(void *ctx)
{
    struct mr_checkpointer *c = ctx;
    for (;;) {
        struct snapshot snapshot;
        if (mr_inbox_wait(c->inbox, MR_NEVER, &snapshot, 1)) {
            write_one(c, &snapshot);
            mr_flag_set(&c->busy, false);
        } else if (mr_inbox_is_closed(c->inbox)) {
            return;
        }
    }
}

struct mr_checkpointer *mr_checkpointer_start(struct mr_role *r, uint32_t shard)
{
    struct mr_checkpointer *c = mr_alloc(sizeof *c);
    c->role = r;
    c->shard = shard;
    c->waits = (r->plan.rule == MR_ROLE_ALLREDUCE ? r->plan.workers : r->plan.servers) > 1;
    c->store = r->store;
    c->store.call = NULL;
    c->store.link = mr_role_link_open(r->env->store_address, r->env->for_store);
    c->inbox = mr_inbox_new(2, sizeof(struct snapshot));
    c->thread = mr_thread_start("checkpoint", writer_main, c);
    return c;
}

void mr_checkpointer_stop(struct mr_checkpointer **checkpointer)
{
    struct mr_checkpointer *c = *checkpointer;
    if (!c) return;
    mr_inbox_close(c->inbox);
    mr_thread_join(&c->thread);
    mr_inbox_free(&c->inbox);
    mr_role_link_close(&c->store.link);
    mr_release(c);
    *checkpointer = NULL;
}

uint64_t mr_checkpoint_after(const struct mr_role *r, uint64_t version)
{
    uint64_t every = r->plan.checkpoint_steps;
    return every && r->env->store ? (version / every + 1) * every : 0;
}

/* Returns whether the role may take a snapshot: true if the previous snapshot is written. If it is
 * not written, a session with one shard skips this checkpoint. In a session with several shards,
 * each shard waits until it is written, and skips only if the role has to stop. If the shards
 * skipped different versions, no checkpoint would be complete. */
static bool may_snapshot(struct mr_checkpointer *c, uint64_t version)
{
    while (mr_flag_is_set(&c->busy) && c->waits && !mr_role_should_stop(c->role))
        mr_clock_sleep(MR_MS);
    if (!mr_flag_is_set(&c->busy)) return true;
    mr_log(
        MR_DEBUG, "checkpoint.skipped", "session=%s version=%" PRIu64, c->role->session, version);
    return false;
}

void mr_checkpointer_snapshot(struct mr_checkpointer *c, uint64_t version, const float *params,
    float *const *slots, uint64_t count)
{
    if (!may_snapshot(c, version)) return;
    uint32_t rows = 1 + mr_nn_optim_slots(&c->role->plan.optim);
    const struct mr_role_plan *p = &c->role->plan;
    bool is_ring = p->rule == MR_ROLE_ALLREDUCE;
    struct mr_checkpoint_head head = {.version = version, .model_count = p->model->count};
    head.slots = rows - 1;
    head.optim = p->optim.type;
    uint64_t width = count + MR_CHECKPOINT_HEAD_WORDS, n = 0;
    mr_transport_slice(p->model->count + (is_ring ? MR_RING_WORDS : 0),
        is_ring ? p->workers : p->servers, c->shard, &head.first, &n);
    const uint64_t shape[2] = {rows, width};
    struct snapshot snapshot = {.version = version};
    struct mr_error e;
    int err = mr_store_create_or_stop(c->role->env->store, mr_tensor_bytes(MR_DTYPE_F32, 2, shape),
        ROOM_TIMEOUT, mr_role_stop_of(c->role), &snapshot.draft, &e);
    if (err) {
        mr_log(MR_WARN, "checkpoint.failed", "session=%s version=%" PRIu64 " why=\"%s\"",
            c->role->session, version, e.text);
        return;
    }
    float *to = mr_tensor_build(snapshot.draft.p, MR_DTYPE_F32, 2, shape);
    memset(to, 0, rows * width * sizeof *to);
    if (count) memcpy(to, params, count * sizeof *to);
    for (uint32_t i = 1; i < rows && count; i++)
        memcpy(to + i * width, slots[i - 1], count * sizeof *to);
    mr_checkpoint_head_write(&head, to + count);
    mr_flag_set(&c->busy, true);
    err = mr_inbox_push(c->inbox, &snapshot);
    mr_assert(!err); /* the inbox is empty, since the thread is not busy */
}
