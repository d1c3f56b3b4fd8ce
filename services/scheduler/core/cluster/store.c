/* Object stores: their numbers, which are never reused, their leases, and the objects of lost
 * stores.
 */
#include "services/scheduler/core/cluster/store.h"

#include "base/alloc.h"
#include "services/scheduler/core/cluster/value_scan.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/task/epoch.h"
#include "services/scheduler/core/task/journal.h"

#include <string.h>

/* A store that the journal names has this many leases of time to register again, or to be replaced
 * by a new store that took over its disk. */
#define EXPECTED_LEASES 4

static uint32_t find_store(const struct mr_sched *s, uint64_t incarnation)
{
    for (uint32_t i = 1; i <= s->store_list.count; i++)
        if (s->stores[i].incarnation == incarnation) return i;
    return 0;
}

uint32_t mr_sched__store(struct mr_sched *s, uint64_t incarnation, struct mr_str address)
{
    if (!incarnation) return 0;
    uint32_t n = find_store(s, incarnation);
    if (!n) {
        if (s->store_list.count == s->config.stores_max) return 0;
        n = ++s->store_list.count;
        s->stores[n] = (struct store){
            .incarnation = incarnation, .is_alive = true, .is_expected = s->replay.is_active};
        s->stores[n].last_heard = s->now;
    }
    struct store *st = &s->stores[n];
    if (!st->address && address.n) {
        st->address = mr_alloc(address.n + 1);
        memcpy(st->address, address.p, address.n);
    }
    return n;
}

static void store_gone(struct mr_sched *s, uint32_t n, int code, const char *why)
{
    struct store *st = &s->stores[n];
    st->is_alive = st->is_connected = false;
    st->is_lost = true;
    s->store_list.events++;
    struct mr_sched_note *note = mr_sched__note(s, MR_NOTE_STORE_LOST);
    note->slot = n;
    note->incarnation = st->incarnation;
    note->code = code;
    mr_sched__note_text(s, note, why);
    mr_sched_store_batch_clear(&s->fx->store[n]);
}

static void store_lost(struct mr_sched *s, uint32_t n)
{
    store_gone(s, n, MR_EAWAY, "the store was silent for longer than its lease");
    mr_sched__scan(s, SCAN_STORE_LOST, n, NULL, 0);
}

/* Treats store `n` as dead, because its node has the new store `heir`. The old store may be
 * connected, silent, or known from the journal only. */
static void store_replaced(struct mr_sched *s, uint32_t n, uint32_t heir)
{
    store_gone(s, n, MR_EEXIST, "its node has a new store");
    mr_sched__scan_replaced(s, n, heir);
}

static bool is_on(const struct store *st, struct mr_str node)
{
    return st->is_alive && *st->node && mr_str_eq(node, mr_str(st->node));
}

/* True: the lost store that registers again was replaced by another store on its node. False: the
 * store was not lost, or was not replaced. A lost store that was not replaced had only been silent
 * for longer than its lease. Such a store is alive again, and drops objects that no job uses. */
static bool is_replaced(const struct mr_sched *s, const struct mr_sched_store *r)
{
    uint32_t n = find_store(s, r->store);
    if (!n || !s->stores[n].is_lost) return false;
    for (uint32_t i = 1; i <= s->store_list.count; i++)
        if (i != n && is_on(&s->stores[i], r->node)) return true;
    return false;
}

bool mr_sched__store_is_replaced(const struct mr_sched *s, uint32_t n)
{
    if (!n || !s->stores[n].is_lost) return false;
    for (uint32_t i = 1; i <= s->store_list.count; i++)
        if (i != n && is_on(&s->stores[i], mr_str(s->stores[n].node))) return true;
    return false;
}

/* Replays the replacement of store `n` by store `heir` of the same node. A value of the journal
 * names `heir`, so `heir` has a number already. The objects of `n` become objects of `heir`. */
static void replay_replaced(struct mr_sched *s, uint32_t n, uint32_t heir)
{
    for (uint32_t v = 0; v < s->value_list.top; v++)
        if (s->values[v].kind == V_OBJECT && s->values[v].store == n)
            s->values[v].store = (uint16_t)heir;
    s->stores[n].is_alive = s->stores[n].is_expected = false;
    s->stores[n].is_lost = true;
    s->stores[heir].is_heir = true;
}

/* Replays the registration of a store. A store that replaced another store of its node takes the
 * number of that store, so that numbers do not grow with restarts. If the new store has a number
 * already, because a value of the journal names it, replay_replaced moves the objects instead. */
void mr_sched__store_replay(struct mr_sched *s, uint64_t incarnation, struct mr_str node)
{
    uint32_t n = find_store(s, incarnation);
    for (uint32_t i = 1; i <= s->store_list.count; i++) {
        if (i == n || !is_on(&s->stores[i], node)) continue;
        if (n) {
            replay_replaced(s, i, n);
            continue;
        }
        s->stores[i].incarnation = incarnation;
        s->stores[i].is_heir = true;
        return;
    }
    if (!n) n = mr_sched__store(s, incarnation, (struct mr_str){0});
    if (n) memcpy(s->stores[n].node, node.p, MR_MIN(node.n, sizeof s->stores[n].node - 1));
}

void mr_sched__store_register(struct mr_sched *s, const struct mr_sched_store *r)
{
    mr_sched__epoch_heard(s, r->epoch, r->scheduler);
    if (is_replaced(s, r)) return;
    uint32_t n = mr_sched__store(s, r->store, r->address);
    if (!n) return;
    for (uint32_t i = 1; i <= s->store_list.count; i++)
        if (i != n && is_on(&s->stores[i], r->node)) store_replaced(s, i, n);
    struct store *st = &s->stores[n];
    bool is_new = !mr_str_eq(r->node, mr_str(st->node));
    st->is_lost = st->is_expected = false;
    st->is_alive = st->is_connected = true;
    s->store_list.changes++;
    s->store_list.events++;
    st->last_heard = s->now;
    st->memory_bytes = r->memory_bytes;
    memset(st->node, 0, sizeof st->node);
    if (r->node.n) memcpy(st->node, r->node.p, MR_MIN(r->node.n, sizeof st->node - 1));
    if (is_new) mr_sched__journal_store(s, n);
    if (s->fx->store[n].is_dirty) /* messages to the store have waited until it registers */
        mr_buf_add(&s->fx->dirty_stores, &n, sizeof n);
    mr_sched__store_batch(s, n)->has_registered = true;
    struct mr_sched_note *note = mr_sched__note(s, MR_NOTE_STORE_JOINED);
    note->slot = n;
    note->incarnation = r->store;
    mr_sched__scan(s, SCAN_STORE_HOLD, n, NULL, 0);
}

void mr_sched__store_heard(struct mr_sched *s, const struct mr_sched_store *r, bool is_connected)
{
    uint32_t n = find_store(s, r->store);
    if (!n || s->stores[n].is_lost) return;
    s->store_list.changes += is_connected != s->stores[n].is_connected;
    s->store_list.events += is_connected != s->stores[n].is_connected;
    s->stores[n].is_connected = is_connected;
    s->stores[n].last_heard = s->now;
    size_t full = MR_MIN(r->disk_full.n, sizeof s->stores[n].disk_full - 1);
    if (full) memcpy(s->stores[n].disk_full, r->disk_full.p, full);
    s->stores[n].disk_full[full] = 0;
    mr_time end = mr_time_after(s->now, s->config.lease);
    s->due.leases = MR_MIN(s->due.leases, end);
}

void mr_sched__store_leases(struct mr_sched *s)
{
    for (uint32_t i = 1; i <= s->store_list.count; i++) {
        const struct store *st = &s->stores[i];
        /* skips stores that were lost, and stores that have not registered and that the journal
         * does not name */
        if (!st->is_alive || !(*st->node || st->is_expected)) continue;
        mr_duration lease = s->config.lease * (st->is_expected ? EXPECTED_LEASES : 1);
        mr_time end = mr_time_after(st->last_heard, lease);
        if (end <= s->now)
            store_lost(s, i);
        else
            s->due.leases = MR_MIN(s->due.leases, end);
    }
}

void mr_sched__objects_lost(struct mr_sched *s, const struct mr_sched_objects *o)
{
    uint32_t n = find_store(s, o->store);
    if (n && o->count) mr_sched__scan(s, SCAN_OBJECTS_LOST, n, o->ids, o->count);
}

void mr_sched__objects_unheld(struct mr_sched *s, const struct mr_sched_objects *o)
{
    uint32_t n = find_store(s, o->store);
    if (n && o->count) mr_sched__scan(s, SCAN_OBJECTS_UNHELD, n, o->ids, o->count);
}
