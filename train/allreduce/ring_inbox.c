/* Hands blocks from the network thread to a rank. The inbox is bounded. If the previous rank sends
 * its blocks in the order of the ring, it is at most two vectors ahead of this rank. */
#include "train/allreduce/ring_inbox.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#define SPARE_MAX 2u /* limit of blocks whose memory is kept for the next round */
/* The memory of a block is a multiple of this many numbers, so that slices of slightly different
 * size can use it again. */
#define ROOM_STEP 1024u

static struct {
    pthread_mutex_t lock;
    struct mr_list inboxes;
    void (*wake)(void *ctx);
    void *ctx;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

void mr_ring_set_waker(void (*wake)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&table.lock);
    table.wake = wake;
    table.ctx = ctx;
    pthread_mutex_unlock(&table.lock);
}

void mr_ring_inbox_open(struct mr_ring_inbox *in)
{
    in->users = 1;
    in->lock = mr_monitor_new();
    mr_list_init(&in->blocks);
    mr_list_init(&in->spare);
    pthread_mutex_lock(&table.lock);
    if (!table.inboxes.next) mr_list_init(&table.inboxes);
    mr_list_add_tail(&table.inboxes, &in->node);
    pthread_mutex_unlock(&table.lock);
}

static void inbox_free(struct mr_ring_inbox *in)
{
    for (struct mr_list *node; (node = mr_list_pop_head(&in->blocks));)
        mr_release(MR_LIST_ITEM(node, struct mr_ring_block, node));
    for (struct mr_list *node; (node = mr_list_pop_head(&in->spare));)
        mr_release(MR_LIST_ITEM(node, struct mr_ring_block, node));
    mr_monitor_free(&in->lock);
    mr_release(in);
}

void mr_ring_inbox_put(struct mr_ring_inbox **inbox)
{
    if (!*inbox) return;
    struct mr_ring_inbox *in = MR_STEAL(*inbox);
    pthread_mutex_lock(&table.lock);
    bool last = --in->users == 0;
    pthread_mutex_unlock(&table.lock);
    if (last) inbox_free(in);
}

void mr_ring_inbox_close(struct mr_ring_inbox **inbox)
{
    if (!*inbox) return;
    struct mr_ring_inbox *in = *inbox;
    mr_monitor_enter(in->lock);
    in->is_closed = true;
    mr_monitor_leave(in->lock);
    pthread_mutex_lock(&table.lock);
    mr_list_remove(&in->node);
    if (table.wake) table.wake(table.ctx);
    pthread_mutex_unlock(&table.lock);
    mr_ring_inbox_put(inbox);
}

struct mr_ring_inbox *mr_ring_inbox_get(
    const char *session, uint32_t rank_from, uint32_t generation, struct mr_error *e)
{
    struct mr_ring_inbox *found = NULL;
    uint32_t other = 0;
    bool is_other = false;
    pthread_mutex_lock(&table.lock);
    if (!table.inboxes.next) mr_list_init(&table.inboxes);
    MR_LIST_EACH(node, &table.inboxes)
    {
        struct mr_ring_inbox *in = MR_LIST_ITEM(node, struct mr_ring_inbox, node);
        bool ours = rank_from < in->ranks && in->rank == (rank_from + 1) % in->ranks &&
                    !strcmp(in->session, session);
        if (!ours) continue;
        if (in->generation == generation) {
            in->users++;
            found = in;
            break;
        }
        is_other = true;
        other = in->generation;
    }
    pthread_mutex_unlock(&table.lock);
    if (!found && is_other)
        (void)mr_fail(e, MR_EABORTED,
            "the rank after %u of session \"%s\" has generation %u, not %u", rank_from, session,
            other, generation);
    if (!found && !is_other)
        (void)mr_fail(e, MR_ENOENT, "the rank after %u of session \"%s\" is not served here",
            rank_from, session);
    return found;
}

static struct mr_ring_block *block_find(struct mr_ring_inbox *in, uint64_t step, uint32_t round)
{
    MR_LIST_EACH(node, &in->blocks)
    {
        struct mr_ring_block *b = MR_LIST_ITEM(node, struct mr_ring_block, node);
        if (b->step == step && b->round == round) return b;
    }
    return NULL;
}

/* Wakes the rank if it waits. Called with the lock held. After the rank has closed there is no
 * thread to wake. */
static void wake(struct mr_ring_inbox *in)
{
    if (!in->is_waited_for || in->is_closed) return;
    in->is_waited_for = false;
    if (!in->wake) return;
    (void)atomic_fetch_add(&mr_transport_traffic()->ring_wakes, 1);
    in->wake(in->ctx);
}

static struct mr_ring_block *block_new(struct mr_ring_inbox *in, uint64_t count)
{
    MR_LIST_EACH(node, &in->spare)
    {
        struct mr_ring_block *b = MR_LIST_ITEM(node, struct mr_ring_block, node);
        if (b->room < count) continue;
        mr_list_remove(&b->node);
        in->spare_count--;
        return b;
    }
    uint64_t room = (count + ROOM_STEP) / ROOM_STEP * ROOM_STEP;
    size_t bytes = sizeof(struct mr_ring_block) + room * sizeof(float);
    /* mr_grow does not zero the memory, so pages are committed only when they are written */
    struct mr_ring_block *b = mr_grow(NULL, bytes, bytes);
    b->room = room;
    return b;
}

static int piece_add(struct mr_ring_inbox *in, const struct mr_ring_message *p, struct mr_error *e)
{
    if (in->is_closed) return mr_fail(e, MR_EAWAY, "the rank closed");
    struct mr_ring_block *b = block_find(in, p->step, p->round);
    if (!b) {
        if (p->count > in->count ||
            in->bytes + p->count * sizeof(float) > 3 * in->count * sizeof(float))
            return mr_fail(e, MR_ELIMIT,
                "a block of %" PRIu64 " numbers exceeds the inbox, in which %" PRIu64 " bytes wait",
                p->count, in->bytes);
        b = block_new(in, p->count);
        b->step = p->step;
        b->round = p->round;
        b->contributors = p->contributors;
        b->count = p->count;
        b->got = 0;
        in->bytes += p->count * sizeof(float);
        mr_list_add_tail(&in->blocks, &b->node);
    }
    if (p->data.n > b->count * sizeof(float) - b->got)
        return mr_fail(e, MR_EINVAL, "more data than a block of %" PRIu64 " numbers", b->count);
    if (p->data.n) memcpy((char *)b->data + b->got, p->data.p, p->data.n);
    b->got += p->data.n;
    bool is_wanted = b->step == in->wanted_step && b->round == in->wanted_round;
    if (is_wanted && b->got == b->count * sizeof(float)) wake(in);
    return MR_OK;
}

int mr_ring_inbox_add(struct mr_ring_inbox *in, const struct mr_ring_message *p, struct mr_error *e)
{
    mr_monitor_enter(in->lock);
    int err = piece_add(in, p, e);
    mr_monitor_leave(in->lock);
    return err;
}

struct mr_ring_block *mr_ring_inbox_take(struct mr_ring_inbox *in, uint64_t step, uint32_t round)
{
    mr_monitor_enter(in->lock);
    struct mr_ring_block *b = block_find(in, step, round);
    if (b && b->got < b->count * sizeof(float)) b = NULL;
    if (b) {
        mr_list_remove(&b->node);
        in->bytes -= b->count * sizeof(float);
    }
    in->is_waited_for = !b;
    in->wanted_step = step;
    in->wanted_round = round;
    mr_monitor_leave(in->lock);
    return b;
}

void mr_ring_inbox_give(struct mr_ring_inbox *in, struct mr_ring_block **block)
{
    struct mr_ring_block *b = MR_STEAL(*block);
    mr_monitor_enter(in->lock);
    bool keep = in->spare_count < SPARE_MAX;
    if (keep) mr_list_add_tail(&in->spare, &b->node);
    in->spare_count += keep;
    mr_monitor_leave(in->lock);
    if (!keep) mr_release(b);
}

void mr_ring_inbox_break(struct mr_ring_inbox *in)
{
    mr_monitor_enter(in->lock);
    in->is_broken = true;
    wake(in);
    mr_monitor_leave(in->lock);
}

bool mr_ring_inbox_is_broken(struct mr_ring_inbox *in)
{
    mr_monitor_enter(in->lock);
    bool is_broken = in->is_broken;
    mr_monitor_leave(in->lock);
    return is_broken;
}
