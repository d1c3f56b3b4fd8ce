/* Queues: the service. Everything here runs on the loop's thread. */
#pragma once

#include "services/trainer/shell/shell.h"

#define MR_QUEUE_NAME_BYTES_MAX 256

extern const struct mr_trainer_part mr_queues_part;

/* The queue changed; "" and all: perhaps every one did. Who waits looks again. */
void mr_queues_news(struct mr_queues *q, struct mr_str queue, bool all);
