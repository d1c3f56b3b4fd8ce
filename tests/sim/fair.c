/* Checks that jobs of one priority share the workers. When faults are over, a job of one task is
 * submitted while a job of many tasks runs. The one task must be sent before most of the tasks that
 * wait in the large job. */
#include "tests/sim/sim.h"

#include "graph/json/json.h"

#include <stdio.h>

#define MANY 1500
#define FEW 64
#define TEXT_MAX 256

static uint32_t submit(struct sim *s, uint32_t tasks)
{
    struct sim_spec *x = &s->specs[s->specs_count];
    struct mr_error e = {0};
    char text[TEXT_MAX], request[16];
    mr_assert(s->specs_count < MR_ARRAY_LEN(s->specs));
    (void)snprintf(text, sizeof text,
        "{\"tasks\":{\"k-${i}\":{\"op\":\"small\",\"args\":[\"${i}\"],\"for\":{\"i\":%" PRIu32
        "}}}}",
        tasks);
    int err = mr_graph_from_json(mr_str(text), &sim_catalogue, &x->graph, &e);
    if (err) sim_fail(s, "the text makes no graph: %s", e.text);
    (void)snprintf(request, sizeof request, "r%" PRIu32, s->specs_count);
    x->graph->job.request_id = mr_text_arena_copy(&x->graph->text, mr_str(request));
    x->waits = UINT32_MAX;
    sim_push(s, 0, (struct mr_virtual_event){.kind = EV_SUBMIT, .a = s->specs_count});
    return s->specs_count++;
}

void sim_fair_begin(struct sim *s)
{
    s->fair_many = submit(s, MANY);
}

/* Submits the small job when 2 % of the large job's tasks are done. False: fewer are done. */
bool sim_fair_add(struct sim *s)
{
    const struct sim_spec *x = &s->specs[s->fair_many];
    struct mr_sched_job_info info;
    if (!x->is_accepted || !mr_sched_job(s->sched, (mr_job_id){x->id}, &info)) return false;
    if (info.counts[MR_TASK_DONE] + info.counts[MR_TASK_RELEASED] < MANY / 50) return false;
    s->fair_one = submit(s, 1);
    s->fair_sent = 0;
    s->fair_most = FEW + info.counts[MR_TASK_READY] / 4;
    s->count.fair += s->fair_most < info.counts[MR_TASK_READY];
    return true;
}

/* Called for each task that the scheduler sends. Counts the tasks of the large job that are sent
 * before the small job's task. */
void sim_fair_sent(struct sim *s, uint64_t job)
{
    const struct sim_job *j = s->fair_one ? sim_job_of(s, job) : NULL;
    if (!j || s->fair_is_sent) return;
    s->fair_is_sent = j->spec == s->fair_one;
    s->fair_sent += j->spec == s->fair_many;
}

/* True: the small job has ended. Fails if more than s->fair_most tasks of the large job were sent
 * before the small job's task. This limit is FEW plus a quarter of the large job's tasks that were
 * ready when the small job was submitted. Jobs take turns, so fewer are sent. The time that the
 * small job's task waits at its worker does not count. */
bool sim_fair_check(struct sim *s)
{
    const struct sim_spec *x = &s->specs[s->fair_one];
    struct mr_sched_job_info info;
    if (!x->is_accepted || !mr_sched_job(s->sched, (mr_job_id){x->id}, &info)) return false;
    if (info.state < MR_JOB_DONE) return false;
    sim_say(
        s, "%" PRIu64 " tasks of a large job were sent before that of a small one", s->fair_sent);
    if (s->fair_sent > s->fair_most)
        sim_fail(s, "%" PRIu64 " tasks of a large job were sent before that of a small one",
            s->fair_sent);
    return true;
}
