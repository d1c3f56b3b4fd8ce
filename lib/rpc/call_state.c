/* The tables of allowed moves of a call's states. call.c, answer.c, client.c and server.c make the
 * moves. */
#include "rpc/call_state.h"

#include "base/assert.h"

/* The call as a whole.
 *
 *   LIVE ──▶ OVER     client: the status came; messages that came before it are still delivered
 *    └─────▶ MUTED    this side cancelled the call, or (server) gRPC reported the call's end */
#define S(x) (1u << MR_RPC_##x)
static const unsigned lives[] = {
    [MR_RPC_LIVE] = S(OVER) | S(MUTED),
    [MR_RPC_OVER] = 0,
    [MR_RPC_MUTED] = 0,
};

/* The direction from this process to the peer. The send queue is empty when a call becomes
 * HALF_CLOSED or FINISHED. A call that ends early keeps its state; but FINISHED becomes ANSWERED
 * even after the end.
 *
 *              ┌──▶ HALF_CLOSING ──▶ HALF_CLOSED                client
 *   SENDING ───┤
 *              └──▶ FINISHING ─────▶ FINISHED ──▶ ANSWERED      server */
static const unsigned sendings[] = {
    [MR_RPC_SENDING] = S(HALF_CLOSING) | S(FINISHING),
    [MR_RPC_HALF_CLOSING] = S(HALF_CLOSED),
    [MR_RPC_HALF_CLOSED] = 0,
    [MR_RPC_FINISHING] = S(FINISHED),
    [MR_RPC_FINISHED] = S(ANSWERED),
    [MR_RPC_ANSWERED] = 0,
};

/* The direction from the peer to this process. Two kinds of calls go from DELIVERING to PEER_DONE,
 * because they take only one message. They are a server's call whose method takes one request, and
 * a client's call with `one_reply`. A call with `one_reply` skips READING, because the reply comes
 * with the status.
 *
 *      ┌───────one reply──────────┐
 *      │                          ▼
 *   OPENING ──▶ READING ◀──▶ DELIVERING
 *                  │              │
 *                  └─▶ PEER_DONE ◀┘ */
static const unsigned receivings[] = {
    [MR_RPC_OPENING] = S(READING) | S(DELIVERING),
    [MR_RPC_READING] = S(DELIVERING) | S(PEER_DONE),
    [MR_RPC_DELIVERING] = S(READING) | S(PEER_DONE),
    [MR_RPC_PEER_DONE] = 0,
};

void mr_rpc_life_move(struct mr_rpc_state *s, enum mr_rpc_life to)
{
    mr_assert(lives[s->life] & 1u << to);
    s->life = to;
}

void mr_rpc_sending_move(struct mr_rpc_state *s, enum mr_rpc_sending to)
{
    mr_assert(sendings[s->sending] & 1u << to);
    s->sending = to;
}

void mr_rpc_receiving_move(struct mr_rpc_state *s, enum mr_rpc_receiving to)
{
    mr_assert(receivings[s->receiving] & 1u << to);
    s->receiving = to;
}
