/* The events of a cluster in virtual time, ordered by their times. Events of the same time are
 * taken in the order in which they were planned, so a run can be repeated exactly. No clock, no
 * I/O. One thread. Used by the tests' simulator and by the predictions of `millrace whatif`. */
#pragma once

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_virtual_message;

struct mr_virtual_event {
    mr_time at;
    uint64_t order; /* number in the order of planning, from 1 */
    int kind;       /* a value of the caller's own enum */
    uint32_t a, b;
    uint64_t c;
    struct mr_virtual_message *msg; /* owned by the event; NULL: none */
};

struct mr_virtual_queue { /* all zero: empty */
    struct mr_virtual_event *heap;
    uint32_t count, room;
    uint64_t order; /* number of the event that was planned last */
};

/* Plans an event for the time `at`. The queue sets `at` and `order` of the event. */
void mr_virtual_push(struct mr_virtual_queue *q, mr_time at, struct mr_virtual_event ev);
/* Removes the next event and sets `*out` to it. Returns false if the queue is empty. */
bool mr_virtual_pop(struct mr_virtual_queue *q, struct mr_virtual_event *out);
/* Frees the queue with its events and their messages. */
void mr_virtual_queue_fini(struct mr_virtual_queue *q);
