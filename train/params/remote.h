/* The client of one shard over gRPC. Pulls run on the caller's thread, pushes on a thread of this
 * module. Private to train/params: client.h is the interface of roles. */
#pragma once

#include "train/transport/transport.h"

struct mr_params_remote;

struct mr_params_remote_options {
    const char *session, *address;
    uint32_t shard, worker;
    uint64_t incarnation;
    uint64_t count; /* length of the shard, in floats */
    const struct mr_flag *stop;
};

struct mr_params_remote *mr_params_remote_open(const struct mr_params_remote_options *o);
void mr_params_remote_close(struct mr_params_remote **r);

/* Pulls the shard into `to`. `*version` changes only with MR_OK; after an error, `to` may have a
 * part of a vector. */
int mr_params_remote_pull(struct mr_params_remote *r, uint64_t version_min, uint32_t restore_epoch,
    mr_time deadline, float *to, uint64_t *version, struct mr_error *e);

struct mr_params_job { /* one push */
    const float *grad; /* lent until mr_params_remote_wait has returned MR_OK */
    uint32_t serial;
    uint32_t examples;
    uint32_t restore_epoch;
    uint64_t step, base_version;
};
/* Queues a push and returns without waiting. `buffer`: 0 or 1, the client's gradient buffer. */
void mr_params_remote_push(
    struct mr_params_remote *r, uint32_t buffer, const struct mr_params_job *j);
/* Waits until the server has answered the push with this serial. `*dropped`: the server has dropped
 * the gradient. */
int mr_params_remote_wait(struct mr_params_remote *r, uint32_t buffer, uint32_t serial,
    mr_time deadline, bool *dropped, struct mr_error *e);
