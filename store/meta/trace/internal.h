/* The bytes of a block: the struct head below, little endian, and then `count` spans. A span is one
 * attempt of a task, and a lane is an executor thread. The block's first four bytes give its
 * version. Version 3 ("mtr3") is described first and is the only one that is written.
 *
 * A span is a byte of flags and then fields, in the order of the list below. A field is absent if
 * its flag is not set. Its numbers are varints (7 bits a byte, lowest first). A difference of two
 * numbers wraps and is zigzag-encoded (0, -1, 1, -2 …), so any uint64_t can be restored. Names
 * appear once: a field gives the number of a known name, or the next free number followed by the
 * new name. A time that the span does not have has no field.
 *
 * - LANE: the lane's number. A new lane adds its worker (number, or new number with name) and the
 *   slot. Absent: the lane of the span before.
 * - OP: the operator's number; a new one adds its name. Absent: the operator of the span before.
 * - INDEX: the index minus that of the span before, minus 1. Absent: one more than that of the span
 *   before.
 * - MORE: a byte of bits. Five bits (HAS_…) say which times the span has. The other bits say which
 *   of these follow: BYTES, the bytes of the value; TRIED, attempt and outcome; MEASURED, the
 *   measurements. Without MORE the span has all times, and none of the three follows. Without BYTES
 *   the bytes are those of the lane's last span. Without TRIED: attempt 1, outcome 0.
 * - The measurements: a varint of bits that says which numbers follow. RECEIVED is 0 if it is not
 *   known, else 1 plus the zigzag-encoded difference received minus sent. INPUTS is inputs minus
 *   sent. INPUT, OUTPUT, LATE, HELD, DELAYED, ROOM, TRAINING and RESTORE are plain numbers. LAST is
 *   index minus last_input. Without RECEIVED, received is the lane's last received. Without LAST,
 *   the difference is that of the span before, and 0 in the block's first span. Any other
 *   measurement without its bit is 0.
 * - SENT: sent minus the lane's last accounted. Absent: sent is the lane's last sent.
 * - READY: ready minus sent. Absent: ready is the lane's last ready.
 * - Two fields have no flag of their own: started minus the lane's last finished, and finished
 *   minus started (minus the lane's last finished if the span has no started).
 * - ACCOUNTED: accounted minus finished. Absent: accounted is the lane's last accounted.
 * - CPU: the processor time C. The run time R is finished minus started, or 0 if the span lacks one
 *   of them. D is the zigzag-encoded difference C minus R. The field is 2 C + 1 if C is smaller
 *   than D, otherwise 2 D. Absent: C equals R.
 *
 * A lane's next task usually begins right after its last one, and messages carry many tasks, so
 * most differences are small or absent. A new lane begins with the times of the last span's lane.
 *
 * Version 2 ("mtr2") has no measurements, and no last_input. Version 1 ("mtr1") has neither
 * measurements nor bytes of values; its field MORE is three varints: attempt, outcome, and the bits
 * HAS_…. */
#pragma once
#include "store/meta/trace/codec.h"

#include "base/assert.h"

#include <assert.h>

#define MAGIC 0x3372746du /* the characters "mtr3" */
/* The characters "mtr2": blocks of version 2, which are read and never written. */
#define MAGIC_2 0x3272746du
/* The characters "mtr1": blocks of version 1, which are read and never written. */
#define MAGIC_1 0x3172746du
#define KIND_SPANS 1
#define KIND_EVENTS 2   /* events.h; a reader of spans skips blocks of any other kind */
#define KIND_SAMPLES 16 /* samples.h */
/* one block has at most this many lanes, this many workers and this many operators */
#define NUMBERS_MAX 4096u
#define SPAN_BYTES_MAX (2 * (MR_TRACE_NAME_BYTES_MAX + 3) + 3 + 27 * 10)
#define SPAN_BYTES_MIN 2

enum { LANE = 1, OP = 2, INDEX = 4, MORE = 8, SENT = 16, READY = 32, ACCOUNTED = 64, CPU = 128 };
enum { HAS_READY = 1, HAS_SENT = 2, HAS_STARTED = 4, HAS_FINISHED = 8, HAS_ACCOUNTED = 16 };
#define HAS_ALL 31u
enum { BYTES = 32, TRIED = 64, MEASURED = 128 };
enum {
    RECEIVED = 1,
    INPUTS = 2,
    INPUT = 4,
    OUTPUT = 8,
    LATE = 16,
    HELD = 32,
    LAST = 64,
    DELAYED = 128,
    ROOM = 256,
    TRAINING = 512,
    RESTORE = 1024
};

struct head {
    uint32_t magic;
    uint32_t kind;
    uint32_t count;
    uint32_t bytes; /* bytes of all spans */
    uint64_t job;
    /* A time in ticks, to which the times of the first lane are relative. */
    uint64_t base;
    uint64_t finished_min, finished_max; /* ns */
    uint32_t index_min, index_max;
};
static_assert(sizeof(struct head) == 56, "the layout of a block");

struct lane {
    uint32_t worker; /* the worker's number in this block */
    uint32_t slot;
    /* Times of the lane's last span, in ticks. */
    uint64_t ready, sent, received, finished, accounted;
    uint64_t bytes;
};

/* records.c: blocks of events and samples. */
enum { F_RECORD = 1 }; /* field number of a record in the block */
/* Begins a block, which loses its content. */
void mr_trace__records_begin(struct mr_buf *block, uint32_t kind, mr_job_id segment);
/* Begin and end a record of the time `at`, in ns since 1970. */
size_t mr_trace__record_begin(struct mr_buf *block);
void mr_trace__record_end(struct mr_buf *block, size_t began, uint64_t at);
/* Passes each record of the block to `one`, which returns MR_OK, or an error that ends the reading.
 * A block of another kind has no records. MR_EFORMAT: the block is damaged. */
int mr_trace__records_decode(
    struct mr_str block, uint32_t kind, int (*one)(void *ctx, struct mr_str record), void *ctx);
