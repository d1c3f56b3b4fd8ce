/* The store's session with the scheduler. The store registers, sends heartbeats, and holds and
 * releases the objects of jobs as the scheduler says. It connects again after every failure. On
 * the gRPC thread. Without --scheduler there is no session, and every function accepts NULL. */
#pragma once

#include "services/objectstore/call/state.h"

struct mr_persisting { /* a Persist under way */
    struct mr_list node;
    mr_job_id job;  /* the job that made the object; 0: none */
    uint64_t bytes; /* in this store, not written yet */
};

struct mr_scheduler_session *mr_scheduler_session_open(struct mr_service *sv);
void mr_scheduler_session_close(struct mr_scheduler_session **link);
/* Any thread: tells the scheduler soon that this object, which a job held, is gone. */
void mr_scheduler_session_lost(struct mr_service *sv, mr_object_id id);
mr_time mr_scheduler_session_turn(
    struct mr_scheduler_session *link, mr_time now); /* when to come again */
struct mr_rpc_channel *mr_scheduler_session_channel(
    struct mr_scheduler_session *link); /* NULL: none */
