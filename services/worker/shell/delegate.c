/* Decides when the network thread sleeps although reports come, and which thread acts for it
 * meanwhile (flat combining, host/loan_lock.h). Before the network thread sleeps, it sets how many
 * items have to be reported until a task can start (mr_worker_wake_after). Earlier reports stay in
 * the network thread's inbox and wake no thread. If the executor whose report completes the number
 * is idle, this executor becomes the delegate of the network thread. The delegate takes the loan
 * lock, empties the inbox, steps the core and hands out strands. The lock is free because the
 * network thread releases it while it sleeps. A delegate sends no messages. The network thread is
 * woken if messages are due soon, or if an effect is for the network thread alone. */
#include "services/worker/shell/delegate.h"

#include "base/assert.h"
#include "host/clock.h"
#include "services/worker/shell/effects.h"

#define NAP (32 * MR_MS)      /* limit of the first sleep while reports are left in the inbox */
#define NAP_MAX (128 * MR_MS) /* limit of the later sleeps */
#define BATCH 64
/* limit of turns in a row on a delegate's thread; a turn takes all reports and steps the core */
#define TURNS_MAX 8

/* Sets how many more reported items wake the network thread. False: they have come already. */
static bool count_on(struct mr_worker_shell *sh)
{
    uint32_t wake_after = sh->ending ? 0 : mr_worker_wake_after(sh->core);
    sh->delays_wake = wake_after > 0;
    return mr_wake_counter_wait_for(&sh->wake_counter, sh->reported + MR_MAX(wake_after, 1u));
}

/* Returns the time until which the network thread may sleep. If its last sleep lasted to its
 * limit, the tasks are slow, and the next limit is twice as long, but at most NAP_MAX. */
mr_time mr_worker_shell_sleep_deadline(struct mr_worker_shell *sh, mr_time deadline)
{
    bool delayed_wake = sh->delays_wake, waits = count_on(sh);
    /* Enough reports may be counted although none can be taken from the inbox: an executor is still
     * writing the first one. Then the network thread sleeps, because that executor may need the
     * network thread's processor. The executor wakes the network thread when its report is
     * counted. */
    if (!waits && !mr_inbox_is_empty(sh->inbox)) return 0;
    if (sh->delays_wake) {
        bool is_over = delayed_wake && sh->now >= sh->sleeps_until;
        sh->nap = is_over ? MR_MIN(2 * sh->nap, NAP_MAX) : NAP;
        deadline = MR_MIN(deadline, mr_time_after(sh->now, sh->nap));
    }
    sh->sleeps_until = deadline;
    return deadline;
}

static void on_sleep(void *ctx, bool on)
{
    struct mr_worker_shell *sh = ctx;
    if (on)
        mr_loan_lock_unlock(&sh->loan_lock);
    else
        mr_loan_lock_lock(&sh->loan_lock);
}

void mr_worker_shell_allow_delegates(struct mr_worker_shell *sh, bool on)
{
    const struct mr_rpc_side side = {.sleep = on ? on_sleep : NULL, .ctx = sh};
    if (on) mr_loan_lock_lock(&sh->loan_lock);
    mr_rpc_loop_set_side(sh->loop, side);
    if (!on) sh->delays_wake = false;
    if (!on) mr_loan_lock_unlock(&sh->loan_lock);
}

static void take_all(struct mr_worker_shell *sh)
{
    struct mr_item batch[BATCH];
    for (size_t n = BATCH; n == BATCH;) {
        n = mr_inbox_take(sh->inbox, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            mr_worker_shell_take(sh, &batch[i]);
    }
}

/* Called under the loan lock. True: the network thread may sleep on. False: it must be woken. */
static bool run_turns(struct mr_worker_shell *sh)
{
    for (int turns = 0; turns < TURNS_MAX; turns++) {
        sh->now = MR_MAX(sh->now, mr_clock_now());
        take_all(sh);
        if (!mr_worker_shell_delegate_turn(sh)) return false;
        bool waits = count_on(sh);
        mr_time at = MR_MIN(mr_worker_deadline(sh->core), sh->logs_at);
        if (!sh->delays_wake) return false;
        if (!waits || at <= sh->now) continue; /* more reports have come, or the core is not done */
        sh->nap = NAP;
        return sh->sleeps_until <= MR_MIN(at, mr_time_after(sh->now, NAP));
    }
    return false;
}

static bool run_as_delegate(struct mr_worker_shell *sh)
{
    if (!mr_loan_lock_try(&sh->loan_lock))
        return false; /* the network thread is awake, or another executor is its delegate */
    bool ok = sh->delays_wake && run_turns(sh);
    mr_loan_lock_unlock(&sh->loan_lock);
    return ok;
}

/* Takes a report of an executor that has a thread. Called on the executor's thread. */
void mr_worker_shell_on_report(void *ctx, const struct mr_run_report *r)
{
    struct mr_worker_shell *sh = ctx;
    struct mr_item item = {.kind = MR_ITEM_REPORT, .report = *r};
    if (mr_inbox_push_quiet(sh->inbox, &item)) (void)mr_inbox_push_wait(sh->inbox, &item, MR_NEVER);
    bool is_due = mr_wake_counter_add(&sh->wake_counter, r->fresh);
    /* this executor is idle, and could be given items that no other executor has begun */
    bool is_idle = r->idle && mr_wake_counter_has_spare(&sh->wake_counter);
    if (!is_due && !is_idle && r->quiet) return;
    if (r->idle && r->quiet && run_as_delegate(sh)) return;
    mr_inbox_notify(sh->inbox);
}
