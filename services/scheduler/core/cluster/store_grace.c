/* Tasks that a store failed. When a store dies, its workers often know before the scheduler: what a
 * task reads, makes or persists there is not available. Such a failure is not the task's fault. The
 * task is tried again for a while, in which the store is found dead, or a new one comes, and lost
 * values are made again. A task that still fails then has another fault: it names an object that
 * does not exist, for example. */
#include "services/scheduler/core/cluster/store_grace.h"

#include "services/scheduler/core/state/lookup.h"

#define WAIT_FOR_OBJECT (20 * MR_SECOND) /* twice the time that a worker waits for one */
#define AGAIN_MAX 65536u                 /* of a job in all: its fault may be another one */
#define RENEWED_MAX 8u /* periods of grace of a job while no store comes or goes */

bool mr_sched__store_may_return(struct mr_sched *s, uint32_t task)
{
    struct job *j = job_of(s, task);
    mr_duration grace = 2 * s->config.lease + WAIT_FOR_OBJECT;
    mr_time quiet = mr_time_after(j->away_at, 2 * grace);
    if (!j->away_at || j->away_events != s->store_list.events || quiet < s->now) {
        j->away_renewed = j->away_events != s->store_list.events ? 0 : j->away_renewed + 1;
        if (j->away_renewed > RENEWED_MAX) return false;
        j->away_since = s->now;
        j->away_events = s->store_list.events;
    }
    j->away_at = s->now;
    if (j->away_count == AGAIN_MAX) return false;
    j->away_count++;
    return s->now < mr_time_after(j->away_since, grace);
}
