/* What a store and its local clients say to each other; how it travels is control.h. */
#pragma once

#include "base/id.h"
#include "store/arena/client.h"

#define MR_CTL_VERSION 4 /* of these messages; 2 added WANT, 3 is_pulled, 4 LIMIT */
#define MR_CTL_BYTES_MAX 65536u
#define MR_CTL_TEXT_MAX 400u
#define MR_CTL_SOURCE_MAX 256u
#define MR_CTL_NAME_MAX 64u
enum mr_ctl_type {
    /* client to store */
    MR_CTL_HELLO = 1, /* + descriptor of the pin page */
    MR_CTL_GRANT,     /* asks for a segment */
    MR_CTL_RETURN,    /* gives empty segments of its own back */
    MR_CTL_SEAL,
    MR_CTL_GET,
    MR_CTL_CANCEL, /* a GRANT or GET of that number is no longer wanted */
    MR_CTL_UNPIN,  /* of what the store pinned for it: GOT and SEAL with KEEP */
    MR_CTL_HOLD,
    MR_CTL_UNHOLD,
    MR_CTL_DELETE,
    MR_CTL_STATS,
    /* store to client */
    MR_CTL_WELCOME, /* + descriptor of the directory; request: MR_CTL_VERSION */
    MR_CTL_GRANTED, /* + descriptor of the segment */
    MR_CTL_GOT,     /* + descriptor of the segment, the first time */
    MR_CTL_DONE,    /* answers DELETE; also a HELLO that is refused */
    MR_CTL_FREED,   /* space of its own segments that holds nothing any more */
    MR_CTL_RECLAIM, /* asks for empty segments */
    MR_CTL_UNMAP,   /* segments that are gone */
    MR_CTL_STATS_DONE,
    MR_CTL_WANT,  /* client to store: objects that it reads soon; request: 1 if at once */
    MR_CTL_LIMIT, /* client to store, before its first GRANT: what its control group allows */
    MR_CTL_TYPES
};

struct mr_ctl_head {
    uint32_t type;
    uint32_t count;   /* items after the fixed part */
    uint64_t request; /* number of the question, repeated in its answer; else 0 */
};

struct mr_ctl_hello {
    uint32_t protocol;
    uint32_t layout;
    uint32_t internal : 8; /* believed only from the store's own process */
    uint32_t control : 24; /* MR_CTL_VERSION; 0: the first, which had none */
    uint32_t pid;
    char name[MR_CTL_NAME_MAX];
};
struct mr_ctl_welcome {
    uint64_t node;
    uint64_t maker;
    uint64_t catalog_bytes;
    uint64_t segment_bytes; /* of an ordinary segment */
    uint64_t slab_bytes;
};
struct mr_ctl_limit {
    uint64_t memory_bytes; /* the group's limit */
    uint64_t own_bytes;    /* of it, what this process uses besides */
    uint64_t group;        /* which one; not 0 */
};
struct mr_ctl_grant {
    uint64_t bytes;     /* wanted */
    uint64_t bytes_min; /* enough, when the store is nearly full */
    uint64_t timeout_ns;
};
struct mr_ctl_granted {
    int32_t err;
    uint32_t segment;
    uint64_t bytes;
    char text[MR_CTL_TEXT_MAX];
};

enum {
    MR_SEAL_KEEP = 1,  /* pinned for the maker until it sends UNPIN */
    MR_SEAL_ADOPT = 2, /* internal clients: a copy of an object that exists (restored, pulled) */
};

struct mr_ctl_seal {
    mr_object_id id;
    uint32_t segment;
    uint32_t flags;
    uint64_t offset;
    uint64_t bytes;
    uint64_t room; /* from the extent head on; what comes back in FREED */
    uint64_t job;
    uint32_t task;
    uint32_t attempt;
};

struct mr_ctl_get {
    mr_object_id id;
    uint64_t timeout_ns;
    char source[MR_CTL_SOURCE_MAX];
};
struct mr_ctl_got {
    mr_object_id id;
    int32_t err;
    uint32_t segment;
    uint64_t segment_bytes;
    uint64_t offset;
    uint64_t bytes;
    uint64_t is_pulled; /* 1: from another store, just now; only this answer says so */
    char text[MR_CTL_TEXT_MAX];
};

struct mr_ctl_hold {
    uint32_t kind;
    uint32_t unused;
    uint64_t key;
};
struct mr_ctl_delete {
    uint32_t force;
    uint32_t unused;
};
struct mr_ctl_done {
    int32_t err;
    uint32_t unused;
    char text[MR_CTL_TEXT_MAX];
};

struct mr_ctl_freed {
    uint32_t segment;
    uint32_t unused;
    uint64_t offset; /* of the extent head */
    uint64_t room;
};
