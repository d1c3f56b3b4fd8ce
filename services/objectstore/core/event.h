/* What the object store's core learns (events) and what it wants done (effects). In the lists of
 * events and effects, each comment begins with the members of the struct that are used. Client,
 * object and segment are numbers (core.h). The *room* of an object is its piece of a segment: the
 * head of the extent and the value. */
#pragma once

#include "base/id.h"
#include "base/time.h"
#include "store/arena/client.h"

enum mr_ostore_event_type {
    MR_OE_TICK,
    MR_OE_JOIN, /* client, maker, internal */
    MR_OE_GONE, /* client */
    /* client, group, bytes (memory limit of the control group), room (memory that the client's
     * process itself uses, besides its segments) */
    MR_OE_LIMIT,
    /* client, request, bytes, room (the least that the client can use), timeout: asks for a
     * segment */
    MR_OE_GRANT,
    /* client, request: the client no longer waits for this request. A GRANT is dropped. A GET is
     * still answered. */
    MR_OE_CANCEL,
    MR_OE_RETURN, /* client, segment (0: the client has no more empty segments) */
    /* client, id, segment, offset, bytes, room, flags, owner: the client has made the object */
    MR_OE_SEAL,
    MR_OE_GET,          /* client, request, id, timeout, source: the client waits for the object */
    MR_OE_UNPIN,        /* client, id */
    MR_OE_HOLD,         /* client, id, holder */
    MR_OE_UNHOLD,       /* client, id, holder (JOB with key 0: all jobs) */
    MR_OE_DELETE,       /* client, request, id, flags (FORCE): the object is to be deleted */
    MR_OE_PERSIST,      /* client, request, id */
    MR_OE_EVICT_DONE,   /* object, err: MR_OK, or MR_EAGAIN if a reader has the object pinned */
    MR_OE_WRITTEN,      /* id, err, flags: the flags of the effect WRITE */
    MR_OE_FETCH_FAILED, /* id, err: a restore or a pull has ended without a SEAL */
    MR_OE_RECOVERED, /* id, bytes, flags (BY_HOLDERS): the object was found on disk at the start */
    MR_OE_USED,      /* object: a client has read the object */
    MR_OE_WANT,      /* id, flags (AT_ONCE): a client will get the object soon */
    MR_OE_DRAIN,     /* the objects that jobs or names hold are to be written to disk */
    MR_OE_OFFERED,   /* id (none: all objects): the scheduler was asked if it claims the object */
    MR_OE_PLACED,    /* id: the cluster's directory says that this node has the object */
    MR_OE_ASK_AGAIN, /* a new scheduler has connected: holds of the old scheduler are in doubt */
};

enum {
    MR_OSTORE_FORCE = 1,      /* in DELETE: the object is deleted although it has holders */
    MR_OSTORE_AT_ONCE = 1,    /* in WANT: a task waits for the object */
    MR_OSTORE_PULLED = 1,     /* in GOT: the object was copied from another store */
    MR_OSTORE_RESTORED = 2,   /* in GOT: the get waited until the object was read back from disk */
    MR_OSTORE_PERSISTED = 1,  /* in WRITE and WRITTEN: the file outlives the process */
    MR_OSTORE_BY_HOLDERS = 2, /* the file of a persisted object is deleted when no holder is left */
};
/* A value of `source` in GET and PULL: the shell looks up in the cluster's directory which store
 * has the object. If the directory has no entry for the object, the shell answers with FETCH_FAILED
 * and MR_EAGAIN. */
#define MR_OSTORE_SEEK UINT32_MAX

struct mr_ostore_event {
    enum mr_ostore_event_type type;
    uint32_t client;
    uint64_t request;
    mr_object_id id;
    uint32_t object;
    uint32_t segment;
    uint32_t flags;
    int err;
    uint64_t offset;
    uint64_t bytes;
    uint64_t room;
    mr_duration timeout;
    uint64_t maker;
    uint64_t group;
    struct mr_store_owner owner;
    struct mr_store_holder holder;
    uint32_t source; /* number that the shell gave another store's address; 0: none */
    bool internal;
};

enum mr_ostore_effect_type {
    /* client, request, segment, bytes, waited: the client is to make the segment. If the grant is
     * refused: err, bytes, room (the limit of the client's group if this limit is the reason;
     * otherwise 0) */
    MR_OX_GRANTED,
    /* client, request, object, segment, offset, bytes, flags: the object is pinned for the client.
     * When a copy has come from another store, only one client gets the flag PULLED. When it has
     * come from disk, all clients that waited get the flag RESTORED. If the get has failed: client,
     * request, id, err */
    MR_OX_GOT,
    MR_OX_DONE,    /* client, request, id, err, holder: the answer to DELETE and PERSIST */
    MR_OX_ADD,     /* object (not in memory), id: the catalog gets an entry for the object */
    MR_OX_PUBLISH, /* object, segment, offset, bytes: the object is in memory from now on */
    MR_OX_REMOVE,  /* object (not in memory): the catalog loses the object's entry */
    /* object, flags (1: deleted, so no reader may pin it): the answer is EVICT_DONE */
    MR_OX_EVICT,
    MR_OX_FREED,   /* client, segment, offset, room: the client may use the room again */
    MR_OX_RECLAIM, /* client, bytes: the client is to return empty segments; it answers RETURN */
    MR_OX_CLOSE,   /* segment: to be unmapped and closed everywhere */
    MR_OX_WRITE,   /* object, id, bytes, flags (PERSISTED, BY_HOLDERS): the answer is WRITTEN */
    /* id, flags (BY_HOLDERS or 0): the object's file moves to DIR/held or DIR/objects */
    MR_OX_MOVE,
    MR_OX_ERASE,   /* id: the object's file is to be deleted */
    MR_OX_RESTORE, /* object, id, bytes: the answer is SEAL or FETCH_FAILED */
    MR_OX_PULL,    /* object, id, source: the answer is SEAL or FETCH_FAILED */
    MR_OX_LOST,    /* id: the object is gone although a job held it */
    MR_OX_UNPLACE, /* id: the object left this node: its directory entry is to be removed */
    MR_OX_REFUSED, /* id, client: the client's seal is refused, since there are too many objects */
};

struct mr_ostore_effect {
    enum mr_ostore_effect_type type;
    uint32_t client;
    uint64_t request;
    uint32_t object;
    uint32_t segment;
    uint32_t flags;
    int err;
    uint32_t source;
    mr_object_id id;
    uint64_t offset;
    uint64_t bytes;
    uint64_t room;
    mr_duration waited; /* time in which there was no room */
    struct mr_store_holder holder;
};
