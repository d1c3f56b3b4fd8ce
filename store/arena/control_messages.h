/* The types of control messages between an object store and the clients on its node, and their
 * structs. The functions of control.h send and receive the messages. */
#pragma once

#include "base/id.h"
#include "store/arena/client.h"

/* Version of these messages. Version 2 added WANT, 3 added `came` to GOT, 4 added LIMIT. */
#define MR_CTL_VERSION 4
#define MR_CTL_BYTES_MAX 65536u
#define MR_CTL_TEXT_MAX 400u
#define MR_CTL_SOURCE_MAX 256u
#define MR_CTL_NAME_MAX 64u
enum mr_ctl_type {
    /* The following types go from client to store. */
    MR_CTL_HELLO = 1, /* carries the descriptor of the client's pin page (layout.h) */
    MR_CTL_GRANT,     /* asks for a segment */
    MR_CTL_RETURN,    /* gives back empty segments of the client */
    MR_CTL_SEAL,
    MR_CTL_GET,
    /* The client no longer waits for the GRANT or GET of this number. The store drops the GRANT. A
     * GET is still answered, and the client releases its pin. */
    MR_CTL_CANCEL,
    MR_CTL_UNPIN, /* releases pins that the store counts: from GOT, and from SEAL with KEEP */
    MR_CTL_HOLD,
    MR_CTL_UNHOLD,
    MR_CTL_DELETE,
    MR_CTL_STATS,
    /* The following types go from store to client. */
    /* Carries the descriptor of the directory; `request` is MR_CTL_VERSION. */
    MR_CTL_WELCOME,
    MR_CTL_GRANTED, /* carries the descriptor of the segment */
    MR_CTL_GOT,     /* carries the descriptor of the segment if the client has not had it yet */
    MR_CTL_DONE,    /* answers DELETE, and a HELLO that is refused */
    MR_CTL_FREED,   /* tells the client which pieces of its segments it may use again */
    MR_CTL_RECLAIM, /* asks the client to give back empty segments */
    MR_CTL_UNMAP,   /* names segments that do not exist any more */
    MR_CTL_STATS_DONE,
    /* From client to store: names objects that will be read soon. `request` is 1 if a get follows
     * at once. */
    MR_CTL_WANT,
    /* From client to store, before its first GRANT: has the memory limit of the client's control
     * group. */
    MR_CTL_LIMIT,
    MR_CTL_TYPES
};

struct mr_ctl_head {
    uint32_t type;
    uint32_t count;   /* number of items after the fixed part */
    uint64_t request; /* number of the request, repeated in its answer; otherwise 0 */
};

struct mr_ctl_hello {
    uint32_t protocol;
    uint32_t layout;
    /* 1: an internal client, which the store accepts from its own process only. */
    uint32_t internal : 8;
    uint32_t control : 24; /* MR_CTL_VERSION; 0: version 1, which did not send this number */
    uint32_t pid;
    char name[MR_CTL_NAME_MAX];
};
struct mr_ctl_welcome {
    uint64_t node;
    uint64_t maker;
    uint64_t catalog_bytes;
    uint64_t segment_bytes; /* size of an ordinary segment */
    uint64_t slab_bytes;    /* the largest size of a slab (space.h) */
};
struct mr_ctl_limit {
    uint64_t memory_bytes; /* memory limit of the client's control group (cgroup) */
    uint64_t own_bytes;    /* memory that the client itself uses, besides its segments */
    uint64_t group;        /* id of the control group; not 0 */
};
struct mr_ctl_grant {
    uint64_t bytes;     /* the size that the client wants */
    uint64_t bytes_min; /* a size that is enough if the store is nearly full */
    uint64_t timeout_ns;
};
struct mr_ctl_granted {
    int32_t err;
    uint32_t segment;
    uint64_t bytes;
    union {
        char text[MR_CTL_TEXT_MAX]; /* if err is not 0 */
        /* if err is 0: time in which the store had no room; 0 from stores that do not say */
        uint64_t waited_ns;
    };
};

enum {
    /* The object stays pinned for the client that made it, until an UNPIN. */
    MR_SEAL_KEEP = 1,
    /* From internal clients: the object is a copy of an existing one, restored from disk or pulled
     * from another store. */
    MR_SEAL_ADOPT = 2,
};

struct mr_ctl_seal {
    mr_object_id id;
    uint32_t segment;
    uint32_t flags;
    uint64_t offset;
    uint64_t bytes;
    /* Bytes that the object takes in the segment, with its extent head. FREED returns them. */
    uint64_t room;
    uint64_t job;
    uint32_t task;
    uint32_t attempt;
};

struct mr_ctl_get {
    mr_object_id id;
    uint64_t timeout_ns;
    char source[MR_CTL_SOURCE_MAX];
};
enum { MR_CTL_PULLED = 1, MR_CTL_RESTORED = 2 };
struct mr_ctl_got {
    mr_object_id id;
    int32_t err;
    uint32_t segment;
    uint64_t segment_bytes;
    uint64_t offset;
    uint64_t bytes;
    /* How the object came into memory while this request waited. PULLED: copied from another store;
     * if several requests waited for the copy, only one answer says so. RESTORED: read back from
     * disk. 0: neither. */
    uint64_t came;
    char text[MR_CTL_TEXT_MAX];
};

struct mr_ctl_hold {
    uint32_t kind, unused;
    uint64_t key;
};
struct mr_ctl_delete {
    uint32_t force, unused;
};
struct mr_ctl_done {
    int32_t err;
    uint32_t unused;
    char text[MR_CTL_TEXT_MAX];
};

struct mr_ctl_freed {
    uint32_t segment;
    uint32_t unused;
    uint64_t offset; /* offset of the extent head */
    uint64_t room;
};
