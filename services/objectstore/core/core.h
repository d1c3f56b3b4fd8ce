/* The core of the object store: which objects exist and where they lie; which clients and jobs hold
 * them, pin them and wait for them; and which objects leave memory next. A deterministic state
 * machine without I/O: it never sees a byte of an object, a page, a file or a socket. The shell
 * gives it events and carries out its effects.
 *
 * The number of an object is the number of its entry in the shared catalog. The shell numbers
 * clients and never uses a number twice. The core numbers segments from 1, likewise. The *room* of
 * an object is its piece of a segment: the head of the extent and the value. */
#pragma once

#include "base/arena.h"
#include "base/id.h"
#include "base/index.h"
#include "base/time.h"
#include "store/arena/client.h"
struct mr_ostore;
struct mr_ostore_config {
    uint64_t memory_bytes;  /* the budget of all segments */
    uint64_t segment_bytes; /* of an ordinary segment */
    uint32_t objects_max;   /* entries of the catalog; entry 0 is not used */
    uint32_t links_max;     /* holders and pins */
    uint32_t waiters_max;   /* gets and persists that wait */
    uint32_t segments_max;  /* at the same time */
    uint32_t clients_max;   /* at the same time */
    bool may_spill;         /* the shell has a disk */
    mr_duration orphan_ns;  /* see mr_ostore_unvouched; also an unused copy is freed after it */
};

/* Each comment begins with the members of struct mr_ostore_event that the event uses. */
enum mr_ostore_event_type {
    MR_OE_TICK,
    MR_OE_JOIN,    /* client, maker, internal */
    MR_OE_GONE,    /* client */
    MR_OE_LIMIT,   /* client, group, bytes: the limit of the group, room: what the client uses of it
                      without the store */
    MR_OE_GRANT,   /* client, request, bytes, room: the least that helps, timeout */
    MR_OE_CANCEL,  /* client, request: of a GRANT */
    MR_OE_RETURN,  /* client, segment; 0: the client has no more empty segments */
    MR_OE_SEAL,    /* client, id, segment, offset, bytes, room, flags, owner */
    MR_OE_GET,     /* client, request, id, timeout, source */
    MR_OE_UNPIN,   /* client, id */
    MR_OE_HOLD,    /* client, id, holder */
    MR_OE_UNHOLD,  /* client, id, holder */
    MR_OE_DELETE,  /* client, request, id, flags (FORCE) */
    MR_OE_PERSIST, /* client, request, id */
    MR_OE_EVICT_DONE,   /* object, err: MR_OK, or MR_EAGAIN if a reader has it pinned */
    MR_OE_WRITTEN,      /* id, err, flags: those of the effect WRITE */
    MR_OE_FETCH_FAILED, /* id, err: a restore or a pull ended without a SEAL */
    MR_OE_RECOVERED,    /* id, bytes, flags (BY_HOLDERS): found on disk at the start */
    MR_OE_USED,         /* object: a client has read it */
    MR_OE_WANT,         /* id, flags (AT_ONCE): a client will get it soon */
    MR_OE_DRAIN,        /* writes what jobs and names hold to disk */
    MR_OE_OFFERED,      /* id; none: every object: the scheduler was asked whether it claims it */
    MR_OE_PLACED,       /* id: the cluster's directory has an entry for it on this node */
    MR_OE_ASK_AGAIN,    /* another scheduler: the holds of the one before are in doubt */
};

enum {
    MR_OSTORE_FORCE = 1,      /* of DELETE: although the object has holders */
    MR_OSTORE_AT_ONCE = 1,    /* of WANT: by a task that waits for it */
    MR_OSTORE_PULLED = 1,     /* of GOT: it was copied from another store */
    MR_OSTORE_PERSISTED = 1,  /* of WRITE and WRITTEN: the file outlives the process */
    MR_OSTORE_BY_HOLDERS = 2, /* with it: the file is deleted with the last holder */
};
/* A source: the directory tells it. FETCH_FAILED with MR_EAGAIN: the directory has no entry. */
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
    uint32_t source; /* the shell's number of another store's address; 0: none */
    bool internal;
};
/* Each comment begins with the members of struct mr_ostore_effect that the effect uses. */
enum mr_ostore_effect_type {
    MR_OX_GRANTED, /* client, request, segment, bytes: make the segment; or err, bytes, and room:
                      the bound of the client's group, if that is the reason */
    MR_OX_GOT,     /* client, request, object, segment, offset, bytes, flags (PULLED, which only one
                      client is told): pinned for the client; or err */
    MR_OX_DONE,    /* client, request, err, holder: answers DELETE and PERSIST */
    MR_OX_ADD,     /* object, id: a new entry of the catalog, not in memory */
    MR_OX_PUBLISH, /* object, segment, offset, bytes: in memory from now on */
    MR_OX_REMOVE,  /* object: out of the catalog; it is not in memory */
    MR_OX_EVICT, /* object, flags (1: deleted, so that a reader may not pin it again): the answer is
                    EVICT_DONE */
    MR_OX_FREED, /* client, segment, offset, room: the client may use the room again */
    MR_OX_RECLAIM, /* client, bytes: asks for empty segments; the answer is RETURN */
    MR_OX_CLOSE,   /* segment: unmap and close it everywhere */
    MR_OX_WRITE,   /* object, id, bytes, flags (PERSISTED, BY_HOLDERS): the answer is WRITTEN */
    MR_OX_MOVE,  /* id, flags (BY_HOLDERS or 0): its file is to be deleted with the last holder, or
                    is not */
    MR_OX_ERASE, /* id: its file */
    MR_OX_RESTORE, /* object, id, bytes: the answer is SEAL or FETCH_FAILED */
    MR_OX_PULL,    /* object, id, source: the same */
    MR_OX_LOST,    /* id: a job held it, and it is gone */
    MR_OX_UNPLACE, /* id: this node no longer has it: remove the entry of the cluster's directory */
    MR_OX_REFUSED, /* id, client: it was sealed, but the store has too many objects */
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
    struct mr_store_holder holder;
};

struct mr_ostore_effects {
    struct mr_arena arena;
    struct mr_ostore_effect *items;
    size_t n;
    size_t n_max;
};
/* Makes room for the most effects that one step may have. After a step the caller carries the
 * effects out and sets n = 0. */
void mr_ostore_effects_init(struct mr_ostore_effects *fx, const struct mr_ostore_config *config);
void mr_ostore_effects_fini(struct mr_ostore_effects *fx);
struct mr_ostore *mr_ostore_new(const struct mr_ostore_config *config);
void mr_ostore_free(struct mr_ostore **s);
void mr_ostore_step(struct mr_ostore *s, mr_time now, const struct mr_ostore_event *ev,
    struct mr_ostore_effects *fx);
bool mr_ostore_is_writing(const struct mr_ostore *s); /* a WRITE has no WRITTEN yet */
mr_time mr_ostore_deadline(const struct mr_ostore *s);
void mr_ostore_check(const struct mr_ostore *s);
