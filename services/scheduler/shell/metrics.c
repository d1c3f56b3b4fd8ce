#include "services/scheduler/shell/metrics.h"

#include "host/stats.h"
#include "rpc/util/metrics.h"
#include "services/scheduler/submit/parser.h"

static struct mr_sched_totals totals_of(void *ctx)
{
    struct mr_shell *sh = ctx;
    struct mr_sched_totals t;
    mr_sched_totals(sh->core, &t);
    return t;
}

static double tasks_done(void *ctx)
{
    return (double)totals_of(ctx).tasks_done;
}

static double tasks_sent(void *ctx)
{
    return (double)totals_of(ctx).tasks_sent;
}

static double steals(void *ctx)
{
    return (double)totals_of(ctx).steals;
}

static double recomputed(void *ctx)
{
    return (double)totals_of(ctx).recomputed;
}

static double placed_cached(void *ctx)
{
    return (double)totals_of(ctx).placed_cached;
}

static double placed_repaired(void *ctx)
{
    return (double)totals_of(ctx).placed_repaired;
}

static double placed_scored(void *ctx)
{
    return (double)totals_of(ctx).placed_scored;
}

static double roots_held(void *ctx)
{
    return (double)totals_of(ctx).roots_held;
}

static double jobs_running(void *ctx)
{
    return (double)totals_of(ctx).jobs_running;
}

static double journal_behind(void *ctx)
{
    struct mr_sched_totals t = totals_of(ctx);
    return (double)(t.journal_sequence - t.journal_acked);
}

static double jobs_unread(void *ctx)
{
    mr_job_id last;
    struct mr_error why;
    return (double)mr_sched_unread(((struct mr_shell *)ctx)->core, &last, &why);
}

static double small_waiting(void *ctx)
{
    return mr_intake_small_waiting(((struct mr_shell *)ctx)->intake);
}

static double is_paused(void *ctx)
{
    return totals_of(ctx).is_paused;
}

void mr_metrics_add(struct mr_shell *sh)
{
    static const struct {
        const char *name;
        const char *help;
        double (*ask)(void *ctx);
    } rows[] = {
        {"millrace_scheduler_tasks_done", "Tasks completed since the scheduler started.",
            tasks_done},
        {"millrace_scheduler_tasks_sent", "Tasks sent to workers since the scheduler started.",
            tasks_sent},
        {"millrace_scheduler_tasks_stolen", "Tasks asked back from busy workers.", steals},
        {"millrace_scheduler_tasks_recomputed", "Tasks run again because their value was lost.",
            recomputed},
        {"millrace_scheduler_placements_cached",
            "Tasks of loops and templates sent to where they ran the last time.", placed_cached},
        {"millrace_scheduler_placements_repaired",
            "Tasks of loops and templates whose worker of the last time is gone.", placed_repaired},
        {"millrace_scheduler_placements_scored", "Tasks whose place was chosen by data and load.",
            placed_scored},
        {"millrace_scheduler_roots_held",
            "Times that a root task with a large result found its object store too full.",
            roots_held},
        {"millrace_scheduler_jobs_running", "Jobs that have not ended.", jobs_running},
        {"millrace_scheduler_journal_unacknowledged",
            "Journal records that Redis does not have yet.", journal_behind},
        {"millrace_scheduler_jobs_unread",
            "Accepted jobs that the journal did not give back at the start.", jobs_unread},
        {"millrace_scheduler_small_jobs_unread",
            "Small submissions that wait for the thread that reads them.", small_waiting},
        {"millrace_scheduler_is_paused", "1 while dispatch waits for the journal.", is_paused},
    };
    sh->stats = mr_stats_new();
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++)
        mr_stats_gauge_ask(sh->stats, rows[i].name, rows[i].help, NULL, rows[i].ask, sh);
    mr_rpc_server_add_metrics(sh->server, sh->stats);
}
