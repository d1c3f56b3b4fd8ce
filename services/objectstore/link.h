/* The store's session with the scheduler: registers, beats, and does as told with what jobs hold.
 * Reconnects for ever. On the gRPC thread; without --scheduler it does nothing. */
#pragma once

#include "services/objectstore/op.h"

struct mr_scheduler_link *mr_scheduler_link_open(struct mr_service *sv);
void mr_scheduler_link_close(struct mr_scheduler_link **link);
mr_time mr_scheduler_link_turn(
    struct mr_scheduler_link *link, mr_time now); /* when to come again */
