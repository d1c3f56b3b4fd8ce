/* What an executor measures of an item besides its wall time: the CPU time of its thread, and the
 * delay. The delay is the time in which the thread could run but the kernel ran another thread.
 * Each reading of a clock is a system call, so the clocks are not read for short items. */
#include "services/worker/exec/internal.h"

#include "account/training_shares.h"
#include "base/defs.h"
#include "base/units.h"
#include "host/clock.h"

/* age at which a reading of the thread's CPU clock is renewed before a short item */
#define CPU_LOOK_AGE (250 * MR_US)
/* The delay is read only after an item that took this long. The delay of a shorter item counts as
 * 0. */
#define LATE_WORTH (250 * MR_US)

static void cpu_look(struct mr_executor *x, mr_time now)
{
    x->cpu_seen = mr_clock_thread_cpu();
    x->cpu_seen_at = now;
    x->cpu_short = 0;
}

mr_duration mr_executor_cpu_of(struct mr_executor *x, mr_time from, mr_time end)
{
    mr_duration took = end - from, before = x->cpu_short;
    if (took < MR_EXECUTOR_CPU_WORTH) {
        x->cpu_short += took;
        return took;
    }
    mr_duration seen = x->cpu_seen;
    cpu_look(x, end);
    mr_duration used = x->cpu_seen - MR_MIN(seen, x->cpu_seen);
    return MR_MIN(used - MR_MIN(used, before), took);
}

/* Returns how long the kernel ran other threads since the last reading, while the thread could
 * run. */
static mr_duration late_look(struct mr_executor *x)
{
    mr_duration seen = x->late_seen;
    if (!mr_clock_delay_read(x->late_fd, &x->late_seen)) return 0;
    return x->late_seen - MR_MIN(seen, x->late_seen);
}

/* As late_look, for the thread that hands out strands. */
static mr_duration network_late_look(struct mr_executor *x)
{
    mr_duration seen = x->network_late_seen;
    if (!mr_clock_delay_read(x->env->network_delay_fd, &x->network_late_seen)) return 0;
    return x->network_late_seen - MR_MIN(seen, x->network_late_seen);
}

/* Adds the part of `delay` to x->late_ahead that may lie after `since`, the beginning of the next
 * item. */
static void late_carry(struct mr_executor *x, mr_duration delay, mr_time since)
{
    if (delay < LATE_WORTH) return;
    mr_duration past = mr_clock_now() - since;
    x->late_ahead = MR_MIN(x->late_ahead + delay, past);
}

/* Returns how long the kernel delayed this thread and the thread that hands out strands since the
 * last item ended. The next item begins at `now`, but the delays of the threads are read later. So
 * some of the delay may lie in the next item. */
static mr_duration delay_before(struct mr_executor *x, mr_time now)
{
    mr_duration gap = x->ended_at && x->thread ? now - x->ended_at : 0;
    if (gap < LATE_WORTH) return 0;
    mr_duration own = late_look(x) + x->late_ahead, network = network_late_look(x);
    x->late_ahead = 0;
    late_carry(x, own - MR_MIN(own, gap), now);
    return MR_MIN(own + network, gap);
}

mr_duration mr_executor_times_begin(struct mr_executor *x, mr_time now)
{
    uint64_t took = x->took_ns[x->item->op];
    bool is_long = took >= MR_EXECUTOR_CPU_WORTH && x->cpu_seen_at != now;
    if (is_long || now - x->cpu_seen_at > CPU_LOOK_AGE) cpu_look(x, now);
    mr_duration delayed = delay_before(x, now);
    if (took >= LATE_WORTH) late_carry(x, late_look(x), now);
    return delayed;
}

mr_duration mr_executor_late_of(struct mr_executor *x, mr_duration took, mr_duration cpu)
{
    mr_duration idle = took - MR_MIN(cpu, took), ahead = x->late_ahead;
    x->late_ahead = 0;
    if (took >= LATE_WORTH && x->thread) (void)network_late_look(x); /* for delay_before */
    if (took < LATE_WORTH || !idle) return 0;
    mr_duration late = late_look(x) + ahead;
    late_carry(x, late - MR_MIN(late, idle), x->ended_at);
    return MR_MIN(late, idle);
}

void mr_executor_parts(
    struct mr_executor *x, mr_duration took, mr_duration late, mr_duration delayed)
{
    const struct mr_op_training_times *t = &x->training;
    bool is_role = t->feed || t->pull || t->push || t->wait;
    /* restore_ns is a part of input_ns, and room_ns is a part of output_ns */
    if (!x->input_ns && !x->output_ns && !late && !delayed && !is_role) return;
    const mr_duration shares[MR_TRAINING_PARTS] = {t->feed, t->pull, t->push, t->wait};
    x->item->result.has_parts = true;
    x->run->strand->parts[x->at] = (struct mr_strand_parts){.input_ns = x->input_ns,
        .restore_ns = x->restore_ns,
        .output_ns = x->output_ns,
        .room_ns = x->room_ns,
        .late_ns = late,
        .delayed_ns = delayed,
        .training = is_role ? mr_training_shares(shares, took) : 0};
}
