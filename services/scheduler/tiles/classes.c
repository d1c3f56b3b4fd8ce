#include "services/scheduler/tiles/classes.h"

#include "host/clock.h"

#define CELLS_MAX (1u << 20)
#define CELLS_OF_SPAN 64u /* cells for each span, up to CELLS_MAX */
#define CELLS_MIN (1u << 14)
#define PAUSE_MIN MR_SECOND
#define PAUSE_FACTOR 20

struct making {
    struct mr_tile_pyramid *pyramid;
    struct mr_tile_slots *slots;
};

static void on_piece(
    void *ctx, struct mr_str worker, uint32_t slot, const struct mr_account_piece *p)
{
    struct making *m = ctx;
    uint32_t number = mr_trace_names_number(&m->slots->workers, worker);
    uint32_t lane = mr_tile_slots_number(m->slots, number, slot);
    const struct mr_tile_time t = {
        .from = p->from, .until = p->to, .ns = p->to - p->from, .name = (uint16_t)p->class};
    mr_tile_pyramid_cover(m->pyramid, m->slots->count, p->from, p->to);
    mr_tile_pyramid_add(m->pyramid, lane, &t);
}

int mr_tile_classes_make(struct mr_tile_classes *c, const struct mr_trace_source *source,
    const struct mr_trace_view *view, const struct mr_job_account_ask *ask,
    struct mr_tile_slots *slots)
{
    mr_time began = mr_clock_now();
    bool has_ended = ask->over_ns != c->over_ns;
    if (c->pyramid && !has_ended && (c->over_ns || began < c->due)) return MR_OK;
    if (view->spans > MR_TILE_CLASSES_SPANS_MAX) return MR_ELIMIT;
    struct mr_job_account_ask all = *ask;
    struct mr_job_account account;
    uint64_t cells = CELLS_MIN + view->spans * CELLS_OF_SPAN;
    struct making m = {.slots = slots,
        .pyramid = mr_tile_pyramid_new((uint32_t)MR_MIN(cells, (uint64_t)CELLS_MAX))};
    all.on_piece = on_piece;
    all.ctx = &m;
    int err = mr_job_account_read(source, view, &all, &account);
    if (!err && account.is_away) err = MR_EAWAY;
    if (err) {
        mr_job_account_fini(&account);
        mr_tile_pyramid_free(&m.pyramid);
        return err;
    }
    mr_tile_pyramid_free(&c->pyramid);
    c->pyramid = m.pyramid;
    c->over_ns = ask->over_ns;
    mr_time ended = mr_clock_now();
    c->due = ended + MR_MAX(PAUSE_MIN, (ended - began) * PAUSE_FACTOR);
    mr_job_account_fini(&account);
    return MR_OK;
}

void mr_tile_classes_fini(struct mr_tile_classes *c)
{
    mr_tile_pyramid_free(&c->pyramid);
}
