/* Takes arbitrary numbers for the state of a generalized linear model and for a partial result of
 * its fit. What passes the checks goes into one step of the solver and into the work on a chunk of
 * rows. The first two bytes say how many numbers belong to the state. */
#include "base/alloc.h"
#include "ops/glm/state.h"
#include "ops/glm/admm.h"
#include "ops/glm/solve.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

/* Does one chunk's work of ADMM, on three rows. */
static void work_on(const struct mr_glm *g)
{
    if (!mr_glm_is_local(g) || !g->chunks || g->columns > 16) return;
    double x[3 * 16] = {1, -1, 0.5, 2};
    const double y[3] = {0, 1, 1};
    double point[17];
    struct mr_glm_found found = {.point = point};
    struct mr_glm_rows r = {.x = x, .y = y, .rows = 3, .columns = g->columns};
    void *work = mr_alloc_aligned(mr_glm_work_bytes(g->columns, true), 64);
    double *room = mr_alloc(mr_glm_local_numbers(g->columns) * sizeof *room);
    (void)mr_glm_local(g, &r, g->u, work, room, &found, never, NULL);
    mr_release(room);
    mr_release(work);
}

static void step_on(struct mr_glm *g, struct mr_glm_partial *p)
{
    bool fits = p->columns == g->columns && g->columns &&
                (p->points != NULL) == mr_glm_is_local(g) &&
                (p->hessian != NULL) == mr_glm_wants_hessian(g);
    if (!fits || g->columns > 64) return;
    double *room = mr_alloc(mr_glm_step_numbers(g) * sizeof *room);
    struct mr_error e = {0};
    (void)mr_glm_step(g, p, room, &e);
    mr_release(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2) return 0;
    size_t first = (size_t)(data[0] | data[1] << 8);
    size_t all = (n - 2) / sizeof(double);
    if (first > all) first = all;
    double *state = mr_alloc((first + 1) * sizeof *state);
    double *partial = mr_alloc((all - first + 1) * sizeof *partial);
    memcpy(state, data + 2, first * sizeof *state);
    memcpy(partial, data + 2 + first * sizeof *state, (all - first) * sizeof *partial);
    struct mr_glm g;
    struct mr_glm_partial p;
    struct mr_error e = {0};
    bool opened = !mr_glm_open(state, first, &g, &e);
    if (opened && g.columns) {
        double *raw = mr_alloc((g.columns + 1) * sizeof *raw);
        mr_glm_raw(&g, g.w, raw);
        mr_release(raw);
        work_on(&g);
    }
    if (!mr_glm_partial_open(partial, all - first, &p, &e) && opened) step_on(&g, &p);
    mr_release(partial);
    mr_release(state);
    return 0;
}
