/* Gets objects. The client finds an object in memory by a lookup in the shared directory, and pins
 * the object in the client's own pin page. If this fails, the client sends a request to the
 * store. */
#include "store/arena/client_link.h"

#include "base/alloc.h"

#include <string.h>
#include <unistd.h>

/* Takes a free slot of this client's pin page. MR_PIN_SLOTS: all slots are taken. */
static uint32_t slot_take(struct mr_store *st)
{
    uint32_t words = MR_PIN_SLOTS / 64;
    uint32_t hint = atomic_load_explicit(&st->pins_hint, memory_order_relaxed);
    for (uint32_t i = 0; i < words; i++) {
        uint32_t w = (hint + i) % words;
        uint64_t taken = atomic_load_explicit(&st->pins_taken[w], memory_order_relaxed);
        while (~taken) {
            uint32_t bit = (uint32_t)__builtin_ctzll(~taken);
            if (!atomic_compare_exchange_weak_explicit(&st->pins_taken[w], &taken,
                    taken | (uint64_t)1 << bit, memory_order_acquire, memory_order_relaxed))
                continue;
            if (i) atomic_store_explicit(&st->pins_hint, w, memory_order_relaxed);
            return w * 64 + bit;
        }
    }
    return MR_PIN_SLOTS;
}

static void slot_give(struct mr_store *st, uint32_t slot)
{
    uint64_t bit = (uint64_t)1 << slot % 64;
    atomic_fetch_and_explicit(&st->pins_taken[slot / 64], ~bit, memory_order_release);
    atomic_store_explicit(&st->pins_hint, slot / 64, memory_order_relaxed);
}

/* Includes the slot in the range of slots that the store scans. Must be called before the pin is
 * announced in the slot. */
static void slot_show(struct mr_store *st, uint32_t slot)
{
    uint32_t used = atomic_load_explicit(&st->pins->slots_used, memory_order_relaxed);
    while (used <= slot)
        if (atomic_compare_exchange_weak(&st->pins->slots_used, &used, slot + 1)) return;
}

static void note_recent(struct mr_store *st, uint32_t entry)
{
    uint32_t at = atomic_fetch_add_explicit(&st->pins->recent_count, 1, memory_order_relaxed);
    atomic_store_explicit(&st->pins->recent[at & (MR_PIN_RECENT - 1)], entry, memory_order_relaxed);
}

static bool get_here(struct mr_store *st, mr_object_id id, struct mr_store_view *out)
{
    uint32_t slot = slot_take(st);
    if (slot == MR_PIN_SLOTS) return false;
    slot_show(st, slot);
    struct mr_dir_place at;
    if (!mr_catalog_pin(&st->catalog, id, &st->pins->slots[slot], &at)) {
        slot_give(st, slot);
        return false;
    }
    mr_store_order_after(st);
    struct mr_store_segment *g = mr_store_segment(st, at.segment, false);
    unsigned char *base = g ? atomic_load_explicit(&g->base, memory_order_acquire) : NULL;
    if (!base || at.offset > g->bytes || at.bytes > g->bytes - at.offset) {
        atomic_store_explicit(&st->pins->slots[slot], 0, memory_order_release);
        slot_give(st, slot);
        /* This process has not mapped the segment. The store's answer to a get will carry the
         * segment's descriptor. */
        return false;
    }
    note_recent(st, at.entry);
    *out = (struct mr_store_view){base + at.offset, at.bytes, id, (uint64_t)slot + 1, false, 0};
    return true;
}

void mr_store_release(struct mr_store *st, struct mr_store_view *view)
{
    uint64_t pin = view->pin;
    mr_object_id id = view->id;
    *view = (struct mr_store_view){.id = id};
    mr_store_order_before(st);
    if (!pin) return;
    if (pin == MR_PIN_BY_STORE) {
        (void)mr_ctl_send(st->socket, MR_CTL_UNPIN, 0, NULL, &id, 1, -1);
        return;
    }
    uint32_t slot = (uint32_t)(pin - 1);
    atomic_store_explicit(&st->pins->slots[slot], 0, memory_order_release);
    slot_give(st, slot);
}

static int question(mr_object_id id, const char *source, mr_duration timeout,
    struct mr_ctl_get *out, struct mr_error *e)
{
    *out = (struct mr_ctl_get){.id = id, .timeout_ns = timeout};
    size_t n = source ? strlen(source) : 0;
    if (n >= sizeof out->source)
        return mr_fail(e, MR_EINVAL, "the address of a store has %zu bytes, at most %zu", n,
            sizeof out->source - 1);
    if (n) memcpy(out->source, source, n);
    return MR_OK;
}

static struct mr_store_request *ask(
    struct mr_store *st, const struct mr_ctl_get *get, bool async, uint64_t token, uint64_t *number)
{
    pthread_mutex_lock(&st->lock);
    struct mr_store_request *r = mr_store_request_take(st);
    if (r) {
        r->async = async;
        r->token = token;
        r->id = get->id;
        r->asked_at = mr_store_now();
        *number = r->number;
    }
    pthread_mutex_unlock(&st->lock);
    return r;
}

static int too_many(struct mr_error *e)
{
    return mr_fail(
        e, MR_ELIMIT, "more than %u requests to the object store are under way", MR_REQUESTS_MAX);
}

int mr_store_get_or_stop(struct mr_store *st, mr_object_id id, const char *source,
    mr_duration timeout, struct mr_stop stop, struct mr_store_view *out, struct mr_error *e)
{
    if (get_here(st, id, out)) return MR_OK;
    if (atomic_load(&st->is_dead)) return mr_store_dead_error(e);
    struct mr_ctl_get get;
    int err = question(id, source, timeout, &get, e);
    if (err) return err;
    uint64_t number = 0;
    struct mr_store_request *r = ask(st, &get, false, 0, &number);
    if (!r) return too_many(e);
    bool is_stopped = false;
    const struct mr_ctl_message m = {MR_CTL_GET, number, .fixed = &get};
    err = mr_store_send_or_stop(st, &m, stop);
    bool is_sent = err != MR_ECANCELED;
    is_stopped = !is_sent;
    pthread_mutex_lock(&st->lock);
    while (!err && !r->done && !is_stopped && !atomic_load(&st->is_dead))
        /* This wait needs no deadline: the store ends the get after `timeout`. */
        is_stopped = mr_store_wait_or_stop(st, stop);
    is_stopped = is_stopped && !r->done;
    if (is_stopped)
        err = mr_store_stopped_error(e);
    else if (err || !r->done)
        err = mr_store_dead_error(e);
    else if (r->err)
        err = mr_fail(e, r->err, "%s", r->text);
    else
        *out = r->view;
    mr_store_request_drop(st, r);
    pthread_mutex_unlock(&st->lock);
    if (is_stopped && is_sent)
        (void)mr_ctl_send_now(
            st->socket, &(struct mr_ctl_message){.type = MR_CTL_CANCEL, .request = number});
    return err;
}

int mr_store_get(struct mr_store *st, mr_object_id id, const char *source, mr_duration timeout,
    struct mr_store_view *out, struct mr_error *e)
{
    return mr_store_get_or_stop(st, id, source, timeout, (struct mr_stop){0}, out, e);
}

int mr_store_get_start(struct mr_store *st, mr_object_id id, const char *source,
    mr_duration timeout, uint64_t token, struct mr_store_view *out, struct mr_error *e)
{
    if (get_here(st, id, out)) return MR_OK;
    if (atomic_load(&st->is_dead)) return mr_store_dead_error(e);
    struct mr_ctl_get get;
    int err = question(id, source, timeout, &get, e);
    if (err) return err;
    uint64_t number = 0;
    struct mr_store_request *r = ask(st, &get, true, token, &number);
    if (!r) return too_many(e);
    if (!mr_ctl_send(st->socket, MR_CTL_GET, number, &get, NULL, 0, -1)) return MR_EAGAIN;
    pthread_mutex_lock(&st->lock);
    bool still = r->number == number; /* false: the completion is already in the queue */
    if (still) mr_store_request_drop(st, r);
    pthread_mutex_unlock(&st->lock);
    return still ? mr_store_dead_error(e) : MR_EAGAIN;
}

bool mr_store_has_spilled(const struct mr_store *st)
{
    return mr_catalog_away(&st->catalog) > 0;
}

void mr_store_want(struct mr_store *st, const mr_object_id *ids, size_t n, bool at_once)
{
    mr_object_id away[64];
    uint32_t count = 0;
    if (!mr_store_has_spilled(st)) return;
    for (size_t i = 0; i < n; i++) {
        if (!mr_catalog_is_here(&st->catalog, ids[i])) away[count++] = ids[i];
        if (count < MR_ARRAY_LEN(away) && i + 1 < n) continue;
        if (count && mr_ctl_send(st->socket, MR_CTL_WANT, at_once, NULL, away, count, -1)) return;
        count = 0;
    }
}

int mr_store_fd(const struct mr_store *st)
{
    return st->event_fd;
}

size_t mr_store_completions(struct mr_store *st, struct mr_store_completion *out, size_t n_max)
{
    size_t n = 0;
    pthread_mutex_lock(&st->lock);
    while (n < n_max && !mr_list_is_empty(&st->completions)) {
        struct mr_store_done *d =
            MR_LIST_ITEM(mr_list_pop_head(&st->completions), struct mr_store_done, node);
        out[n++] = d->completion;
        mr_release(d);
    }
    uint64_t count;
    if (mr_list_is_empty(&st->completions)) (void)!read(st->event_fd, &count, sizeof count);
    pthread_mutex_unlock(&st->lock);
    return n;
}
