/* The service Queues. All functions run on the loop's thread. */
#pragma once

#include "services/trainer/shell/shell.h"

#define MR_QUEUE_NAME_BYTES_MAX 256

extern const struct mr_trainer_part mr_queues_part;

/* Called when the queue has changed: requests that wait try again. If `all`, `queue` is "", and any
 * queue may have changed. */
void mr_queues_news(struct mr_queues *q, struct mr_str queue, bool all);
