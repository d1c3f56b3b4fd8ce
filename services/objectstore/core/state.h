/* The tables of the core. Private to services/objectstore/core. Rows are known by number, from 1; 0
 * means none. A client writes a draft into one of its segments and then seals the draft, which
 * makes it an object. The cluster's directory, in Redis, tells which nodes have an object. EVICT,
 * WRITE and RECLAIM are effects of the core, and EVICT_DONE is an event (event.h). */
#pragma once

#include "base/assert.h"
#include "services/objectstore/core/core.h"
#include "store/arena/control.h"
#include "store/arena/layout.h"

#include <string.h>

/*  WANTED ──▶ FETCHING ──▶ RESIDENT ◀──▶ EVICTING ──▶ SPILLED ──▶ FETCHING
 *     └────────────seal───────▲
 * A RESIDENT or EVICTING object that ends goes to DOOMED, and to FREE once no client has it pinned.
 * An object in another state goes directly to FREE. object.c lists all other moves (`allowed`). */
enum place {
    PLACE_FREE,
    PLACE_WANTED,   /* clients wait for the object, which is not here */
    PLACE_FETCHING, /* a restore or a pull is running */
    PLACE_RESIDENT,
    PLACE_EVICTING, /* an EVICT has no EVICT_DONE yet */
    PLACE_SPILLED,
    PLACE_DOOMED, /* ended, but in memory: a client has it pinned, or EVICT has no answer yet */
};

enum disk {
    DISK_NONE,
    DISK_WRITING,
    DISK_WRITTEN,
};

enum list { /* the list that an object is in */
    LIST_NONE,
    /* objects in memory of at most MR_SMALL_BYTES_MAX bytes, least recently used first */
    LIST_SMALL,
    /* larger objects in memory, least recently used first; they tend to leave before small ones */
    LIST_LARGE,
    LIST_DOOMED,
    LIST_COUNT,
};

struct object {
    mr_object_id id;
    enum place place;
    enum disk disk;
    enum list list;
    bool being_written; /* a WRITE of the object has no answer yet */
    bool persisted;     /* the object's file outlives the process */
    bool to_persist;    /* the object is to be written to a file that outlives the process */
    /* the object is leaving memory: its EVICT, or the WRITE before the EVICT, has no answer yet */
    bool leaving;
    bool evict_asked; /* an EVICT of the object has no answer yet */
    /* the object is freed with its last holder although it is persisted: it has or had a name, or a
     * drain wrote it */
    bool by_holders;
    bool replica;     /* the object is a copy of another node's; it is dropped instead of written */
    bool in_place;    /* the object has a room, which is a place in a segment */
    bool placed;      /* the cluster's directory has an entry for it */
    uint32_t segment; /* number of the segment */
    uint64_t offset;
    uint64_t bytes;
    uint64_t room; /* if in_place: bytes of the object's room, its place in the segment */
    uint64_t sequence;
    mr_time created;
    mr_time used; /* the last use that the store knows of */
    /* time of the last attempt to evict or to write the object; after a write that failed, but not
     * for lack of space, a time in the future */
    mr_time tried;
    /* a replica: time of its last use; an unvouched object: time when it was offered */
    mr_time unheld_since;
    bool unvouched;        /* the object's holders may no longer exist; see mr_ostore_unvouched */
    bool offered;          /* the scheduler was asked whether it claims the object */
    uint32_t maker;        /* the client that sealed the object */
    uint32_t source;       /* source of the running pull */
    uint32_t other_source; /* source that is tried if the running pull fails; 0: none */
    /* if in_place: the control group that is charged for the room; 0: no group with a limit */
    uint32_t group;
    struct mr_store_owner owner;
    uint32_t pins; /* pins that the store took for clients */
    uint32_t holders;
    uint32_t links;      /* first link of the object: a holder, or the pins of a client */
    uint32_t waiters;    /* first waiter of the object: a GET or PERSIST without an answer */
    uint32_t prev, next; /* neighbours in the list that `list` names; `next` also links free rows */
    /* neighbours in a list: the objects of `group` that are in LIST_SMALL or LIST_LARGE */
    uint32_t group_prev, group_next;
};

/* True: the object is in memory, on disk, or being restored, and is not deleted. */
static inline bool mr_ostore_is_here(const struct object *x)
{
    if (x->place == PLACE_FETCHING) return x->disk == DISK_WRITTEN;
    return x->place == PLACE_RESIDENT || x->place == PLACE_EVICTING || x->place == PLACE_SPILLED;
}

enum { LINK_PIN = 100 }; /* a kind of link besides those of enum mr_store_holder_kind */

struct link { /* one holder of an object, or all pins of one client */
    uint32_t kind;
    uint32_t count; /* number of pins */
    uint64_t key;   /* key of the holder; of pins: the client's number */
    uint32_t next;
};

struct waiter { /* a GET or a PERSIST that has no answer yet */
    uint32_t object;
    uint32_t client;
    uint64_t request;
    mr_time deadline;
    bool persist;
    uint32_t next;               /* next waiter of the object; if the row is free: next free row */
    uint32_t all_prev, all_next; /* neighbours among all waiters */
};

struct segment {
    uint32_t number; /* 0: free */
    uint32_t client; /* number of the client that may write to it; kept when that client goes */
    /* the client has gone, or has returned the segment, which is closed when it is empty */
    bool orphaned;
    uint64_t bytes;
    uint32_t live;  /* number of objects whose bytes are in this segment */
    uint32_t group; /* the control group that is charged; 0: no group with a limit */
    uint32_t next;  /* next slot in the free list */
};

/* A control group with a memory limit. The group is charged for the segments of its clients, even
 * after these clients have gone. */
struct group {
    uint64_t id;          /* 0: the slot is free */
    uint64_t limit_bytes; /* the group's memory limit */
    uint64_t own_bytes;   /* memory that the group's clients themselves use, besides segments */
    uint32_t clients;     /* number of connected clients */
    uint64_t bytes;       /* sum of the group's segments */
    uint64_t leaving;     /* sum of `room` of the group's objects that are `leaving` */
    uint32_t head, tail;  /* the group's objects in memory, least recently used first */
    /* bytes that the group's first waiting grant lacks in this step; 0: no grant waits */
    uint64_t lacking;
    uint64_t wanted; /* bytes that all waiting grants of the group ask for in this step */
    /* bytes of a refused grant, which is expected to be tried again before owed_until */
    uint64_t owed;
    mr_time owed_until;
    mr_time stuck_since;   /* like stuck_since of struct mr_ostore, for this group */
    mr_time reclaim_again; /* like reclaim_again of struct mr_ostore, for this group */
};

struct client {
    uint32_t number;
    uint64_t maker;
    bool internal;
    uint32_t group;     /* the client's control group; 0: no group with a limit */
    uint64_t own_bytes; /* memory that the client itself uses, besides its segments */
    bool reclaiming;    /* RECLAIM was sent; the RETURN that ends the answer has not come */
    /* one of the client's segments may be empty. An answer to RECLAIM that returns no segment
     * clears this flag */
    bool may_have_empty;
    mr_time reclaim_asked; /* time when RECLAIM was sent; for a while, grants wait for the answer */
    bool gave;             /* the client has returned a segment in answer to the last RECLAIM */
};

struct grant { /* a client's request for a segment; the request waits for memory */
    uint32_t client;
    uint64_t request;
    uint64_t bytes_min; /* the least that the client can use */
    uint64_t bytes;     /* what the client asked for */
    mr_time since, deadline;
};

#define GRANTS_MAX 1024u
#define RETRY_NS (20 * MR_MS) /* time between two attempts to evict a pinned object */
/* limit of the time between two attempts to evict a deleted object that was found pinned */
#define DOOMED_WAIT_MAX MR_SECOND
#define RECLAIM_AGAIN_NS (300 * MR_MS)
/* limit of the wait for a client's answer to RECLAIM */
#define RECLAIM_WAIT_NS (30 * MR_MS)
/* the same limit while the clients' segments without objects would give enough room */
#define RECLAIM_WAIT_MAX_NS MR_SECOND
/* a grant that has waited for this time is refused, if no object can leave and no memory was
 * freed */
#define STUCK_NS (500 * MR_MS)
/* extra time of a get whose object is being restored, beyond its own timeout */
#define WAIT_MORE_NS (10 * MR_SECOND)
/* a task that found no room is expected to try again within this time */
#define OWED_NS (2 * MR_SECOND)
#define SPILLS_MAX 16u /* no spill starts while this many writes are running */
#define SCAN_MAX 4096u /* limit of objects that one search examines */
/* limit of objects that one search examines while SPILLS_MAX writes are running */
#define SCAN_FULL 64u
/* after a write that failed, but not for lack of space: time before the next write of the same
 * object */
#define DISK_RETRY_NS (5 * MR_SECOND)
#define DISK_PROBE_NS (250 * MR_MS) /* time between two attempts to write to a full disk */
#define AHEAD_SHARE 8u              /* at most 1/8 of memory is prefetched at a time */

struct mr_ostore {
    struct mr_ostore_config config;
    struct mr_arena arena;
    struct mr_index by_id;
    mr_time now;
    struct mr_ostore_effects *fx; /* effects of the running step */

    struct object *objects;
    uint32_t objects_free;
    uint32_t objects_used; /* the highest number ever used */
    uint32_t objects_count;
    uint64_t sequence;
    struct {
        uint32_t head, tail, count;
    } lists[LIST_COUNT];

    struct link *links;
    uint32_t links_free, links_used;
    struct waiter *waiters;
    uint32_t waiters_free, waiters_used, waiters_head;
    mr_time waiters_deadline; /* not later than the earliest deadline of a waiter */

    struct segment *segments;
    uint32_t segments_free, segments_used, segment_number;
    uint32_t segments_count;
    uint64_t committed_bytes;
    uint32_t *segment_slots; /* by number of a segment: its index in `segments` */
    struct client *clients;  /* without gaps */
    uint32_t clients_count;
    struct group *groups;             /* the first group is at 1 */
    uint32_t groups_max, groups_used; /* `groups_used`: the highest number ever used */
    struct grant grants[GRANTS_MAX];  /* a queue, the oldest grant first */
    uint32_t grants_count;

    uint32_t writes;     /* number of running writes */
    bool disk_full;      /* a write found no space, and no write has succeeded since */
    mr_time disk_probe;  /* while the disk is full: earliest time to spill one object */
    mr_time disk_failed; /* time when a write last found the disk full */
    uint64_t write_failures;
    uint64_t rooms_bytes;   /* sum of the rooms (places in segments) of objects in memory */
    uint64_t coming_bytes;  /* bytes of the objects that are being restored */
    uint64_t leaving_bytes; /* sum of `room` of all objects that are `leaving` */
    mr_time retry; /* time of the next attempt to evict objects or to free doomed objects */
    /* time until doomed objects are tried again; grows while they stay pinned */
    mr_duration doomed_wait;
    /* time since which a grant waits and no memory was freed; 0: no grant waits, or memory was just
     * freed */
    mr_time stuck_since;
    /* time to ask all clients for empty segments again, whatever they answered */
    mr_time reclaim_again;
    mr_time orphan_check;
    uint32_t replicas;
    uint32_t unvouched;
    uint32_t orphan_cursor; /* the object that mr_ostore__check_orphans examined last */
    struct mr_store_stats stats;
};
