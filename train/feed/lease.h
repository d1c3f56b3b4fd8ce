/* Items of a queue (the trainer's service Queues). A thread takes items ahead and acknowledges
 * them, so the user of this module never waits for the network. Knows Take, Ack, Nack and Get;
 * does not know the contents of an item. One thread uses a taker. */
#pragma once

#include "base/id.h"
#include "base/time.h"
#include "host/stop.h"

#include <stdbool.h>

struct mr_credential;

#define MR_TAKER_OUT_MAX 768u /* items taken and not answered: the next is not taken */

struct mr_taker;

struct mr_taken {
    char receipt[160];
    mr_object_id object; /* none: the item names none */
};

enum mr_taker_state {
    MR_TAKER_GOES_ON,
    MR_TAKER_FULL, /* nothing waits, and nothing can be put: others and we hold all there may be */
    MR_TAKER_LAST, /* closed and empty, but items are leased: one comes only if it is returned */
    MR_TAKER_OVER, /* closed and empty, and no item is leased */
};

enum mr_taken_end { MR_TAKEN_DONE, MR_TAKEN_BACK, MR_TAKEN_DEAD };

/* Texts are lent for the taker's life. */
struct mr_taker *mr_taker_start(
    const char *trainer, const struct mr_credential *credential, const char *queue);
/* Tells what it was told until now, 1 s at most, 0.3 s if the task is `cancelled`, and gives back
 * what was not taken from it. */
void mr_taker_stop(struct mr_taker **t, struct mr_stop cancelled);

bool mr_taker_next(struct mr_taker *t, mr_time deadline, struct mr_taken *out);
/* The latest known state; of interest when no item came. */
enum mr_taker_state mr_taker_state(const struct mr_taker *t);
/* `reason`: why it is dead, else NULL. */
void mr_taker_answer(
    struct mr_taker *t, const struct mr_taken *item, enum mr_taken_end end, const char *reason);
/* An item takes so long: its lease has to be longer. */
void mr_taker_set_pace(struct mr_taker *t, mr_duration item);
