/* The service Cluster: what the cluster has and can run. */
#pragma once

#include "services/scheduler/base/context.h"

extern const struct mr_rpc_service mr_cluster_service;
