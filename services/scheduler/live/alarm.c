#include "services/scheduler/live/alarm.h"

#include "base/defs.h"
#include "services/scheduler/live/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* A store is full if at least this share of its memory is in use. */
#define FULL_PERCENT 97u

static void MR_PRINTF(4, 5)
    add(struct mr_alarms *a, const char *kind, struct mr_str subject, const char *fmt, ...)
{
    if (a->count == MR_ALARMS_MAX) {
        a->more++;
        return;
    }
    struct mr_alarm *out = &a->at[a->count++];
    char text[MR_ALARM_TEXT_BYTES * 2];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    out->kind = kind;
    mr_live_text(subject, out->subject, sizeof out->subject);
    mr_live_text(mr_str(text), out->text, sizeof out->text);
}

static uint64_t seconds(mr_duration d)
{
    return (d + MR_SECOND / 2) / MR_SECOND;
}

mr_duration mr_alarm_silence(const struct mr_alarm_limits *l)
{
    return MR_MAX(l->lease / 3, l->heartbeat) + 2 * l->heartbeat;
}

static uint64_t percent_used(const struct mr_alarm_store *s)
{
    uint64_t percent = s->memory_bytes ? s->used_bytes / (s->memory_bytes / 100 + 1) : 0;
    return MR_MIN(percent, (uint64_t)100);
}

bool mr_alarm_is_full(const struct mr_alarm_store *s)
{
    return percent_used(s) >= FULL_PERCENT;
}

void mr_alarms_cluster(struct mr_alarms *a, const struct mr_alarm_cluster *c)
{
    if (c->is_redis_away)
        add(a, "redis_away", MR_STR("redis"),
            "Redis is away: no job is accepted and no job ends until it is back");
    if (c->is_recovering)
        add(a, "recovering", MR_STR(""),
            "The scheduler has restarted and waits for workers that have not returned yet");
    if (!c->workers) add(a, "no_worker", MR_STR(""), "No worker is connected: no task can run");
    if (!c->stores) add(a, "no_store", MR_STR(""), "No object store is connected: no job can run");
}

void mr_alarms_worker(struct mr_alarms *a, const struct mr_alarm_limits *l, struct mr_str name,
    bool is_connected, mr_duration silent)
{
    char shown[MR_ALARM_SUBJECT_BYTES];
    if (is_connected && silent < mr_alarm_silence(l)) return;
    mr_live_text(name, shown, sizeof shown);
    if (is_connected)
        add(a, "worker_silent", name,
            "Worker %s has been silent for %" PRIu64 " s, although its connection is open", shown,
            seconds(silent));
    else
        add(a, "worker_silent", name, "The connection to worker %s broke %" PRIu64 " s ago", shown,
            seconds(silent));
}

void mr_alarms_store(
    struct mr_alarms *a, const struct mr_alarm_limits *l, const struct mr_alarm_store *s)
{
    char shown[MR_ALARM_SUBJECT_BYTES], dir[MR_ALARM_SUBJECT_BYTES];
    mr_live_text(s->node, shown, sizeof shown);
    mr_live_text(s->disk_full, dir, sizeof dir);
    if (s->silent >= mr_alarm_silence(l))
        add(a, "store_silent", s->node,
            "The object store of node %s has been silent for %" PRIu64 " s", shown,
            seconds(s->silent));
    if (s->disk_full.n)
        add(a, "disk_full", s->node, "The disk of %s on node %s has no space left", dir, shown);
    if (mr_alarm_is_full(s))
        add(a, "store_full", s->node,
            "The object store of node %s is full: %" PRIu64 " %% of %" PRIu64 " MiB are in use",
            shown, percent_used(s), s->memory_bytes >> 20);
}

void mr_alarms_worker_lost(struct mr_alarms *a, struct mr_str name, mr_duration ago)
{
    char shown[MR_ALARM_SUBJECT_BYTES];
    mr_live_text(name, shown, sizeof shown);
    add(a, "worker_lost", name, "Worker %s was lost %" PRIu64 " s ago", shown, seconds(ago));
}

void mr_alarms_store_lost(struct mr_alarms *a, struct mr_str node, mr_duration ago)
{
    char shown[MR_ALARM_SUBJECT_BYTES];
    mr_live_text(node, shown, sizeof shown);
    add(a, "store_lost", node, "The object store of node %s was lost %" PRIu64 " s ago", shown,
        seconds(ago));
}

void mr_alarms_service_silent(struct mr_alarms *a, struct mr_str name, mr_duration silent)
{
    char shown[MR_ALARM_SUBJECT_BYTES];
    mr_live_text(name, shown, sizeof shown);
    add(a, "service_silent", name, "%s has been silent for %" PRIu64 " s", shown, seconds(silent));
}
