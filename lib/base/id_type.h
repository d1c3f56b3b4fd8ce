/* Types of ids. Each kind of id is a struct of its own, so that the compiler refuses a worker id
 * where a task id belongs. The value 0 means "none" for every kind. Plug-ins include this header,
 * so this header declares types and no functions. */
#pragma once

#include <stdint.h>

/* Job id: tag << 32 | number, where id.h explains the tag. As text "j<tag>-<number>", for example
 * "j1kq07ab-17". */
typedef struct {
    uint64_t v;
} mr_job_id;

/* Worker id: one start of one worker process. The scheduler gives out the id. Like a job id, it is
 * tag << 32 | number. */
typedef struct {
    uint64_t v;
} mr_worker_id;

/* Node id: one start of one object store, which draws the number at random. */
typedef struct {
    uint64_t v;
} mr_node_id;

/* Object id. An object is an immutable byte string. An object id is never used twice. Each process
 * that makes objects draws `maker` at random once, and counts `number` from 1. As text: 32
 * lower-case hexadecimal digits, `maker` first. */
typedef struct {
    uint64_t maker;
    uint64_t number;
} mr_object_id;
