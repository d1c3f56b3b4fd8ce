/* Ids. One struct each, so that the compiler refuses a worker's where a task's belongs. Zero is
 * "none" in every one of them. Only types: plug-ins include this. */
#pragma once

#include <stdint.h>

typedef struct {
    uint64_t v;
} mr_job_id; /* tag << 32 | number; text form "j<tag>-<number>", e.g. "j1kq07ab-17" */

typedef struct {
    uint64_t v;
} mr_worker_id; /* one incarnation of one worker process: tag << 32 | number, by the scheduler */

typedef struct {
    uint64_t v;
} mr_node_id; /* one incarnation of one object store: random, by the store */

/* Names one byte string for ever. `maker` is drawn at random by the process that makes objects,
 * `number` counts from 1. Text form: 32 lower-case hexadecimal digits, maker first. */
typedef struct {
    uint64_t maker;
    uint64_t number;
} mr_object_id;
