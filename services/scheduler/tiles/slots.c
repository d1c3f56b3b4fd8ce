#include "services/scheduler/tiles/slots.h"

#include "base/alloc.h"
#include "base/limits.h"

#include <stdlib.h>

struct mr_tile_worker {
    uint32_t *numbers; /* by slot: the number plus 1; 0: not seen yet */
    uint32_t room;
};

void mr_tile_slots_init(struct mr_tile_slots *s)
{
    *s = (struct mr_tile_slots){0};
    mr_trace_names_init(&s->workers);
    mr_trace_names_init(&s->ops);
}

void mr_tile_slots_fini(struct mr_tile_slots *s)
{
    for (uint32_t i = 0; i < s->of_room; i++)
        mr_release(s->of[i].numbers);
    mr_trace_names_fini(&s->workers);
    mr_trace_names_fini(&s->ops);
    mr_release(s->of);
    mr_release(s->slots);
    mr_release(s->rows);
}

uint32_t mr_tile_slots_number(struct mr_tile_slots *s, uint32_t worker, uint32_t slot)
{
    slot = MR_MIN(slot, MR_SLOTS_MAX - 1); /* a trace may have any number here */
    if (worker >= s->of_room) {
        uint32_t more = MR_MAX(worker + 1, MR_MAX(16u, s->of_room * 2));
        s->of = mr_grow(s->of, s->of_room * sizeof *s->of, more * sizeof *s->of);
        s->of_room = more;
    }
    struct mr_tile_worker *w = &s->of[worker];
    if (slot >= w->room) {
        uint32_t more = MR_MAX(slot + 1, MR_MAX(8u, w->room * 2));
        w->numbers = mr_grow(w->numbers, w->room * sizeof *w->numbers, more * sizeof *w->numbers);
        w->room = more;
    }
    if (w->numbers[slot]) return w->numbers[slot] - 1;
    if (s->count == s->room) {
        uint32_t more = MR_MAX(64u, s->room * 2);
        s->slots = mr_grow(s->slots, s->room * sizeof *s->slots, more * sizeof *s->slots);
        s->room = more;
    }
    s->slots[s->count] = (struct mr_tile_slot){worker, slot};
    w->numbers[slot] = ++s->count;
    return s->count - 1;
}

static bool is_digit(struct mr_str s, size_t at)
{
    return at < s.n && s.p[at] >= '0' && s.p[at] <= '9';
}

/* Skips the leading zeros of the number at `*at`, and returns how many digits follow. */
static size_t digits(struct mr_str s, size_t *at)
{
    size_t n = 0;
    while (is_digit(s, *at) && s.p[*at] == '0' && is_digit(s, *at + 1))
        ++*at;
    while (is_digit(s, *at + n))
        n++;
    return n;
}

static int by_name(struct mr_str a, struct mr_str b)
{
    size_t i = 0, k = 0;
    while (i < a.n && k < b.n) {
        if (is_digit(a, i) && is_digit(b, k)) {
            size_t x = digits(a, &i), y = digits(b, &k);
            if (x != y) return x < y ? -1 : 1;
        }
        if (a.p[i] != b.p[k]) return (unsigned char)a.p[i] < (unsigned char)b.p[k] ? -1 : 1;
        i++;
        k++;
    }
    return (i < a.n) - (k < b.n);
}

static int by_row(const void *a, const void *b, void *ctx)
{
    const struct mr_tile_slots *s = ctx;
    const struct mr_tile_slot *x = &s->slots[*(const uint32_t *)a];
    const struct mr_tile_slot *y = &s->slots[*(const uint32_t *)b];
    int order = x->worker == y->worker
                    ? 0
                    : by_name(s->workers.names[x->worker], s->workers.names[y->worker]);
    if (order) return order;
    if (x->worker != y->worker) return x->worker < y->worker ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

const uint32_t *mr_tile_slots_rows(struct mr_tile_slots *s)
{
    if (s->rows_count == s->count) return s->rows;
    s->rows = mr_grow(s->rows, s->rows_count * sizeof *s->rows, s->count * sizeof *s->rows);
    s->rows_count = s->count;
    for (uint32_t i = 0; i < s->count; i++)
        s->rows[i] = i;
    qsort_r(s->rows, s->count, sizeof *s->rows, by_row, s);
    return s->rows;
}
