/* Items of a queue (the trainer's service Queues) under leases. A struct mr_taker has a thread of
 * its own, which takes items ahead and acknowledges them, so the user of the taker never waits for
 * the network. The user is one thread. A taker does not know the contents of an item. */
#pragma once

#include "base/id.h"
#include "base/time.h"
#include "host/stop.h"

#include <stdbool.h>

struct mr_credential;

#define MR_TAKER_OUT_MAX 768u /* limit of taken items that still wait for mr_taker_answer */

struct mr_taker;

struct mr_taken {
    char receipt[160];
    mr_object_id object; /* no id: the item has no object */
};

enum mr_taker_state {
    MR_TAKER_GOES_ON,
    MR_TAKER_FULL, /* the queue has no waiting item and no room: workers hold all items */
    MR_TAKER_LAST, /* the queue is closed and empty; leased items may still be returned to it */
    MR_TAKER_OVER, /* the queue is closed and empty, and no item is leased: none will come */
};

/* What becomes of an item: it is acknowledged (DONE), returned to the queue (BACK), or put aside as
 * unusable (DEAD). */
enum mr_taken_end { MR_TAKEN_DONE, MR_TAKEN_BACK, MR_TAKEN_DEAD };

/* Starts the thread. All arguments are lent for the taker's life. */
struct mr_taker *mr_taker_start(
    const char *trainer, const struct mr_credential *credential, const char *queue);
/* Returns unused items to the queue, sends the answers that are left, and ends the thread. Takes at
 * most 1 s, or 0.3 s if the task is `cancelled`. */
void mr_taker_stop(struct mr_taker **t, struct mr_stop cancelled);

/* Waits for the next item. True: `*out` is the item. False: no item came by `deadline`. */
bool mr_taker_next(struct mr_taker *t, mr_time deadline, struct mr_taken *out);
/* Returns the queue's last known state, which tells why mr_taker_next has returned false. */
enum mr_taker_state mr_taker_state(const struct mr_taker *t);
/* Answers an item. `reason`: why the item is unusable, with MR_TAKEN_DEAD; else NULL. */
void mr_taker_answer(
    struct mr_taker *t, const struct mr_taken *item, enum mr_taken_end end, const char *reason);
/* Sets the time that a batch takes, and the number of batches for which the rows of the largest
 * item suffice. The taker computes the length of leases from both. */
void mr_taker_set_pace(struct mr_taker *t, mr_duration batch, uint64_t item_batches);
