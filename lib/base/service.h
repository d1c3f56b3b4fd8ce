/* Kinds of services of a cluster. proto/methods.h lists the kinds that may call a method;
 * rpc/secrets.h gives each kind a secret of its own. */
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

const char *mr_service_name(enum mr_service_kind service); /* for example "scheduler" */
/* Sets `*out` to the kind of this name and returns true. False: no kind has this name. */
bool mr_service_of(struct mr_str name, enum mr_service_kind *out);
