/* Segments of shared memory between two roles, and waits on words in them (futex).
 *
 * The memory of another process is untrusted input. Each side keeps sizes, offsets and counts in
 * its own memory, reads a shared word once, and checks the word before use. Segments are sealed
 * against shrinking, so that a read never faults. Only the segment of a bell (struct
 * mr_transport_bell) and that of an all-reduce group may be mapped for writing by another process
 * than their maker. */
#pragma once

#include "base/err.h"
#include "base/time.h"
#include "host/flag.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* limit of one sleep, so that stop flags and sockets are looked at */
#define MR_TRANSPORT_SLICE (20 * MR_MS)

/* Makes a segment, maps it for writing, and seals its size. `alone`: also seals the segment, so
 * that no other process can map it for writing. The caller closes the descriptor and unmaps the
 * segment. */
int mr_transport_make(
    const char *name, uint64_t bytes, bool alone, int *fd, void **map, struct mr_error *e);
/* Maps a segment that came from a peer, after a check of its seals and size. The descriptor stays
 * open. */
int mr_transport_map(int fd, uint64_t bytes, bool writable, void **map, struct mr_error *e);

/* Sleeps while *word is `seen`, at most until `deadline`. May return early. */
void mr_transport_sleep(const _Atomic uint32_t *word, uint32_t seen, mr_time deadline);
/* Wakes all threads that sleep on the word. */
void mr_transport_wake(const _Atomic uint32_t *word);

/* A bell: any number of threads ring, one thread sleeps until the next ring. The threads may be of
 * different processes. The bell is in a segment of its own, to which these processes may write. */
struct mr_transport_bell {
    _Atomic uint32_t rung;   /* grows with each ring */
    _Atomic uint32_t sleeps; /* 1 while the thread sleeps */
};
void mr_transport_bell_ring(struct mr_transport_bell *b);
/* Sleeps until the next ring, at most MR_TRANSPORT_SLICE and at most until `deadline`. `seen`: the
 * value of `rung` before the caller looked for work, so that no ring in between is missed. */
void mr_transport_bell_wait(struct mr_transport_bell *b, uint32_t seen, mr_time deadline);

static inline bool mr_transport_is_stopped(const struct mr_flag *stop)
{
    return stop && mr_flag_is_set(stop);
}
