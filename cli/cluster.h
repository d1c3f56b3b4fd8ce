/* Answers of Cluster as people see them. */
#pragma once

#include "base/buf.h"
#include "cli/client/client.h"

#define MR_CLUSTER_BYTES_MAX ((size_t)1 << 28)

/* The table of workers from a WorkersResponse, for a terminal of so many columns; 0: none. */
void mr_workers_write(yyjson_val *root, unsigned columns, struct mr_buf *out);
