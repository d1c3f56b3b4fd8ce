#include "services/scheduler/telemetry/metrics.h"

#include "host/os/stats.h"
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
    return mr_parser_small_waiting(((struct mr_shell *)ctx)->parser);
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
        bool is_gauge; /* false: the metric is a counter, and its name ends in _total */
    } rows[] = {
        {"millrace_scheduler_tasks_done_total", "Tasks completed since the scheduler started.",
            tasks_done, false},
        {"millrace_scheduler_tasks_sent_total",
            "Tasks sent to workers since the scheduler started.", tasks_sent, false},
        {"millrace_scheduler_tasks_stolen_total", "Tasks asked back from busy workers.", steals,
            false},
        {"millrace_scheduler_tasks_recomputed_total",
            "Tasks run again because their value was lost.", recomputed, false},
        {"millrace_scheduler_placements_cached_total",
            "Tasks of loops and templates sent to their cached worker.", placed_cached, false},
        {"millrace_scheduler_placements_repaired_total",
            "Tasks of loops and templates placed anew because their cached worker is gone.",
            placed_repaired, false},
        {"millrace_scheduler_placements_scored_total",
            "Tasks whose worker was chosen by data and load.", placed_scored, false},
        {"millrace_scheduler_roots_held_total",
            "Times that a root task with a large result found its object store too full.",
            roots_held, false},
        {"millrace_scheduler_jobs_running", "Jobs that have not ended.", jobs_running, true},
        {"millrace_scheduler_journal_unacknowledged",
            "Journal records that Redis does not have yet.", journal_behind, true},
        {"millrace_scheduler_jobs_unread",
            "Accepted jobs that the journal did not give back at the start.", jobs_unread, true},
        {"millrace_scheduler_small_jobs_unread",
            "Small submissions that wait for the thread that reads them.", small_waiting, true},
        {"millrace_scheduler_is_paused", "1 while dispatch waits for the journal.", is_paused,
            true},
    };
    sh->stats = mr_stats_new();
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++)
        (rows[i].is_gauge ? mr_stats_gauge_ask : mr_stats_counter_ask)(
            sh->stats, rows[i].name, rows[i].help, NULL, rows[i].ask, sh);
    mr_rpc_server_add_metrics(sh->server, sh->stats);
}
