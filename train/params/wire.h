/* Reads those messages of the gRPC services Parameters and Collective that carry vectors. The data,
 * usually a megabyte, is not copied. Accepts what protobuf allows: fields in any order, unknown
 * fields, missing fields. The functions do no I/O and keep no state. */
#pragma once

#include "train/plan/limits.h"
#include "train/transport/transport.h"

struct mr_gradient_chunk {
    char session[MR_SESSION_MAX]; /* "": the field is missing or too long */
    uint32_t shard, worker;
    uint64_t incarnation, step, base_version;
    uint32_t restore_epoch;
    uint64_t count;
    uint32_t examples;
    struct mr_str data; /* points into the message */
};
int mr_gradient_chunk_read(struct mr_str bytes, struct mr_gradient_chunk *out, struct mr_error *e);

struct mr_parameter_chunk {
    bool has_version, has_count;
    uint64_t version, count;
    struct mr_str data;
};
int mr_parameter_chunk_read(
    struct mr_str bytes, struct mr_parameter_chunk *out, struct mr_error *e);

struct mr_ring_message {
    char session[MR_SESSION_MAX];
    uint32_t rank_from, generation;
    uint64_t step;
    uint32_t round;
    uint64_t count;
    struct mr_str data;
    uint32_t contributors;
};
int mr_ring_message_read(struct mr_str bytes, struct mr_ring_message *out, struct mr_error *e);
