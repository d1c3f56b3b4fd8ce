/* Names of the kinds of services as text. */
#include "base/service.h"

static const char *const services[] = {
    [MR_SERVICE_SCHEDULER] = "scheduler",
    [MR_SERVICE_OBJECTSTORE] = "objectstore",
    [MR_SERVICE_WORKER] = "worker",
    [MR_SERVICE_TRAINER] = "trainer",
    [MR_SERVICE_GATEWAY] = "gateway",
};

const char *mr_service_name(enum mr_service_kind service)
{
    return services[service];
}

bool mr_service_of(struct mr_str name, enum mr_service_kind *out)
{
    for (unsigned i = 0; i < MR_SERVICE_COUNT; i++) {
        if (!mr_str_eq(name, mr_str(services[i]))) continue;
        *out = (enum mr_service_kind)i;
        return true;
    }
    return false;
}
