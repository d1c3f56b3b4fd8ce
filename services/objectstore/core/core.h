/* The core of the object store: which objects exist and where they are; which clients and jobs hold
 * them, pin them and wait for them; and which objects leave memory next. A deterministic state
 * machine without I/O: it never sees a byte of an object, a page, a file or a socket. The shell
 * gives it events and carries out its effects (event.h).
 *
 * The number of an object is the number of its entry in the shared catalog. The shell numbers
 * clients from 1 and never uses a number twice. The core does the same with segments. */
#pragma once

#include "base/arena.h"
#include "base/index.h"
#include "services/objectstore/core/event.h"

struct mr_ostore;

struct mr_ostore_config {
    uint64_t memory_bytes;  /* limit of all segments together */
    uint64_t segment_bytes; /* size of an ordinary segment */
    uint32_t objects_max;   /* number of entries in the catalog; entry 0 is not used */
    uint32_t links_max;     /* limit of holders and pins */
    uint32_t waiters_max;   /* limit of gets and persists that wait */
    uint32_t segments_max;  /* limit of segments at the same time */
    uint32_t clients_max;   /* limit of clients at the same time */
    bool may_spill;         /* the shell has a disk */
    /* time to claim an unvouched object (info.h), or to use a copy again, before it is freed */
    mr_duration orphan_ns;
};

struct mr_ostore_effects {
    struct mr_arena arena;
    struct mr_ostore_effect *items;
    size_t n;
    size_t n_max;
};

/* Allocates room for the most effects that one step may have. After a step the caller carries the
 * effects out and sets n = 0. */
void mr_ostore_effects_init(struct mr_ostore_effects *fx, const struct mr_ostore_config *config);
void mr_ostore_effects_fini(struct mr_ostore_effects *fx);

struct mr_ostore *mr_ostore_new(const struct mr_ostore_config *config);
void mr_ostore_free(struct mr_ostore **s);
void mr_ostore_step(struct mr_ostore *s, mr_time now, const struct mr_ostore_event *ev,
    struct mr_ostore_effects *fx);
/* True: an effect WRITE has not been answered by its event WRITTEN yet. */
bool mr_ostore_is_writing(const struct mr_ostore *s);
mr_time mr_ostore_deadline(const struct mr_ostore *s);
void mr_ostore_check(const struct mr_ostore *s);
