/* A bounded queue of messages of one fixed size from any thread to one owner. A message is copied
 * in and out, so it is a small struct or a pointer that moves with it. Lock-free for the senders;
 * a sender makes a system call only when the owner sleeps.
 *
 *     struct mr_inbox *in = mr_inbox_new(4096, sizeof(struct event));
 *     n = mr_inbox_wait(in, deadline, batch, MR_ARRAY_LEN(batch));
 *
 * Alone, the owner sleeps in a futex. With a waiter it sleeps there instead, and every
 * mr_inbox_wait lets the waiter look at least once, so neither source starves the other. */
#pragma once

#include "base/err.h"
#include "base/time.h"
#include "host/waiter.h"

#include <stdbool.h>

struct mr_inbox;

struct mr_inbox *mr_inbox_new(uint32_t count_max, size_t item_bytes); /* rounded up to 2^n */
/* After every sender has stopped. Items still inside are dropped: take them first if they own. */
void mr_inbox_free(struct mr_inbox **inbox);

/* Before the first push and the first wait. */
void mr_inbox_set_waiter(struct mr_inbox *inbox, struct mr_waiter waiter);
/* Owner, before it frees what the waiter stands on: afterwards no sender calls or is inside its
 * wake. The inbox sleeps by itself again. */
void mr_inbox_clear_waiter(struct mr_inbox *inbox);

/* Any thread, the owner included. MR_ELIMIT when full, MR_ESTATE when closed: then the item is
 * still the caller's. */
int mr_inbox_push(struct mr_inbox *inbox, const void *item);

/* Push in two steps: push_quiet leaves the owner asleep, notify wakes it if it sleeps
 * (host/wake_counter.h says when). */
int mr_inbox_push_quiet(struct mr_inbox *inbox, const void *item);
void mr_inbox_notify(struct mr_inbox *inbox);

/* As push, but waits for room until `deadline` (MR_ETIMEOUT). Never from the owner. */
int mr_inbox_push_wait(struct mr_inbox *inbox, const void *item, mr_time deadline);

/* Owner: up to count_max items, in the order they came (per sender); 0 when the deadline passed,
 * the inbox was woken or closed. */
size_t mr_inbox_wait(struct mr_inbox *inbox, mr_time deadline, void *items, size_t count_max);
size_t mr_inbox_take(struct mr_inbox *inbox, void *items, size_t count_max); /* never waits */
/* Owner: as mr_inbox_wait without a deadline, but after short waits it looks again and again, up to
 * 0.4 ms, before it sleeps: a wake-up costs tens of microseconds on a virtual machine. It yields
 * between looks, and stops for 20 ms when somebody else wanted the processor. */
size_t mr_inbox_wait_eager(struct mr_inbox *inbox, void *items, size_t count_max);

void mr_inbox_wake(struct mr_inbox *inbox);  /* any thread: lets one wait return early */
void mr_inbox_close(struct mr_inbox *inbox); /* any thread: refuses pushes; items stay takable */
bool mr_inbox_is_closed(const struct mr_inbox *inbox);
bool mr_inbox_is_empty(const struct mr_inbox *inbox); /* a guess for all but the owner */
