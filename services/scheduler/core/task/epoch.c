/* Recognises ids of a lost journal. Each start of a scheduler has an epoch, which grows, and a
 * random incarnation, which tags the ids of its jobs and workers. The journal names all
 * incarnations that wrote it. An id with another tag comes from a scheduler whose journal Redis has
 * lost: Redis came back empty, or from an older copy, while clients, workers and stores ran on.
 * Such an id never equals one of this journal. This file names the case in errors, and keeps the
 * epoch above any that workers and stores have seen. */
#include "services/scheduler/core/task/epoch.h"

#include "services/scheduler/core/task/journal.h"

/* If a worker or store reports this epoch or a higher one, the scheduler ignores the epoch. */
#define EPOCH_MAX (UINT32_MAX / 2)

uint64_t mr_sched__id(const struct mr_sched *s, uint32_t number)
{
    return s->config.incarnation >> 32 << 32 | number;
}

static void add(struct writers *w, uint64_t incarnation)
{
    for (uint32_t i = 0; i < MR_MIN(w->count, WRITERS_MAX); i++)
        if (w->id[i] == incarnation) return;
    w->id[w->count++ % WRITERS_MAX] = incarnation;
}

void mr_sched__epoch_replay(struct mr_sched *s, uint64_t incarnation)
{
    if (incarnation) add(&s->writers, incarnation);
}

void mr_sched__epoch_begin(struct mr_sched *s)
{
    add(&s->writers, s->config.incarnation);
    mr_sched__journal_epoch(s);
}

/* Called when a worker or store reports an epoch, and the incarnation of the scheduler that had it.
 * Raises this scheduler's epoch above the reported one, unless the reported one is lower or this
 * scheduler's own. */
void mr_sched__epoch_heard(struct mr_sched *s, uint32_t epoch, uint64_t incarnation)
{
    bool is_ours = incarnation == s->config.incarnation || !incarnation;
    if (epoch < s->config.epoch || (epoch == s->config.epoch && is_ours)) return;
    if (epoch >= EPOCH_MAX) return;
    s->config.epoch = epoch + 1;
    mr_sched__journal_epoch(s);
}

bool mr_sched__is_lost_journal(const struct mr_sched *s, uint32_t tag)
{
    /* in two cases it is unknown whether a lost journal used the tag: the tag was not drawn at
     * random, or the ring `writers` has lost an incarnation */
    if (tag < MR_TAG_DRAWN_MIN || s->writers.count > WRITERS_MAX) return false;
    for (uint32_t i = 0; i < s->writers.count; i++)
        if ((uint32_t)(s->writers.id[i] >> 32) == tag) return false;
    return true;
}
