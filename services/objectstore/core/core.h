/* The core of the object store: which objects there are, where they lie, which clients and jobs
 * hold, pin and wait for them, and which objects leave memory next. A deterministic state machine
 * without I/O: it never sees a byte of an object, a page, a file or a socket. The shell gives it
 * events and carries out its effects.
 *
 * The number of an object is its entry in the shared directory. The shell gives numbers to clients
 * and never uses one twice. The core numbers segments from 1 and never uses a number twice. */
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
    uint32_t objects_max;   /* entries, entry 0 is not used */
    uint32_t links_max;     /* holders and pins */
    uint32_t waiters_max;   /* gets and persists that wait */
    uint32_t segments_max;  /* at one time */
    uint32_t clients_max;   /* at one time */
    bool may_spill;         /* there is a disk to write to */
    mr_duration orphan_ns;  /* a copy without a holder is freed after this */
};

enum mr_ostore_event_type {
    MR_OE_TICK,
    MR_OE_JOIN,       /* client, maker, internal */
    MR_OE_GONE,       /* client */
    MR_OE_LIMIT,      /* client, group, bytes: the limit of its group, room: what it uses itself */
    MR_OE_GRANT,      /* client, request, bytes, room (the least that helps), timeout */
    MR_OE_CANCEL,     /* client, request */
    MR_OE_RETURN,     /* client, segment (0: only says that it has no more) */
    MR_OE_SEAL,       /* client, id, segment, offset, bytes, room, flags, job, task, attempt */
    MR_OE_GET,        /* client, request, id, timeout, source */
    MR_OE_UNPIN,      /* client, id */
    MR_OE_HOLD,       /* client, id, holder */
    MR_OE_UNHOLD,     /* client, id, holder */
    MR_OE_DELETE,     /* client, request, id, flags (1: force) */
    MR_OE_PERSIST,    /* client, request, id */
    MR_OE_EVICT_DONE, /* object, err: MR_OK, or MR_EAGAIN when pinned */
    MR_OE_WRITTEN,    /* id, err, flags (1: as persisted) */
    MR_OE_FETCH_FAILED, /* id, err: a restore or a pull that ended without a seal */
    MR_OE_RECOVERED,    /* id, bytes, flags (2: lives by its holders): found on disk at the start */
    MR_OE_USED,         /* object: a client read it lately */
    MR_OE_WANT,         /* id, flags (1: at once): a client will get it soon */
    MR_OE_DRAIN,        /* what jobs and names hold is to be on disk */
    MR_OE_OFFERED,      /* id, or none for all: the possible claimants were asked */
    MR_OE_PLACED,       /* id: the cluster's directory says that this node has it */
    MR_OE_ASK_AGAIN,    /* another scheduler: what the last one held, it has to claim */
};

enum {
    MR_OSTORE_FORCE = 1,          /* of DELETE */
    MR_OSTORE_AT_ONCE = 1,        /* of WANT */
    MR_OSTORE_PULLED = 1,         /* of the effect GOT */
    MR_OSTORE_PERSISTED = 1,      /* of WRITTEN, and of the effect WRITE */
    MR_OSTORE_BY_HOLDERS = 2,     /* beside it: the file goes with the last holder */
#define MR_OSTORE_SEEK UINT32_MAX /* a source: look it up; FETCH_FAILED with MR_EAGAIN: wait on */
};

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
    uint32_t source; /* the shell's number of an address; 0: none */
    bool internal;
};
enum mr_ostore_effect_type {
    MR_OX_GRANTED, /* client, request, segment, bytes: make it; or err, and room: its group's if so
                    */
    MR_OX_GOT,     /* client, request, object, segment, offset, bytes, flags (1: it was pulled, and
                      nobody else is told so): pinned for it; or err */
    MR_OX_DONE,    /* client, request, err, holder: answers DELETE and PERSIST */
    MR_OX_ADD,     /* object, id: into the directory, away */
    MR_OX_PUBLISH, /* object, segment, offset, bytes */
    MR_OX_REMOVE,  /* object: from away out of the directory */
    MR_OX_EVICT,   /* object, flags (1: for ever, do not back off): answer with EVICT_DONE */
    MR_OX_FREED,   /* client, segment, offset, room */
    MR_OX_RECLAIM, /* client, bytes: answer with RETURN */
    MR_OX_CLOSE,   /* segment: unmap and close it everywhere */
    MR_OX_WRITE,   /* object, id, bytes, flags (1: to stay, 2: by holders): answer with WRITTEN */
    MR_OX_MOVE,    /* id, flags (2: its file now lives by holders; 0: by itself) */
    MR_OX_ERASE,   /* id: its file */
    MR_OX_RESTORE, /* object, id, bytes: seal it, or FETCH_FAILED */
    MR_OX_PULL,    /* object, id, source: the same */
    MR_OX_LOST,    /* id: a job held it, and it is gone */
    MR_OX_UNPLACE, /* id: this node has it no more: remove the entry from the directory */
    MR_OX_REFUSED, /* id, client: it was sealed, but there is no place for one more */
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
/* Room for the most effects one step may have; the caller carries them out and sets n = 0. */
void mr_ostore_effects_init(struct mr_ostore_effects *fx, const struct mr_ostore_config *config);
void mr_ostore_effects_fini(struct mr_ostore_effects *fx);
struct mr_ostore *mr_ostore_new(const struct mr_ostore_config *config);
void mr_ostore_free(struct mr_ostore **s);
void mr_ostore_step(struct mr_ostore *s, mr_time now, const struct mr_ostore_event *ev,
    struct mr_ostore_effects *fx);
bool mr_ostore_is_writing(const struct mr_ostore *s); /* files are on the way to the disk */
mr_time mr_ostore_deadline(const struct mr_ostore *s);
void mr_ostore_check(const struct mr_ostore *s);
