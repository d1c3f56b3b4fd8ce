#include "ops/glm/merge.h"

#include "ops/glm/args.h"
#include "ops/glm/solve.h"

static int open_partial(
    struct mr_op_call *call, const struct mr_glm_parts *all, uint32_t i, struct mr_glm_partial *out)
{
    double *numbers = NULL;
    uint64_t count = 0;
    int err = mr_glm_numbers_of(call, &all->items[i], "parts", &numbers, &count);
    struct mr_error why = {0};
    if (!err && mr_glm_partial_open(numbers, count, out, &why))
        return call->does->fail(call, MR_EINVAL, "argument \"parts\", number %u: %s", i, why.text);
    return err;
}

int mr_glm_merge_head(struct mr_op_call *call, const struct mr_glm_parts *all,
    struct mr_glm_partial *parts, uint32_t *count, struct mr_glm_partial_head *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->items[i].type == MR_ARG_NIL) continue;
        int err = open_partial(call, all, i, &parts[n]);
        if (err) return err;
        const struct mr_glm_partial_head *one = parts[n++].h;
        if (n == 1)
            *h = (struct mr_glm_partial_head){
                .columns = one->columns, .hessian = one->hessian, .points = one->points};
        if (one->columns != h->columns)
            return call->does->fail(call, MR_EINVAL,
                "argument \"parts\": number %u is of %g columns, number 0 of %g", i, one->columns,
                h->columns);
        if (one->hessian != h->hessian || one->points != h->points)
            return call->does->fail(call, MR_EINVAL,
                "argument \"parts\": number %u and number 0 are of different fits", i);
        h->entries += one->entries;
        if (h->entries > MR_GLM_CHUNKS_MAX)
            return call->does->fail(call, MR_ELIMIT, "more than %u chunks", MR_GLM_CHUNKS_MAX);
    }
    *count = n;
    return MR_OK;
}

void mr_glm_merge(const struct mr_glm_partial *parts, uint32_t count, double *numbers,
    const struct mr_glm_partial_head *h, struct mr_glm_partial *sum)
{
    uint32_t entry = 0;
    memcpy(numbers, h, sizeof *h);
    mr_glm_partial_lay_out(sum, numbers);
    for (uint32_t i = 0; i < count; i++)
        mr_glm_partial_add(sum, &parts[i], &entry);
}

static int check_sum(
    struct mr_op_call *call, const struct mr_glm *g, const struct mr_glm_partial_head *h)
{
    if (g->columns && h->columns != g->columns)
        return call->does->fail(call, MR_EINVAL,
            "argument \"parts\": they are of %g columns, the state of %u", h->columns, g->columns);
    if ((h->points != 0) != mr_glm_is_local(g) || (h->hessian != 0) != mr_glm_wants_hessian(g))
        return call->does->fail(
            call, MR_EINVAL, "argument \"parts\": they are no answers to this state");
    return MR_OK;
}

int mr_glm_merge_step(
    struct mr_op_call *call, struct mr_glm *g, const struct mr_glm_parts *all, uint64_t *numbers)
{
    struct mr_glm_partial sum;
    struct mr_glm_partial_head h = {0};
    struct mr_error why = {0};
    uint32_t count = 0;
    *numbers = 0;
    struct mr_glm_partial *parts = call->does->scratch(call, (all->count + 1) * sizeof *parts);
    if (!parts) return MR_ELIMIT;
    if (g->h->status != MR_GLM_RUNNING) return MR_OK;
    int err = mr_glm_merge_head(call, all, parts, &count, &h);
    if (err || !count) return err;
    err = check_sum(call, g, &h);
    if (err) return err;
    double *added = call->does->scratch(call, mr_glm_partial_numbers(&h) * sizeof *added);
    if (!added) return MR_ELIMIT;
    mr_glm_merge(parts, count, added, &h, &sum);
    if (g->h->evaluations == 0 && !(sum.h->weight > 0))
        return call->does->fail(
            call, MR_EINVAL, "argument \"parts\": no row of any chunk has a weight");
    struct mr_glm_head head = *g->h;
    head.columns = h.columns;
    if (g->solver == MR_GLM_ADMM && head.evaluations == 0) head.chunks = h.entries;
    struct mr_glm next;
    double *to = call->does->scratch(call, mr_glm_numbers(&head) * sizeof *to);
    if (!to) return MR_ELIMIT;
    mr_glm_copy(g, &head, to, &next);
    double *room = call->does->scratch(call, mr_glm_step_numbers(&next) * sizeof *room);
    if (!room) return MR_ELIMIT;
    if (mr_glm_step(&next, &sum, room, &why))
        return call->does->fail(call, why.code, "%s", why.text);
    *g = next;
    *numbers = mr_glm_numbers(&head);
    return MR_OK;
}
