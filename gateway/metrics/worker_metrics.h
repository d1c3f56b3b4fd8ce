/* What the scheduler knows of the cluster and of each worker, as metrics. A worker's own metrics
 * cannot replace these: a worker may hang, and need not listen on a port. No I/O. */
#pragma once

#include "gateway/metrics/prometheus.h"
#include "millrace/v1/cluster.pb-c.h"

void mr_worker_metrics_add_cluster(
    struct mr_prometheus *p, const Millrace__V1__InfoResponse *info, const char *labels);
void mr_worker_metrics_add_worker(
    struct mr_prometheus *p, const Millrace__V1__WorkerInfo *worker, const char *labels);
