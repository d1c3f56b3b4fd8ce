/* The kinds of services of a cluster: by which a method may be called (proto/methods.h), and which
 * have a secret of their own (rpc/secrets.h). */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum mr_service_kind {
    MR_SERVICE_SCHEDULER,
    MR_SERVICE_OBJECTSTORE,
    MR_SERVICE_WORKER,
    MR_SERVICE_TRAINER,
    MR_SERVICE_GATEWAY,
    MR_SERVICE_COUNT
};
#define MR_SERVICES_ALL ((1u << MR_SERVICE_COUNT) - 1)

const char *mr_service_name(enum mr_service_kind service);         /* "scheduler" */
bool mr_service_of(struct mr_str name, enum mr_service_kind *out); /* false: none of them */
