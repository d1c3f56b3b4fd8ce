#include "cli/export/raster.h"

#include "base/alloc.h"

void mr_raster_init(struct mr_raster *r, uint64_t from, uint64_t until, uint32_t width)
{
    *r = (struct mr_raster){.from = from, .until = until, .width = width};
    mr_export_lanes_init(&r->lanes, 1);
    mr_trace_names_init(&r->ops);
}

void mr_raster_fini(struct mr_raster *r)
{
    for (uint32_t i = 0; i < MR_RASTER_ROWS_MAX; i++)
        mr_release(r->rows[i]);
    mr_export_lanes_fini(&r->lanes);
    mr_trace_names_fini(&r->ops);
}

/* Returns the time at which a pixel begins. */
static double pixel_begin(const struct mr_raster *r, uint32_t pixel)
{
    return (double)(r->until - r->from) * pixel / r->width;
}

static uint32_t pixel_of(const struct mr_raster *r, uint64_t time)
{
    double at = (double)(time - r->from) * r->width / (double)(r->until - r->from);
    return MR_MIN((uint32_t)at, r->width - 1);
}

static void pixel_add(struct mr_raster_pixel *p, uint32_t op, float ns)
{
    p->busy_ns += ns;
    if (p->op == op) {
        p->counter += ns;
    } else if (p->counter >= ns) {
        p->counter -= ns;
    } else {
        p->op = op;
        p->counter = ns - p->counter;
    }
}

void mr_raster_add(struct mr_raster *r, const struct mr_export_span *span)
{
    if (!span->started) return;
    r->spans++;
    uint32_t lane = mr_export_lanes_take(&r->lanes, span);
    uint32_t op = mr_trace_names_number(&r->ops, span->op) + 1;
    uint64_t from = MR_MAX(span->started, r->from), until = MR_MIN(span->finished, r->until);
    if (lane >= MR_RASTER_ROWS_MAX || from >= until) return;
    if (!r->rows[lane]) r->rows[lane] = mr_alloc_array(r->width, sizeof **r->rows);
    uint32_t last = pixel_of(r, until);
    for (uint32_t i = pixel_of(r, from); i <= last; i++) {
        double begin = MR_MAX(pixel_begin(r, i), (double)(from - r->from));
        double end = MR_MIN(pixel_begin(r, i + 1), (double)(until - r->from));
        if (begin < end) pixel_add(&r->rows[lane][i], op, (float)(end - begin));
    }
}

uint32_t mr_raster_rows(const struct mr_raster *r)
{
    return MR_MIN(r->lanes.count, (uint32_t)MR_RASTER_ROWS_MAX);
}

double mr_raster_fill(const struct mr_raster *r, const struct mr_raster_pixel *pixel)
{
    double share = (double)pixel->busy_ns * r->width / (double)(r->until - r->from);
    return MR_MIN(share, 1.0);
}
