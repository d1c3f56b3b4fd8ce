/* The parts of `millrace up`. Private to cli/up. up.c has the flags, and waits while the cluster
 * runs. dashboard.c runs a cluster that only shows past jobs. prepare.c does everything that
 * precedes the first process. children.c starts the processes. */
#pragma once

#include "base/buf.h"
#include "cli/up/rules.h"
#include "cli/up/supervisor.h"
#include "cli/up/grpc.h"
#include "cli/up/tls.h"
#include "host/config/config.h"

struct mr_up_config {
    uint64_t nodes;
    uint64_t workers;
    uint64_t threads;
    uint64_t memory;
    const char *dir;
    struct mr_rules rules;
    const char *listen;
    struct mr_up_tls tls;
    struct mr_up_grpc grpc;
    struct mr_texts plugin;
    struct mr_texts resource;
    mr_duration lease;
    bool quiet;
};

struct mr_up {
    struct mr_up_config config;
    char *dir;
    char *run;  /* directory of the sockets */
    char *home; /* result of mr_paths_home */
    char *redis;
    char *scheduler;
    char *trainer;
    char host[256];
    int port;
    int lock_fd;
    /* The listening socket; 0: none. The gateway inherits the socket, also when it is restarted. */
    int listen_fd;
    struct mr_supervisor *supervisor;
    struct mr_buf paths; /* char * items: paths that `config` points to, to be freed */
};

/* Makes paths absolute, creates the directory, its lock, the secret, the listening socket and the
 * certificates. */
int mr_up_prepare(struct mr_up *u, struct mr_error *e);
/* Frees what mr_up_prepare has made, and kills processes that still run. */
void mr_up_fini(struct mr_up *u);
/* Starts Redis, the object stores, the scheduler, the trainer, workers and the gateway, in this
 * order. */
int mr_up_start_all(struct mr_up *u, struct mr_error *e);
