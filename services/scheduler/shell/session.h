/* A session: the stream of one worker or object store. Shared by sessions.c, which opens and ends
 * sessions, and session_send.c, which sends batches. A batch is lazy if no process waits for it, so
 * it may be sent later. */
#pragma once

#include "base/buf.h"
#include "services/scheduler/core/batch_message.h"
#include "services/scheduler/telemetry/receipts.h"
#include "services/scheduler/shell/sessions.h"

struct mr_session {
    struct mr_list node; /* in the list of all sessions */
    struct mr_list lazy; /* in the list of sessions with a lazy batch */
    mr_time lazy_since;
    struct mr_shell *sh;
    mr_rpc_call_id call;
    uint64_t number; /* never reused */
    bool is_store;
    bool has_registered; /* the first message has come */
    bool has_joined;     /* the core has accepted the peer: slot and incarnation are valid */
    bool is_waiting;     /* a batch waits for on_writable */
    uint32_t slot;       /* the worker's slot, or the store's number */
    uint64_t incarnation;
    uint64_t seen; /* sequence number of the store's last heartbeat */
    struct mr_sched_numbers numbers;
    struct mr_session_facts facts;
    struct mr_receipts receipts;
    struct mr_store_facts store_facts;
    char *store_node; /* only for a store, like `directory` and `pid` */
    uint64_t directory;
    uint32_t pid;
};

struct mr_sessions {
    struct mr_shell *sh;
    struct mr_list all;
    struct mr_list lazy;        /* sessions with a lazy batch (session_send.h) */
    mr_time lazy_due;           /* no lazy batch has to be sent before this time */
    struct mr_session **worker; /* by slot */
    struct mr_session **store;  /* by number */
    uint64_t next;
    struct mr_buf wire; /* the message that is being encoded */
};
