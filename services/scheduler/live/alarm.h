/* The rules for alarms: which facts about the cluster need attention, and the sentence that says
 * so. No I/O and no clock: the caller tells how long ago something happened. */
#pragma once

#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_ALARMS_MAX 16
#define MR_ALARM_SUBJECT_BYTES 72
#define MR_ALARM_TEXT_BYTES 240

struct mr_alarm {
    const char *kind; /* as LiveAlarm.kind of cluster.proto */
    char subject[MR_ALARM_SUBJECT_BYTES];
    char text[MR_ALARM_TEXT_BYTES];
};

struct mr_alarms {
    struct mr_alarm at[MR_ALARMS_MAX];
    uint32_t count;
    uint32_t more; /* alarms for which there was no room */
};

struct mr_alarm_cluster {
    bool is_redis_away;
    bool is_recovering; /* workers that the journal names have not returned yet */
    uint32_t workers;   /* connected ones */
    uint32_t stores;
};

/* How long workers and stores may be silent. */
struct mr_alarm_limits {
    mr_duration heartbeat; /* a worker or store with work sends a heartbeat this often */
    mr_duration lease;     /* an idle one sends three in this time */
};

struct mr_alarm_store {
    struct mr_str node;
    mr_duration silent;                /* time since its last message */
    uint64_t memory_bytes, used_bytes; /* limit of its memory, and bytes in use */
    struct mr_str disk_full;           /* the directory whose disk is full; empty: none */
};

/* Returns how long a worker or store is silent before an alarm says so: the time between two
 * heartbeats of an idle one, and two heartbeats more. */
mr_duration mr_alarm_silence(const struct mr_alarm_limits *l);

bool mr_alarm_is_full(const struct mr_alarm_store *s); /* hardly any memory is left */

void mr_alarms_cluster(struct mr_alarms *a, const struct mr_alarm_cluster *c);
/* `silent`: time since the worker's last message. */
void mr_alarms_worker(struct mr_alarms *a, const struct mr_alarm_limits *l, struct mr_str name,
    bool is_connected, mr_duration silent);
void mr_alarms_store(
    struct mr_alarms *a, const struct mr_alarm_limits *l, const struct mr_alarm_store *s);
/* `ago`: time since the worker, or the object store of the node, was lost. */
void mr_alarms_worker_lost(struct mr_alarms *a, struct mr_str name, mr_duration ago);
void mr_alarms_store_lost(struct mr_alarms *a, struct mr_str node, mr_duration ago);
/* A gateway or trainer has sent no report for `silent`. */
void mr_alarms_service_silent(struct mr_alarms *a, struct mr_str name, mr_duration silent);
