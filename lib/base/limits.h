/* Every bound that more than one place knows. A bound that only one module knows stands in it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MR_PROTOCOL_VERSION 2 /* of the worker and store sessions */
#define MR_LAYOUT_VERSION 1   /* of values in memory, on disk and on the wire */

#define MR_KEY_BYTES_MAX 1024 /* a key, a name, a namespace */
#define MR_OP_NAME_BYTES_MAX 255
#define MR_ADDRESS_BYTES_MAX 512
#define MR_LABELS_MAX 64         /* labels of one job */
#define MR_LABEL_BYTES_MAX 256   /* name or value of one */
#define MR_DEPTH_MAX 64          /* nesting of JSON, of packs, of arguments */
#define MR_TASKS_MAX 16777216    /* of one job, after expansion */
#define MR_TASK_INPUTS_MAX 65536 /* references of one task */
#define MR_RETRIES_MAX 1000
#define MR_RESOURCES_MAX 16                          /* kinds of resources in one cluster */
#define MR_JOB_BODY_BYTES_MAX ((size_t)1 << 30)      /* one submitted graph */
#define MR_JOB_EXPAND_BYTES_MAX ((size_t)256 << 20)  /* keys, or arguments, that loops write */
#define MR_TRAINING_BODY_BYTES_MAX ((size_t)4 << 20) /* what describes one training */
#define MR_MESSAGE_BYTES_MAX ((size_t)16 << 20)      /* one gRPC message */
#define MR_CHUNK_BYTES ((size_t)1 << 20)             /* of every stream of bytes */
#define MR_INLINE_VALUE_BYTES_MAX ((size_t)4096)     /* a value that travels in messages */
#define MR_INLINE_MESSAGE_BYTES_MAX ((size_t)262144) /* all such values of one message */
#define MR_LITERAL_BYTES_MAX ((size_t)1 << 20)       /* one literal in a graph, packed */
#define MR_OBJECT_BYTES_MAX ((uint64_t)1 << 40)
#define MR_PUT_THREADS 4u /* that copy one large object, no more than there are processors */
#define MR_TENSOR_DIMS_MAX 16
#define MR_TASK_LOG_BYTES_MAX ((size_t)65536) /* the kept end of a failed task's output */
#define MR_WORKERS_MAX 65535
#define MR_NODES_MAX 4096
#define MR_SLOTS_MAX 1024          /* executor threads of one worker */
#define MR_USES_OF_LOOP (1u << 31) /* in the uses of a task on its way to a worker */
