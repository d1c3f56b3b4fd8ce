/* A grace period for tasks that fail because of a store. When a store dies, its workers often
 * notice before the scheduler: objects that a task reads, writes or persists there are not
 * available. That is not the task's fault. The task is retried for a while; meanwhile the store is
 * found dead, or a new one registers, and lost values are computed again. A task that fails after
 * that has a fault of its own: it names an object that does not exist, for example. */
#include "services/scheduler/core/cluster/store_grace.h"

#include "services/scheduler/core/state/lookup.h"

#define WAIT_FOR_OBJECT (20 * MR_SECOND) /* twice the time that a worker waits for an object */
#define AGAIN_MAX 65536u                 /* limit of retries of one job, over all its tasks */
#define RENEWED_MAX 8u /* limit of one job's grace periods during which no store comes or goes */

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
