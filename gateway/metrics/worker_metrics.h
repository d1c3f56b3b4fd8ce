/* What the scheduler knows of its workers, as Prometheus text, beside what they say themselves: a
 * worker may be silent, and need not have a port. Pure. */
#pragma once

#include "base/buf.h"
#include "millrace/v1/cluster.pb-c.h"

void mr_census_info(const Millrace__V1__InfoResponse *info, struct mr_buf *out);
void mr_census_workers(const Millrace__V1__WorkersResponse *workers, struct mr_buf *out);
