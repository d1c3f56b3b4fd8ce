/* The table of this process's shards, under one lock. */
#include "train/params/shard_table.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "train/params/shard_state.h"

#include <pthread.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    struct mr_list shards;
    void (*sink)(void *ctx, struct mr_remote_push *p);
    void *sink_ctx;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct mr_shard *mr_shard_get(const char *session, uint32_t shard)
{
    struct mr_shard *found = NULL;
    pthread_mutex_lock(&table.lock);
    if (!table.shards.next) mr_list_init(&table.shards);
    MR_LIST_EACH(node, &table.shards)
    {
        struct mr_shard *s = MR_LIST_ITEM(node, struct mr_shard, node);
        if (s->index != shard || strcmp(s->session, session)) continue;
        s->users++;
        found = s;
        break;
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

void mr_shard_put(struct mr_shard **shard)
{
    if (!*shard) return;
    struct mr_shard *s = MR_STEAL(*shard);
    pthread_mutex_lock(&table.lock);
    bool last = --s->users == 0;
    pthread_mutex_unlock(&table.lock);
    if (last) mr_shard_free(s);
}

void mr_shard_set_sink(void (*sink)(void *ctx, struct mr_remote_push *p), void *ctx)
{
    pthread_mutex_lock(&table.lock);
    table.sink = sink;
    table.sink_ctx = ctx;
    pthread_mutex_unlock(&table.lock);
}

/* Calls the sink under the table's lock, so that no call is running when the sink is replaced. A
 * sink only notes the event and wakes a thread. */
void mr_shard_notify(struct mr_remote_push *p)
{
    pthread_mutex_lock(&table.lock);
    if (table.sink) {
        table.sink(table.sink_ctx, p);
    } else if (p) {
        mr_release(p->grad);
        mr_release(p);
    }
    pthread_mutex_unlock(&table.lock);
}

int mr_shard_list(struct mr_shard *s, struct mr_error *e)
{
    /* fails if this process has the shard already */
    int err = mr_transport_host_add(&s->host, e);
    if (err) return err;
    pthread_mutex_lock(&table.lock);
    if (!table.shards.next) mr_list_init(&table.shards);
    mr_list_add_tail(&table.shards, &s->node);
    pthread_mutex_unlock(&table.lock);
    return MR_OK;
}

void mr_shard_unlist(struct mr_shard *s)
{
    pthread_mutex_lock(&table.lock);
    mr_list_remove(&s->node);
    pthread_mutex_unlock(&table.lock);
}

/* True: gRPC may pin this buffer. gRPC may pin at most MR_PARAMS_REMOTE_PINS different buffers.
 * Threads that decide at the same moment may exceed this limit by a few. */
static bool may_pin(const struct mr_shard *s, uint32_t buffer)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < s->buffers_count; i++)
        distinct += i != buffer && atomic_load(&s->remote_pins[i]) != 0;
    return distinct < MR_PARAMS_REMOTE_PINS;
}

int mr_shard_pin(
    struct mr_shard *s, uint64_t version_min, uint32_t restore_epoch, struct mr_shard_pin *out)
{
    for (;;) {
        if (atomic_load(&s->page->is_closed)) return MR_EAWAY;
        uint64_t current = atomic_load(&s->page->current);
        uint32_t b = (uint32_t)(current & 0xffff);
        if (!may_pin(s, b)) return MR_EAGAIN;
        (void)atomic_fetch_add(&s->remote_pins[b], 1);
        if (atomic_load(&s->page->current) != current) {
            mr_shard_unpin(s, b);
            continue;
        }
        *out = (struct mr_shard_pin){b, atomic_load(&s->page->buffers[b].version),
            atomic_load(&s->page->buffers[b].restore_epoch), mr_shard_buffer_at(s, b)};
        int err = MR_OK;
        if (out->restore_epoch > restore_epoch) err = MR_EABORTED;
        if (out->restore_epoch < restore_epoch || out->version < version_min)
            err = err ? err : MR_EAGAIN;
        if (err) mr_shard_unpin(s, b);
        return err;
    }
}

void mr_shard_unpin(struct mr_shard *s, uint32_t buffer)
{
    uint32_t before = atomic_fetch_sub(&s->remote_pins[buffer], 1);
    mr_assert(before > 0);
}

void mr_shard_note_waiting(struct mr_shard *s, int change)
{
    (void)atomic_fetch_add(&s->remote_waiting, change);
}
