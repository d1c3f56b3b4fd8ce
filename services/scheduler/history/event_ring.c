#include "services/scheduler/history/event_ring.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>

#define HEX_DIGITS 16

void mr_cluster_ring_init(struct mr_cluster_ring *r, uint32_t events_max)
{
    mr_assert(events_max);
    *r = (struct mr_cluster_ring){.events_max = events_max};
    r->events = mr_alloc_array(events_max, sizeof *r->events);
}

static void event_fini(struct mr_cluster_event *e)
{
    mr_release(e->worker);
    mr_release(e->node);
    *e = (struct mr_cluster_event){0};
}

void mr_cluster_ring_fini(struct mr_cluster_ring *r)
{
    for (uint32_t i = 0; i < r->events_max; i++)
        event_fini(&r->events[i]);
    mr_release(r->events);
    *r = (struct mr_cluster_ring){0};
}

struct mr_cluster_event *mr_cluster_ring_add(
    struct mr_cluster_ring *r, enum mr_cluster_change change, uint64_t wall_ns)
{
    uint64_t number = ++r->last;
    struct mr_cluster_event *e = &r->events[number % r->events_max];
    event_fini(e);
    e->number = number;
    e->change = change;
    e->wall_ns = wall_ns;
    return e;
}

uint64_t mr_cluster_ring_first(const struct mr_cluster_ring *r)
{
    return r->last < r->events_max ? 1 : r->last - r->events_max + 1;
}

const struct mr_cluster_event *mr_cluster_ring_next(
    const struct mr_cluster_ring *r, uint64_t after, uint64_t *missed)
{
    uint64_t first = mr_cluster_ring_first(r);
    uint64_t number = MR_MAX(after + 1, first);
    *missed = number - after - 1;
    return number <= r->last ? &r->events[number % r->events_max] : NULL;
}

/* ---- ids ------------------------------------------------------------------------------------- */

void mr_cluster_id_format(uint64_t incarnation, uint64_t number, char out[MR_CLUSTER_ID_TEXT_MAX])
{
    (void)snprintf(out, MR_CLUSTER_ID_TEXT_MAX, "%016" PRIx64 "-%" PRIu64, incarnation, number);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool mr_cluster_id_parse(struct mr_str text, uint64_t *incarnation, uint64_t *number)
{
    uint64_t who = 0, n = 0;
    if (text.n < HEX_DIGITS + 2 || text.n >= MR_CLUSTER_ID_TEXT_MAX) return false;
    for (size_t i = 0; i < HEX_DIGITS; i++) {
        int digit = hex_digit(text.p[i]);
        if (digit < 0) return false;
        who = who << 4 | (unsigned)digit;
    }
    if (text.p[HEX_DIGITS] != '-') return false;
    for (size_t i = HEX_DIGITS + 1; i < text.n; i++) {
        unsigned digit = (unsigned)(unsigned char)text.p[i] - '0';
        if (digit > 9 || n > (UINT64_MAX - digit) / 10) return false;
        n = n * 10 + digit;
    }
    *incarnation = who;
    *number = n;
    return true;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* A worker that appears without a connection is taken for one that registered before the scheduler
 * restarted. It causes no event JOINED, but RETURNED when it registers again, or LOST when the
 * scheduler gives it up. */
size_t mr_cluster_worker_changes(const struct mr_cluster_seen *before,
    const struct mr_cluster_seen *now, enum mr_cluster_change out[MR_CLUSTER_CHANGES_MAX])
{
    size_t n = 0;
    bool is_same = before->is_there && now->is_there && before->incarnation == now->incarnation;
    if (before->is_there && !is_same)
        out[n++] = before->is_retiring ? MR_CLUSTER_WORKER_LEFT : MR_CLUSTER_WORKER_LOST;
    if (!now->is_there) return n;
    if (!is_same && now->is_connected) out[n++] = MR_CLUSTER_WORKER_JOINED;
    if (is_same && before->is_connected != now->is_connected)
        out[n++] = now->is_connected ? MR_CLUSTER_WORKER_RETURNED : MR_CLUSTER_WORKER_SILENT;
    if (now->is_retiring && !(is_same && before->is_retiring))
        out[n++] = MR_CLUSTER_WORKER_DRAINING;
    return n;
}

enum mr_cluster_change mr_cluster_store_change(
    const struct mr_cluster_seen *before, const struct mr_cluster_seen *now)
{
    if (before->is_connected == now->is_connected) return MR_CLUSTER_NOTHING;
    if (!now->is_connected) return MR_CLUSTER_STORE_LOST;
    return before->is_there ? MR_CLUSTER_STORE_RETURNED : MR_CLUSTER_STORE_JOINED;
}
