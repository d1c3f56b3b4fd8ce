/* The store's session with the scheduler. The store registers, sends heartbeats, and holds and
 * releases the objects of jobs as the scheduler says. It connects again after every failure. All
 * functions run on the gRPC thread, except where a comment says otherwise. Without --scheduler
 * there is no session, and every function accepts NULL. */
#pragma once

#include "services/objectstore/call/state.h"

/* A running call of Persist, which writes an object and, if it is a collection, its parts. */
struct mr_persisting {
    struct mr_list node;
    mr_job_id job; /* the job that made the object; 0: none */
    /* bytes of the object and its parts that are neither written nor left to another store */
    uint64_t bytes;
};

struct mr_scheduler_session *mr_scheduler_session_open(struct mr_service *sv);
void mr_scheduler_session_close(struct mr_scheduler_session **link);
/* Makes the session tell the scheduler soon that this object, which a job held, is gone. Any thread
 * may call this function. */
void mr_scheduler_session_lost(struct mr_service *sv, mr_object_id id);
/* Connects, or sends a heartbeat, if that is due. Returns the time of the next call; MR_NEVER:
 * there is no session. */
mr_time mr_scheduler_session_turn(struct mr_scheduler_session *link, mr_time now);
struct mr_rpc_channel *mr_scheduler_session_channel(
    struct mr_scheduler_session *link); /* NULL: there is no session */
