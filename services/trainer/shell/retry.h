/* Requests that wait for Redis. They are sent again when Redis is back, until their deadline. Knows
 * when to retry and when to give up; does not know what a request asks for.
 *
 *   begin ──▶ try ──sent──▶ (answer) ──ok──▶ end
 *              ▲  └─away─┐      │
 *              └── later ┴◀away─┘   … after its deadline: give_up, once; an answer may still come
 */
#pragma once

#include "services/trainer/shell/shell.h"

struct mr_waiting;

struct mr_waiting_ops {
    /* Sends the request. MR_OK: an answer will come. */
    int (*send)(struct mr_waiting *w);
    /* Fails the gRPC call that made the request. Called at most once: when the deadline has passed,
     * or by mr_waiting_give_up. Not called after mr_waiting_end. */
    void (*give_up)(struct mr_waiting *w);
    void (*free)(struct mr_waiting *w);
};

struct mr_waiting { /* has to be the first member of the request's struct */
    struct mr_list node;
    struct mr_waiting_list *list;
    const struct mr_waiting_ops *ops;
    mr_time deadline; /* MR_NEVER after give_up was called */
    size_t bytes;
    bool is_sent;
    bool was_sent; /* an earlier try may have succeeded */
    bool is_given_up;
};

struct mr_waiting_list {
    struct mr_list all; /* all requests, in order of arrival */
    mr_time again_at;   /* time of the next retry; MR_NEVER: none is due */
    mr_time due;        /* not later than the earliest deadline */
    size_t bytes, bytes_max;
};

void mr_waiting_list_init(struct mr_waiting_list *l, size_t bytes_max);
/* Frees the requests that are left. */
void mr_waiting_list_fini(struct mr_waiting_list *l);

/* Takes the request, and sends it now or later. MR_ELIMIT: the waiting requests have too many
 * bytes, and the request still belongs to the caller. */
int mr_waiting_begin(struct mr_waiting_list *l, struct mr_waiting *w);
/* Called when an answer has come. True: the caller uses the answer and then calls mr_waiting_end.
 * False: Redis was away, and the request is sent again later. */
bool mr_waiting_is_answered(struct mr_waiting *w, int err);
void mr_waiting_end(struct mr_waiting **w);
/* Does the same as mr_waiting_end, but does not free the request, which may begin again with
 * another deadline. */
void mr_waiting_leave(struct mr_waiting *w);
mr_time mr_waiting_turn(struct mr_waiting_list *l, mr_time now);
/* Gives up all waiting requests at once. */
void mr_waiting_give_up(struct mr_waiting_list *l);

/* Returns when to fail a call with UNAVAILABLE: before the caller's own deadline, and in a minute
 * at the latest. */
mr_time mr_waiting_deadline(const struct mr_rpc_call *call);
