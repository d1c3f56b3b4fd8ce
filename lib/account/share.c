#include "account/share.h"

bool mr_account_share_has(const struct mr_account_share *s, uint32_t job)
{
    return !s->is_own || (job < s->jobs_count && s->is_own[job]);
}

bool mr_account_share_add(struct mr_account_share *s, const struct mr_account_piece *piece)
{
    bool is_own = mr_account_share_has(s, piece->job);
    mr_account_sum(&s->sums, piece);
    if (!is_own && mr_account_class_is_busy(piece->class)) s->other_ns += piece->to - piece->from;
    return is_own;
}

uint64_t mr_account_share_busy(const struct mr_account_share *s)
{
    return mr_account_sums_busy(&s->sums) - s->other_ns;
}
