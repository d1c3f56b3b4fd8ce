/* The tables of the core. Private to services/objectstore/core. Rows are found by number. Numbers
 * start at 1; 0 means none. */
#pragma once

#include "base/assert.h"
#include "services/objectstore/core/core.h"
#include "store/arena/control.h"
#include "store/arena/layout.h"

#include <string.h>

/*  WANTED ──▶ FETCHING ──▶ RESIDENT ◀──▶ EVICTING ──▶ SPILLED ──▶ FETCHING
 *     └────────────seal───────▲│              │           │           │
 *  (any) ──────────────────────┴──────────────┴──▶ DOOMED ┴───────────┘──▶ FREE
 * An object is FREE only when no client has it pinned. `allowed` in object.c checks the moves. */
enum place {
    PLACE_FREE,
    PLACE_WANTED,   /* clients wait for it, and it is not here */
    PLACE_FETCHING, /* a restore or a pull is under way */
    PLACE_RESIDENT,
    PLACE_EVICTING, /* until EVICT_DONE */
    PLACE_SPILLED,
    PLACE_DOOMED, /* deleted, but in memory: a client has it pinned, or EVICT has no answer yet */
};

enum disk {
    DISK_NONE,
    DISK_WRITING,
    DISK_WRITTEN,
};

enum list { /* the list that an object is in */
    LIST_NONE,
    LIST_SMALL, /* in memory, least recently used first */
    LIST_LARGE, /* the same, above MR_SMALL_BYTES_MAX bytes; evicted rather than small ones */
    LIST_DOOMED,
    LIST_COUNT,
};

struct object {
    mr_object_id id;
    enum place place;
    enum disk disk;
    enum list list;
    bool being_written; /* a WRITE of it has no answer yet */
    bool persisted;     /* its file outlives the process */
    bool to_persist;    /* is to be written as persisted */
    bool leaving;       /* leaves memory: is being written for it, or EVICT is under way */
    bool evict_asked;   /* an EVICT effect has no answer yet */
    bool by_holders;    /* is freed with its last holder although persisted: it has, or had, a name,
                           or a drain wrote it */
    bool replica;       /* a copy of another node's object: dropped instead of written */
    bool in_place;      /* has a room in a segment */
    bool placed;        /* the cluster's directory has an entry for it */
    uint32_t segment;   /* number */
    uint64_t offset;
    uint64_t bytes;
    uint64_t room;
    uint64_t sequence;
    mr_time created;
    mr_time used;          /* last use that the store knows of */
    mr_time tried;         /* last attempt to evict it; in the future after a failed write */
    mr_time unheld_since;  /* of a replica: last use; of an unvouched object: when it was offered */
    bool unvouched;        /* its holders may no longer exist; see mr_ostore_unvouched */
    bool offered;          /* the scheduler was asked whether it claims the object */
    uint32_t maker;        /* client that sealed it */
    uint32_t source;       /* of a pull under way */
    uint32_t other_source; /* tried if that pull fails; 0: none */
    uint32_t group;        /* in_place: the control group that is charged; 0: none with a limit */
    struct mr_store_owner owner;
    uint32_t pins; /* by the store for clients */
    uint32_t holders;
    uint32_t links;                  /* head of its links */
    uint32_t waiters;                /* head of its waiters */
    uint32_t prev, next;             /* in its list; `next` also in the free list */
    uint32_t group_prev, group_next; /* in the list of its group, while in memory */
};

/* In memory, on disk, or being restored; not deleted. */
static inline bool mr_ostore_is_here(const struct object *x)
{
    if (x->place == PLACE_FETCHING) return x->disk == DISK_WRITTEN;
    return x->place == PLACE_RESIDENT || x->place == PLACE_EVICTING || x->place == PLACE_SPILLED;
}

enum { LINK_PIN = 100 }; /* a kind beside those of enum mr_store_holder_kind */

struct link { /* a holder, or the pins of one client */
    uint32_t kind;
    uint32_t count; /* of pins */
    uint64_t key;   /* of the holder; of a pin: the client */
    uint32_t next;
};

struct waiter { /* a GET or a PERSIST without an answer */
    uint32_t object;
    uint32_t client;
    uint64_t request;
    mr_time deadline;
    bool persist;
    uint32_t next;               /* of the same object; also in the free list */
    uint32_t all_prev, all_next; /* among all waiters */
};

struct segment {
    uint32_t number; /* 0: free */
    uint32_t client; /* its writer, also after the writer has gone */
    bool orphaned;   /* the writer has gone */
    uint64_t bytes;
    uint32_t live;  /* objects with a room here */
    uint32_t group; /* the control group that is charged; 0: none with a limit */
    uint32_t next;  /* free list */
};

/* A control group with a memory limit. It is charged for the segments of its clients, also after
 * these have gone. */
struct group {
    uint64_t id;          /* 0: free */
    uint64_t limit_bytes; /* its memory limit */
    uint64_t own_bytes;   /* memory that its clients use without the store */
    uint32_t clients;     /* connected */
    uint64_t bytes;       /* of its segments */
    uint64_t leaving;     /* rooms of its objects with `leaving` */
    uint32_t head, tail;  /* its objects in memory, least recently used first */
    uint64_t lacking;    /* bytes that its first waiting grant lacks, in this step; 0: none waits */
    uint64_t wanted;     /* bytes that all its waiting grants ask for, in this step */
    uint64_t owed;       /* bytes that were refused; a retry is expected … */
    mr_time owed_until;  /* … until then */
    mr_time stuck_since; /* as the member of struct mr_ostore, for this group */
    mr_time reclaim_again; /* the same */
};

struct client {
    uint32_t number; /* 0: free */
    uint64_t maker;
    bool internal;
    uint32_t group;        /* 0: none with a limit */
    uint64_t own_bytes;    /* memory of the group that it uses without the store */
    bool reclaiming;       /* RECLAIM was sent, and the last RETURN has not come */
    bool may_have_empty;   /* a room was freed since it said that it has no empty segment */
    mr_time reclaim_asked; /* when RECLAIM was sent; grants wait for the answer for a while */
    bool gave;             /* it returned a segment in answer to the last RECLAIM */
};

struct grant { /* a request for a segment that waits */
    uint32_t client;
    uint64_t request;
    uint64_t bytes_min; /* the least that helps */
    uint64_t bytes;     /* wanted */
    mr_time deadline;
};

#define GRANTS_MAX 1024u
#define RETRY_NS (20 * MR_MS)     /* between two attempts to evict an object that was pinned */
#define DOOMED_WAIT_MAX MR_SECOND /* the same, of deleted objects: it grows up to this */
#define RECLAIM_AGAIN_NS (300 * MR_MS)
#define RECLAIM_WAIT_NS (30 * MR_MS)  /* for clients that may have an empty segment */
#define RECLAIM_WAIT_MAX_NS MR_SECOND /* for clients with segments in which nothing was sealed */
#define STUCK_NS (500 * MR_MS) /* a grant waits, nothing can leave, and nothing becomes free */
#define WAIT_MORE_NS (10 * MR_SECOND) /* for a restore, beyond the timeout of the get */
#define OWED_NS (2 * MR_SECOND) /* a task that found no room is expected to try again within */
#define SPILLS_MAX 16u          /* writes at the same time */
#define SCAN_MAX 4096u          /* objects examined in one step */
#define SCAN_FULL 64u           /* the same, while SPILLS_MAX writes are under way */
#define DISK_RETRY_NS (5 * MR_SECOND) /* after a write of an object failed */
#define DISK_PROBE_NS (250 * MR_MS)   /* between two attempts to write to a full disk */
#define AHEAD_SHARE 8u                /* 1/8 of memory may be restored ahead of any get */

struct mr_ostore {
    struct mr_ostore_config config;
    struct mr_arena arena;
    struct mr_index by_id;
    mr_time now;
    struct mr_ostore_effects *fx; /* of the step under way */

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
    mr_time waiters_deadline; /* not later than the earliest deadline */

    struct segment *segments;
    uint32_t segments_free, segments_used, segment_number;
    uint32_t segments_count;
    uint64_t committed_bytes;
    uint32_t *segment_slots; /* by number */
    struct client *clients;  /* dense */
    uint32_t clients_count;
    struct group *groups;             /* from 1 */
    uint32_t groups_max, groups_used; /* used: the highest number ever used */
    struct grant grants[GRANTS_MAX];  /* a queue, oldest first */
    uint32_t grants_count;

    uint32_t writes;     /* under way */
    bool disk_full;      /* a write found no space, and none has succeeded since */
    mr_time disk_probe;  /* while it is full: the next spill, of one object, is at this time */
    mr_time disk_failed; /* when a write last found no space */
    uint64_t write_failures;
    uint64_t rooms_bytes;   /* of objects in memory */
    uint64_t coming_bytes;  /* of restores under way */
    uint64_t leaving_bytes; /* rooms of objects with `leaving` */
    mr_time retry;          /* when to try again to evict, or to free doomed objects */
    mr_duration
        doomed_wait;       /* until doomed objects are tried again; grows while they stay pinned */
    mr_time stuck_since;   /* since then a grant waits and nothing became free; 0: not so */
    mr_time reclaim_again; /* when to ask all clients for empty segments, whatever they answered */
    mr_time orphan_check;
    uint32_t replicas;
    uint32_t unvouched;
    uint32_t orphan_cursor; /* where mr_ostore__check_orphans goes on */
    struct mr_store_stats stats;
};
