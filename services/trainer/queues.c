/* The service. */
#include "services/trainer/queues.h"
void mr_queues_news(struct mr_queues *q, struct mr_str queue, bool all)
{
    (void)q;
    (void)queue;
    (void)all;
}
