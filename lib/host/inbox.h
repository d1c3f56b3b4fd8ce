/* A bounded queue of messages of one fixed size, from any number of threads to one owner thread. A
 * message is copied in and out, so it is a small struct, or a pointer that changes its owner with
 * the message. Senders take no lock. A sender makes a system call only if the owner sleeps.
 *
 *     struct mr_inbox *in = mr_inbox_new(4096, sizeof(struct event));
 *     n = mr_inbox_wait(in, deadline, batch, MR_ARRAY_LEN(batch));
 *
 * Without a waiter, the owner sleeps in a futex. With a waiter (host/waiter.h), the owner sleeps in
 * the waiter's function. Every mr_inbox_wait calls that function at least once, so neither messages
 * nor the waiter's events starve. */
#pragma once

#include "base/err.h"
#include "base/time.h"
#include "host/waiter.h"

#include <stdbool.h>

struct mr_inbox;

/* Makes an inbox for count_max items, rounded up to a power of two. */
struct mr_inbox *mr_inbox_new(uint32_t count_max, size_t item_bytes);
/* Frees the inbox. The caller makes sure that no thread uses the inbox any more. Items that are
 * still in the inbox are dropped. If the items own memory, the caller takes them out first. */
void mr_inbox_free(struct mr_inbox **inbox);

/* Sets how the owner sleeps. To be called before the first push and the first wait. */
void mr_inbox_set_waiter(struct mr_inbox *inbox, struct mr_waiter waiter);
/* Called by the owner before it frees what the waiter uses. After the return, no sender is inside
 * the waiter's `wake`, and no sender will call `wake` any more. Afterwards the owner sleeps in a
 * futex again. */
void mr_inbox_clear_waiter(struct mr_inbox *inbox);

/* Adds an item, on any thread, the owner's included. MR_ELIMIT: the inbox is full. MR_ESTATE: the
 * inbox is closed. After an error the item still belongs to the caller. */
int mr_inbox_push(struct mr_inbox *inbox, const void *item);

/* The two steps of mr_inbox_push. mr_inbox_push_quiet adds the item and lets the owner sleep;
 * mr_inbox_notify wakes the owner if the owner sleeps. With host/wake_counter.h a sender decides
 * when to call mr_inbox_notify. */
int mr_inbox_push_quiet(struct mr_inbox *inbox, const void *item);
void mr_inbox_notify(struct mr_inbox *inbox);

/* Like mr_inbox_push, but waits for room until `deadline`. MR_ETIMEOUT: there was no room until
 * then. Must not be called on the owner's thread. */
int mr_inbox_push_wait(struct mr_inbox *inbox, const void *item, mr_time deadline);

/* On the owner's thread: waits for items, copies up to count_max of them into `items`, and returns
 * their number. Items of one sender keep their order. Returns 0 when the deadline has passed, when
 * the inbox was woken or closed, or when a waiter's `wait` returned early. */
size_t mr_inbox_wait(struct mr_inbox *inbox, mr_time deadline, void *items, size_t count_max);
/* Like mr_inbox_wait, but never waits: returns 0 if the inbox is empty. */
size_t mr_inbox_take(struct mr_inbox *inbox, void *items, size_t count_max);
/* On the owner's thread, for an inbox without a waiter: like mr_inbox_wait without a deadline, but
 * polls for up to 0.4 ms before it sleeps if most of the last waits were shorter than that. Such a
 * poll avoids a wake-up, which costs tens of microseconds on a virtual machine. The poll yields the
 * processor each time it finds no item. If another thread then runs, the poll ends, and the owner
 * starts no new poll in the next 20 ms. */
size_t mr_inbox_wait_eager(struct mr_inbox *inbox, void *items, size_t count_max);

/* On any thread: the present or next wait returns early. */
void mr_inbox_wake(struct mr_inbox *inbox);
/* On any thread: closes the inbox. Later pushes are refused; items in the inbox can still be
 * taken. */
void mr_inbox_close(struct mr_inbox *inbox);
bool mr_inbox_is_closed(const struct mr_inbox *inbox);
/* True: the inbox has no item. On another thread than the owner's the answer may be out of date. */
bool mr_inbox_is_empty(const struct mr_inbox *inbox);
