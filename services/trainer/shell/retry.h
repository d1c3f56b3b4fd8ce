/* Requests that wait for Redis. They are sent again when Redis is back, until their time is over.
 * Knows when to try and when to give up; does not know what is asked.
 *
 *   begin ──▶ try ──sent──▶ (answer) ──ok──▶ end
 *              ▲  └─away─┐      │
 *              └── later ┴◀away─┘   … past its deadline: give_up, once; an answer may still come */
#pragma once

#include "services/trainer/shell/shell.h"

struct mr_waiting;

struct mr_waiting_ops {
    /* Sends it; MR_OK: an answer will come. */
    int (*send)(struct mr_waiting *w);
    /* Its time is over: fails the call. Not called after `end`. */
    void (*give_up)(struct mr_waiting *w);
    void (*free)(struct mr_waiting *w);
};

struct mr_waiting { /* first in the request's struct */
    struct mr_list node;
    struct mr_waiting_list *list;
    const struct mr_waiting_ops *ops;
    mr_time deadline; /* MR_NEVER once it has been given up */
    size_t bytes;
    bool is_sent;
    bool was_sent; /* an earlier try may have come through */
    bool is_given_up;
};

struct mr_waiting_list {
    struct mr_list all; /* in the order of their coming */
    mr_time again_at;   /* MR_NEVER: nothing is to be sent again */
    mr_time due;        /* not above the least deadline */
    size_t bytes, bytes_max;
};

void mr_waiting_list_init(struct mr_waiting_list *l, size_t bytes_max);
void mr_waiting_list_fini(struct mr_waiting_list *l); /* frees what is left */

/* Takes it and sends it, or keeps it for later. MR_ELIMIT: too much waits; it stays the caller's.
 */
int mr_waiting_begin(struct mr_waiting_list *l, struct mr_waiting *w);
/* The answer is here: true, it is to be read; false: it was away, and is sent again later. After
 * true and what it is good for: mr_waiting_end. */
bool mr_waiting_is_answered(struct mr_waiting *w, int err);
void mr_waiting_end(struct mr_waiting **w);
/* The same without freeing it: it may begin again, with another deadline. */
void mr_waiting_leave(struct mr_waiting *w);
mr_time mr_waiting_turn(struct mr_waiting_list *l, mr_time now);
/* Gives up all that waits, now. */
void mr_waiting_give_up(struct mr_waiting_list *l);

/* When to tell a caller, so that it hears UNAVAILABLE before its own timeout; at most a
 * minute from now. */
mr_time mr_waiting_deadline(const struct mr_rpc_call *call);
