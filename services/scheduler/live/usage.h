/* What the processes of the cluster use: the latest numbers of each process, and samples of these
 * numbers. The samples go to the trace writer once a second, or earlier if there are many. The
 * numbers of workers and object stores come with their heartbeats. Gateways and trainers call
 * Cluster.ReportUsage. The scheduler adds a sample of itself only when samples of other processes
 * go to the writer. So an idle cluster has few samples. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/live/rate.h"
#include "store/meta/trace/samples.h"

#define MR_USAGE_NAME_BYTES 160
#define MR_USAGE_SERVICES_MAX 64u

struct mr_process_usage {
    mr_time heard; /* when the process last joined or sent numbers; 0: never */
    struct mr_counters last;
    struct mr_rates rates;
    uint64_t memory_bytes, spilled_bytes;
    uint32_t queued;
};

struct mr_store_usage {
    struct mr_process_usage process;
    uint64_t budget_bytes, used_bytes, objects;
    char disk_full[128]; /* the directory whose disk is full; "": none */
};

struct mr_service_usage { /* a gateway, or a trainer */
    struct mr_process_usage process;
    enum mr_sample_kind kind;
    uint32_t pid;
    char name[MR_USAGE_NAME_BYTES];
    char node[MR_USAGE_NAME_BYTES];
};

struct mr_usage *mr_usage_new(const struct mr_shell *sh);
void mr_usage_free(struct mr_usage **u);

/* A new worker has the slot, or a new object store has the number. What is known of the one before
 * is dropped. */
void mr_usage_worker_joined(struct mr_shell *sh, uint32_t slot);
void mr_usage_store_joined(struct mr_shell *sh, uint32_t number, uint64_t budget_bytes);
void mr_usage_worker(struct mr_shell *sh, uint32_t slot, const struct mr_ws_heartbeat *h);
void mr_usage_store(
    struct mr_shell *sh, uint32_t number, const Millrace__V1__StoreHeartbeat *heartbeat);
/* Takes the report of a gateway or trainer. MR_EINVAL: its kind is not known, or its node's name is
 * too long. MR_ELIMIT: too many services report. */
int mr_usage_report(
    struct mr_shell *sh, const Millrace__V1__ReportUsageRequest *report, struct mr_error *e);

/* The usage is lent until the next call of a function above. */
const struct mr_process_usage *mr_usage_of_worker(const struct mr_shell *sh, uint32_t slot);
const struct mr_store_usage *mr_usage_of_store(const struct mr_shell *sh, uint32_t number);
const struct mr_process_usage *mr_usage_of_self(const struct mr_shell *sh);
/* Returns the i-th gateway or trainer; NULL: there are fewer. */
const struct mr_service_usage *mr_usage_service(const struct mr_shell *sh, uint32_t i);

mr_time mr_usage_deadline(const struct mr_shell *sh);
void mr_usage_tick(struct mr_shell *sh, mr_time now);
