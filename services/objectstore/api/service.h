/* The gRPC side of the store, on the main thread: Objects and Metrics. */
#pragma once

#include "host/config/config.h"
#include "services/objectstore/control/shell.h"

struct mr_service;

struct mr_service_config {
    const struct mr_texts *listen;
    const char *advertise; /* NULL: the last of `listen` */
    const char *node;
    const char *dir;
    uint64_t directory; /* its number (disk/directory_lock.h); 0: none */
    const char *redis;
    const char *redis_password; /* NULL: none */
    const char *scheduler;
    const char *token_file;
    const char *secret_file;
};

/* Listens, and registers its callbacks at the shell. Call before the control thread starts. */
int mr_service_open(struct mr_ostore_shell *sh, const struct mr_service_config *config,
    struct mr_service **out, struct mr_error *e);
/* Serves until mr_service_stop, then drains. `self` is the store's own client, borrowed. */
int mr_service_run(struct mr_service *sv, struct mr_store *self, struct mr_error *e);
void mr_service_stop(struct mr_service *sv); /* any thread */
void mr_service_close(struct mr_service **sv);
