/* The tables of the core. Private to services/objectstore/core. Everything is found by number.
 * Numbers start at 1; 0 means none. */
#pragma once

#include "base/assert.h"
#include "services/objectstore/core/core.h"
#include "store/arena/control.h"
#include "store/arena/layout.h"

#include <string.h>

/*  WANTED ──▶ FETCHING ──▶ RESIDENT ◀──▶ EVICTING ──▶ SPILLED ──▶ FETCHING
 *     └────────────seal───────▲│              │           │           │
 *  (any) ──────────────────────┴──────────────┴──▶ DOOMED ┴───────────┘──▶ FREE
 * FREE only once nobody has it pinned; see `allowed` in object.c. */
enum place {
    PLACE_FREE,
    PLACE_WANTED,   /* only waited for */
    PLACE_FETCHING, /* a restore or a pull is under way */
    PLACE_RESIDENT,
    PLACE_EVICTING, /* for the length of one effect */
    PLACE_SPILLED,
    PLACE_DOOMED, /* deleted, but still in memory: pinned by someone, or EVICT is under way */
};

enum disk {
    DISK_NONE,
    DISK_WRITING,
    DISK_WRITTEN,
};

enum list { /* the queue that an object is in */
    LIST_NONE,
    LIST_SMALL, /* resident, least recently used first */
    LIST_LARGE, /* the same, above MR_SMALL_BYTES_MAX: these rather leave */
    LIST_DOOMED,
    LIST_COUNT,
};

struct object {
    mr_object_id id;
    enum place place;
    enum disk disk;
    enum list list;
    bool being_written; /* a WRITE of it has no answer yet */
    bool persisted;     /* the file stays over restarts, and so does the object */
    bool to_persist;    /* a client waits for it to be persisted */
    bool leaving;       /* written in order to be evicted */
    bool evict_asked;   /* an EVICT effect has no answer yet */
    bool by_holders;    /* has, or had, a name or was drained: lives by holders, persisted or not */
    bool replica;       /* another node has it: may be dropped instead of written */
    bool in_place;      /* has a room in a segment */
    bool placed;        /* the cluster's directory has an entry for it */
    uint32_t segment;   /* number */
    uint64_t offset;
    uint64_t bytes;
    uint64_t room;
    uint64_t sequence;
    mr_time created;
    mr_time used;         /* last use that the store knows of */
    mr_time tried;        /* evicting it was last tried then */
    mr_time unheld_since; /* of a replica; when it was offered, of the unvouched */
    bool unvouched;       /* held by a job, according to a dead client; or found on disk */
    bool offered;
    uint32_t maker;        /* client that sealed it */
    uint32_t source;       /* FETCHING: where from, unless from disk */
    uint32_t other_source; /* to try when that fails; 0: none */
    uint32_t group;        /* in place: the group that is charged; 0: no limited group */
    struct mr_store_owner owner;
    uint32_t pins; /* by the store, for clients */
    uint32_t holders;
    uint32_t links;                  /* head */
    uint32_t waiters;                /* head */
    uint32_t prev, next;             /* in its list; `next` also in the free list */
    uint32_t group_prev, group_next; /* in the group's, while resident */
};

/* In memory, on disk, or on the way back from there; not deleted. */
static inline bool mr_ostore_is_here(const struct object *x)
{
    if (x->place == PLACE_FETCHING) return x->disk == DISK_WRITTEN;
    return x->place == PLACE_RESIDENT || x->place == PLACE_EVICTING || x->place == PLACE_SPILLED;
}

enum { LINK_PIN = 100 }; /* beside enum mr_store_holder_kind: a pin, key = client */

struct link {
    uint32_t kind;
    uint32_t count; /* of pins */
    uint64_t key;
    uint32_t next;
};

struct waiter {
    uint32_t object;
    uint32_t client;
    uint64_t request;
    mr_time deadline;
    bool persist;                /* waits for the disk, not for the memory */
    uint32_t next;               /* of the object; also in the free list */
    uint32_t all_prev, all_next; /* of all */
};

struct segment {
    uint32_t number; /* 0: free */
    uint32_t client; /* its writer; stays after its death */
    bool orphaned;   /* the writer is dead */
    uint64_t bytes;
    uint32_t live;  /* objects with a room here */
    uint32_t group; /* whose pages they are; 0: of none that is limited */
    uint32_t next;  /* free list */
};

/* A control group with a limit, and what the store knows of its clients: their segments count for
 * it, also after their death. Its number is its place in the table. */
struct group {
    uint64_t id;           /* 0: free */
    uint64_t limit_bytes;  /* of its memory */
    uint64_t own_bytes;    /* of it, what its clients use besides */
    uint32_t clients;      /* alive */
    uint64_t bytes;        /* of its segments */
    uint64_t leaving;      /* rooms of its objects that are being written to leave */
    uint32_t head, tail;   /* its resident objects, least recently used first */
    uint64_t lacking;      /* of the step: what its first waiting grant lacks; 0: none waits */
    uint64_t wanted;       /* the same, all that wait for it */
    uint64_t owed;         /* room that was refused, and asked for again, as a rule … */
    mr_time owed_until;    /* … until then */
    mr_time stuck_since;   /* as that of the store */
    mr_time reclaim_again; /* the same */
};

struct client {
    uint32_t number; /* 0: free */
    uint64_t maker;
    bool internal;
    uint32_t group;        /* 0: none that is limited */
    uint64_t own_bytes;    /* of the group's memory */
    bool reclaiming;       /* RECLAIM was sent, its RETURN has not ended */
    bool may_have_empty;   /* something of it was freed since it last said that it has no more */
    mr_time reclaim_asked; /* when; others wait for its answer for a while */
    bool gave;             /* segments, in answer to the last RECLAIM */
};

struct grant {
    uint32_t client; /* 0: free */
    uint64_t request;
    uint64_t bytes_min;
    uint64_t bytes;
    mr_time deadline;
};

#define GRANTS_MAX 1024u
#define RETRY_NS (20 * MR_MS) /* of what was pinned */
#define DOOMED_WAIT_MAX MR_SECOND
#define RECLAIM_AGAIN_NS (300 * MR_MS)
#define RECLAIM_WAIT_NS (30 * MR_MS)  /* for clients that may have an empty segment */
#define RECLAIM_WAIT_MAX_NS MR_SECOND /* for clients with segments in which nothing was sealed */
#define STUCK_NS (500 * MR_MS)        /* nothing can leave, and nothing comes free */
#define WAIT_MORE_NS (10 * MR_SECOND)
#define OWED_NS (2 * MR_SECOND) /* a task that found no room comes again meanwhile */
#define SPILLS_MAX 16u          /* writes under way */
#define SCAN_MAX 4096u          /* objects looked at in one step */
#define SCAN_FULL 64u           /* the same, while no more writes may be under way */
#define DISK_RETRY_NS (5 * MR_SECOND)
#define DISK_PROBE_NS (250 * MR_MS) /* a full disk: it may have space again */
#define AHEAD_SHARE 8u /* of memory: what may be restored before a client waits for it */

struct mr_ostore {
    struct mr_ostore_config config;
    struct mr_arena arena;
    struct mr_index by_id;
    mr_time now;
    struct mr_ostore_effects *fx; /* of the step under way */

    struct object *objects;
    uint32_t objects_free;
    uint32_t objects_used; /* high-water */
    uint32_t objects_count;
    uint64_t sequence;
    struct {
        uint32_t head, tail, count;
    } lists[LIST_COUNT];

    struct link *links;
    uint32_t links_free, links_used;
    struct waiter *waiters;
    uint32_t waiters_free, waiters_used, waiters_head;
    mr_time waiters_deadline; /* never later than the earliest */

    struct segment *segments;
    uint32_t segments_free, segments_used, segment_number;
    uint32_t segments_count;
    uint64_t committed_bytes;
    uint32_t *segment_slots; /* by number */
    struct client *clients;  /* dense */
    uint32_t clients_count;
    struct group *groups;             /* groups_max places, from 1 */
    uint32_t groups_max, groups_used; /* high-water */
    struct grant grants[GRANTS_MAX];  /* a queue, oldest first */
    uint32_t grants_count;

    uint32_t writes;     /* under way */
    bool disk_full;      /* a write found no space, and none went well since */
    mr_time disk_probe;  /* then: nothing is spilled before, and one object at a time */
    mr_time disk_failed; /* when a write last found no space */
    uint64_t write_failures;
    uint64_t rooms_bytes;    /* of objects in memory */
    uint64_t coming_bytes;   /* of restores under way */
    uint64_t leaving_bytes;  /* rooms of objects that are being written to leave */
    mr_time retry;           /* look again for something to evict, or at the doomed */
    mr_duration doomed_wait; /* between two looks at the doomed; grows while they stay pinned */
    mr_time stuck_since;     /* a grant waits, and nothing came free since then; 0: not so */
    mr_time reclaim_again;   /* ask all clients for empty segments, whatever they answered before */
    mr_time orphan_check;
    uint32_t replicas;
    uint32_t unvouched;
    uint32_t orphan_cursor;
    struct mr_store_stats stats;
};
