/* Limits that several folders use. A limit that one file alone uses is defined in that file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The version of the protocol on the gRPC streams between workers or object stores and the
 * scheduler. */
#define MR_PROTOCOL_VERSION 2
/* The version of the layout of values in memory, in files and in messages. */
#define MR_LAYOUT_VERSION 1

#define MR_KEY_BYTES_MAX 1024 /* bytes of a key, a name or a namespace */
#define MR_OP_NAME_BYTES_MAX 255
#define MR_ADDRESS_BYTES_MAX 512
#define MR_LABELS_MAX 64         /* labels of one job */
#define MR_LABEL_BYTES_MAX 256   /* bytes of a label's name, and of its value */
#define MR_DEPTH_MAX 64          /* nesting of JSON, of packed values, of arguments */
#define MR_TASKS_MAX 16777216    /* tasks of one job, after loops and templates are expanded */
#define MR_TASK_INPUTS_MAX 65536 /* references to inputs of one task */
#define MR_RETRIES_MAX 1000
#define MR_RESOURCES_MAX 16                     /* kinds of resources in one cluster */
#define MR_JOB_BODY_BYTES_MAX ((size_t)1 << 30) /* bytes of one submitted graph */
/* Bounds the bytes of all keys that loops expand to, and separately the bytes of all arguments that
 * loops expand to. */
#define MR_JOB_EXPAND_BYTES_MAX ((size_t)256 << 20)
#define MR_TRAINING_BODY_BYTES_MAX ((size_t)4 << 20) /* bytes of the document of one training */
#define MR_MESSAGE_BYTES_MAX ((size_t)16 << 20)      /* bytes of one gRPC message */
#define MR_CHUNK_BYTES ((size_t)1 << 20)             /* bytes of one chunk in a stream of bytes */
/* A value up to this size travels inside messages instead of an object store. */
#define MR_INLINE_VALUE_BYTES_MAX ((size_t)4096)
#define MR_INLINE_MESSAGE_BYTES_MAX ((size_t)262144) /* bytes of all values inside one message */
/* Bytes of the largest literal of a graph, as MessagePack. */
#define MR_LITERAL_BYTES_MAX ((size_t)1 << 20)
#define MR_OBJECT_BYTES_MAX ((uint64_t)1 << 40)
/* At most this many threads copy one large object into shared memory, and at most one thread for
 * each processor. */
#define MR_PUT_THREADS 4u
#define MR_TENSOR_DIMS_MAX 16
/* Of a failed task's output, this many bytes at the end are kept. */
#define MR_TASK_LOG_BYTES_MAX ((size_t)65536)
#define MR_WORKERS_MAX 65535
#define MR_NODES_MAX 4096
#define MR_SLOTS_MAX 1024 /* executor threads of one worker */
/* long-running tasks that run at the same time on one worker, outside its slots */
#define MR_LONG_TASKS_MAX 64
/* A flag in the count of uses of a value that the scheduler sends to a worker: a loop uses the
 * value. */
#define MR_USES_OF_LOOP (1u << 31)
