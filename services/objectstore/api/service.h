/* The gRPC side of the store: the services Objects and Metrics, the session with the scheduler, and
 * copies from other stores. All of this runs on the main thread. */
#pragma once

#include "services/objectstore/call/state.h"

/* Starts to listen, and gives `sh` its callbacks. Called before the control thread starts. */
int mr_service_open(struct mr_ostore_shell *sh, const struct mr_service_config *config,
    struct mr_service **out, struct mr_error *e);
/* Serves until mr_service_stop is called, then drains. `self`: the store's own client, borrowed. */
int mr_service_run(struct mr_service *sv, struct mr_store *self, struct mr_error *e);
/* Ends mr_service_run. Any thread may call this function. */
void mr_service_stop(struct mr_service *sv);
void mr_service_close(struct mr_service **sv);
