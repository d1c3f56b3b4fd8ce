/* Checks partials, which are sums over chunks of rows, and adds them (partial.h). */
#include "ops/glm/partial.h"

#include "ops/glm/state.h"

#include <math.h>
#include <string.h>

#define PARTIAL_MAGIC 1735159154.0 /* "glmr" */

size_t mr_glm_partial_numbers(const struct mr_glm_partial_head *h)
{
    size_t n = (size_t)h->columns + 1;
    return MR_GLM_PARTIAL_HEAD + n + (h->hessian != 0 ? mr_glm_packed((uint32_t)n) : 0) +
           (h->points != 0 ? (size_t)h->entries * (n + 1) : 0);
}

void mr_glm_partial_lay_out(struct mr_glm_partial *p, double *numbers)
{
    p->h = (struct mr_glm_partial_head *)(void *)numbers;
    p->h->magic = PARTIAL_MAGIC;
    p->columns = (uint32_t)p->h->columns;
    p->entries = (uint32_t)p->h->entries;
    double *at = numbers + MR_GLM_PARTIAL_HEAD;
    p->gradient = at;
    at += p->columns + 1;
    p->hessian = p->h->hessian != 0 ? at : NULL;
    if (p->hessian) at += mr_glm_packed(p->columns + 1);
    p->points = p->h->points != 0 ? at : NULL;
}

int mr_glm_partial_open(
    double *numbers, size_t count, struct mr_glm_partial *out, struct mr_error *e)
{
    const struct mr_glm_partial_head *h = (const struct mr_glm_partial_head *)(const void *)numbers;
    bool good = count >= MR_GLM_PARTIAL_HEAD && h->magic == PARTIAL_MAGIC &&
                mr_glm_is_count(h->columns, MR_GLM_COLUMNS_MAX) && mr_glm_is_count(h->hessian, 1) &&
                mr_glm_is_count(h->entries, MR_GLM_CHUNKS_MAX) && mr_glm_is_count(h->points, 1);
    good = good && (h->hessian == 0 || h->columns <= MR_GLM_SQUARE_COLUMNS_MAX);
    if (!good || count != mr_glm_partial_numbers(h))
        return mr_fail(e, MR_EINVAL, "expected what glm.part or glm.add gave");
    mr_glm_partial_lay_out(out, numbers);
    return MR_OK;
}

/* Returns the smaller of two weights, where 0 means that there is no weight. */
static double least_of(double a, double b)
{
    return a == 0 ? b : b == 0 ? a : fmin(a, b);
}

void mr_glm_partial_add(
    struct mr_glm_partial *to, const struct mr_glm_partial *from, uint32_t *entry)
{
    size_t n = (size_t)to->columns + 1;
    to->h->rows += from->h->rows;
    to->h->weight += from->h->weight;
    to->h->saturated += from->h->saturated;
    to->h->least = least_of(to->h->least, from->h->least);
    to->h->offset = fmax(to->h->offset, from->h->offset);
    to->h->wrong = fmax(to->h->wrong, from->h->wrong);
    to->h->loss += from->h->loss;
    to->h->stuck += from->h->stuck;
    for (size_t j = 0; j < n; j++)
        to->gradient[j] += from->gradient[j];
    for (size_t j = 0; to->hessian && j < mr_glm_packed(to->columns + 1); j++)
        to->hessian[j] += from->hessian[j];
    if (to->points)
        memcpy(
            to->points + *entry * (n + 1), from->points, from->entries * (n + 1) * sizeof(double));
    *entry += from->entries;
}
