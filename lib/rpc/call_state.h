/* The states of a call: one for the call itself and one for each direction. Only lib/rpc and its
 * tests include this header. Each state has a table of allowed moves (call_state.c); a move that is
 * not in the table is a panic. */
#pragma once

#include <stdbool.h>

enum mr_rpc_life {
    MR_RPC_LIVE,
    MR_RPC_OVER, /* nothing more can be sent; callbacks still come */
    /* Nothing more can be sent, and of the handler's callbacks only on_done follows. */
    MR_RPC_MUTED,
};

enum mr_rpc_sending {    /* the direction from this process to the peer */
    MR_RPC_SENDING,      /* messages may be queued */
    MR_RPC_HALF_CLOSING, /* client: the half close follows the queued messages */
    MR_RPC_HALF_CLOSED,  /* client: the half close was passed to gRPC */
    MR_RPC_FINISHING,    /* server: the status follows the queued messages */
    MR_RPC_FINISHED,     /* server: the status was passed to gRPC */
    MR_RPC_ANSWERED,     /* server: gRPC has sent the status */
};

enum mr_rpc_receiving { /* the direction from the peer to this process */
    MR_RPC_OPENING,     /* nothing is read yet */
    MR_RPC_READING,     /* the next message may be requested from gRPC */
    /* on_message is running; the next read waits until it returns. */
    MR_RPC_DELIVERING,
    MR_RPC_PEER_DONE, /* the peer sends no more messages */
};

struct mr_rpc_state {
    enum mr_rpc_life life;
    enum mr_rpc_sending sending;
    enum mr_rpc_receiving receiving;
};

void mr_rpc_life_move(struct mr_rpc_state *s, enum mr_rpc_life to);
void mr_rpc_sending_move(struct mr_rpc_state *s, enum mr_rpc_sending to);
void mr_rpc_receiving_move(struct mr_rpc_state *s, enum mr_rpc_receiving to);

static inline bool mr_rpc_state_is_over(const struct mr_rpc_state *s)
{
    return s->life != MR_RPC_LIVE;
}

/* True: the handler's callbacks for messages and for the peer's half close may be called. False for
 * a muted call, and after the server has given its status. */
static inline bool mr_rpc_state_may_tell(const struct mr_rpc_state *s)
{
    return s->life != MR_RPC_MUTED && s->sending < MR_RPC_FINISHING;
}
