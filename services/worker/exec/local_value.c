/* Local values: large values that only the tasks of one strand use. A strand is a list of tasks,
 * its items, that one executor runs in order. The executor keeps a local value in a buffer of its
 * own, and uses the buffer again while the buffer is in the processor's cache. In the store each
 * value would take fresh memory, because the store frees memory only after a message. If a local
 * value still has a user when the executor reports its item, the executor copies the value to the
 * store. This happens, for example, if the user failed, or was moved to another slot. */
#include "services/worker/exec/internal.h"

#include "base/alloc.h"

#define BYTES_MAX ((uint64_t)64 << 20) /* of all buffers of one executor */
/* a larger value fits into no cache, and the store can spill it */
#define ONE_MAX ((uint64_t)16 << 20)

static void spare_free(struct mr_executor *x, struct mr_local_value *l)
{
    x->local_values_bytes -= l->room;
    mr_release(l->p);
    *l = (struct mr_local_value){0};
}

static void give_back(struct mr_executor *x, struct mr_local_value *l)
{
    if (!l->p) return;
    for (uint32_t i = 0; i < MR_LOCAL_VALUES_SPARE; i++) {
        if (x->spare[i].p) continue;
        x->spare[i] = *l;
        *l = (struct mr_local_value){0};
        return;
    }
    spare_free(x, l);
}

/* Takes the last buffer of `spare` that has room for `bytes`, and for no more than about twice as
 * many. False: there is none. */
static bool take_spare(struct mr_executor *x, uint64_t bytes)
{
    for (uint32_t i = MR_LOCAL_VALUES_SPARE; i-- > 0;) {
        struct mr_local_value *l = &x->spare[i];
        if (!l->p || l->room < bytes || l->room / 2 > bytes) continue;
        x->made = *l;
        *l = (struct mr_local_value){0};
        return true;
    }
    return false;
}

void *mr_executor_local_value_take(struct mr_executor *x, uint64_t bytes)
{
    const struct mr_strand *s = x->run->strand;
    mr_executor_local_value_drop(x);
    if (!x->item->uses || !s->measured || bytes > ONE_MAX) return NULL;
    if (x->item->want_object || x->item->persist) return NULL;
    if (take_spare(x, bytes)) return x->made.p;
    uint64_t room = mr_align_up(bytes, MR_VALUE_ALIGN);
    for (uint32_t i = 0; i < MR_LOCAL_VALUES_SPARE && x->local_values_bytes + room > BYTES_MAX; i++)
        if (x->spare[i].p) spare_free(x, &x->spare[i]);
    if (x->local_values_bytes + room > BYTES_MAX) return NULL;
    x->made = (struct mr_local_value){.p = mr_alloc_aligned(room, MR_VALUE_ALIGN), .room = room};
    x->local_values_bytes += room;
    return x->made.p;
}

void mr_executor_local_value_keep(struct mr_executor *x, uint64_t bytes)
{
    x->made.bytes = bytes;
    x->local_values[x->at] = x->made;
    x->made = (struct mr_local_value){0};
    x->local_values_count++;
}

void mr_executor_local_value_drop(struct mr_executor *x)
{
    give_back(x, &x->made);
}

void mr_executor_local_value_consumed(struct mr_executor *x, uint32_t item)
{
    if (!x->local_values[item].p) return;
    give_back(x, &x->local_values[item]);
    x->local_values_count--;
    x->run->strand->items[item].result.used = true;
}

/* Called when the item ran, but its value could not be copied to the store. */
static void put_failed(struct mr_executor *x, int err, const struct mr_error *e)
{
    struct mr_strand_result *r = &x->item->result;
    r->end = x->lacks_bytes   ? MR_STRAND_NO_ROOM
             : x->lacks_store ? MR_STRAND_STORE_GONE
                              : MR_STRAND_FAILED;
    r->code = err;
    r->message = mr_run_keep(x->run, mr_str(e->text));
}

bool mr_executor_local_value_settle(struct mr_executor *x)
{
    struct mr_strand_item *running = x->item;
    bool ok = true;
    for (uint32_t i = x->settled; x->local_values_count && i <= x->at; i++) {
        struct mr_local_value *l = &x->local_values[i];
        struct mr_error e;
        if (!l->p) continue;
        x->item = &x->run->strand->items[i];
        x->lacks_bytes = 0;
        x->lacks_store = false;
        int err = mr_executor_put(x, mr_str_of(l->p, l->bytes), &e);
        if (err) put_failed(x, err, &e);
        ok = ok && !err;
        give_back(x, l);
        x->local_values_count--;
    }
    x->item = running;
    return ok;
}

void mr_executor_local_value_fini(struct mr_executor *x)
{
    mr_executor_local_value_drop(x);
    for (uint32_t i = 0; i < MR_LOCAL_VALUES_SPARE; i++)
        mr_release(x->spare[i].p);
}
