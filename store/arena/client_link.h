/* Inside the client: the socket, its thread, the questions under way, the mapped segments. Private
 * to store/arena/client*.c, and to the store's own process, which is a client of itself. */
#pragma once

#include "store/arena/client_stop.h"
#include "store/arena/control.h"
#include "store/arena/catalog.h"
#include "store/arena/space.h"

#include <pthread.h>

#define MR_REQUESTS_MAX 4096u /* questions of one client under way */
#define MR_SEGMENT_BLOCK 1024u
#define MR_PIN_BY_STORE UINT64_MAX /* view.pin: the store counts it, not our page */

struct mr_store_segment {
    _Atomic(unsigned char *) base; /* NULL: not mapped */
    uint64_t bytes;
    bool ours;
    _Atomic uint64_t warm; /* ours: pages before this were given before they were written */
};

struct mr_store_request {
    uint64_t number; /* 0: free */
    bool async;
    bool done;
    int err;
    uint64_t token;
    mr_object_id id;
    struct mr_store_view view;
    struct mr_store_stats *stats;
    char text[MR_CTL_TEXT_MAX];
};

struct mr_store_done { /* a completion in the queue */
    struct mr_list node;
    struct mr_store_completion completion;
};

struct mr_store {
    int socket;
    int event_fd;
    pthread_t thread;
    struct mr_ctl_welcome welcome;
    struct mr_catalog catalog;
    void *catalog_map;
    struct mr_pin_page *pins;
    _Atomic uint64_t pins_taken[MR_PIN_SLOTS / 64];
    _Atomic uint32_t pins_hint;
    _Atomic uint64_t number_next;
    _Atomic uint64_t drafts; /* of new objects, not sealed yet */
    _Atomic bool is_dead;
    _Atomic mr_time huge_from; /* before this no huge pages are asked for */
    bool is_stopped;
    _Atomic(struct mr_store_segment *) segments[MR_SEGMENTS_MAX / MR_SEGMENT_BLOCK];

    pthread_mutex_t space_lock; /* guards the space */
    struct mr_space space;

    pthread_mutex_t pool_lock;   /* guards the pool; held while it copies */
    struct mr_thread_pool *pool; /* for puts; NULL before the first large one */

    pthread_mutex_t lock; /* guards all below; taken alone */
    pthread_cond_t changed;
    struct mr_store_request *requests; /* MR_REQUESTS_MAX */
    uint32_t requests_hint;
    uint64_t requests_made;
    uint64_t space_changes;  /* grants and frees seen */
    _Atomic uint64_t orders; /* see below */
    uint32_t grants_asked;   /* for ordinary segments, not answered */
    struct mr_list completions;
    void (*notify)(void *ctx);
    void *notify_ctx;
};

/* Who reads an object comes after who wrote it, and who writes into its room anew after who read it
 * last. It is the store that sees to it, in another process, where a checker of races cannot look:
 * it is told here. */
static inline void mr_store_order_before(struct mr_store *st)
{
#ifdef __SANITIZE_THREAD__
    (void)atomic_fetch_add_explicit(&st->orders, 1, memory_order_release);
#else
    (void)st;
#endif
}

static inline void mr_store_order_after(struct mr_store *st)
{
#ifdef __SANITIZE_THREAD__
    (void)atomic_load_explicit(&st->orders, memory_order_acquire);
#else
    (void)st;
#endif
}

/* Over a connected socket, which it owns from now on, also on failure. `internal` clients may seal
 * under ids they did not make; the store believes it only of its own end of a socketpair. */
int mr_store_open_socket(
    int socket, const char *name, bool internal, struct mr_store **out, struct mr_error *e);

/* Called on the client's thread whenever a completion was queued: for loops that cannot wait on a
 * descriptor. Before the first get_start. */
void mr_store_set_notify(struct mr_store *st, void (*notify)(void *ctx), void *ctx);

/* The first half of a close: ends the client's thread, so that it notifies nobody any more. Views
 * stay mapped and may be released. */
void mr_store_stop(struct mr_store *st);

/* mr_store_create and mr_store_seal under an id that another made: a copy restored or pulled, which
 * has its place among the store's objects already. Internal clients only. */
int mr_store_create_copy(struct mr_store *st, mr_object_id id, uint64_t bytes, mr_duration timeout,
    struct mr_store_draft *out, struct mr_error *e);
int mr_store_seal_copy(struct mr_store *st, struct mr_store_draft *draft, struct mr_error *e);

void *mr_store_thread(void *st); /* reads the socket until it closes */

struct mr_store_segment *mr_store_segment(struct mr_store *st, uint32_t number, bool make);
int mr_store_map(
    struct mr_store *st, uint32_t number, int fd, uint64_t bytes, bool ours, struct mr_error *e);

/* A question: take, send (outside the lock), wait. `take` returns NULL when too many are under
 * way. The caller holds `lock` in all three. */
struct mr_store_request *mr_store_request_take(struct mr_store *st);
void mr_store_request_drop(struct mr_store *st, struct mr_store_request *r);
bool mr_store_wait_changed(struct mr_store *st, mr_time deadline); /* false: past it */
/* Waits for a change, for a moment where there is something that may stop it; true: that did. */
bool mr_store_wait_or_stop(struct mr_store *st, struct mr_stop stop);
int mr_store_stopped_error(struct mr_error *e);
/* Sends a question; a store that does not read is waited for until `stop`: MR_ECANCELED then,
 * without words, and the store has heard nothing. */
int mr_store_send_or_stop(struct mr_store *st, enum mr_ctl_type type, uint64_t number,
    const void *fixed, const mr_object_id *ids, uint32_t n, struct mr_stop stop);

int mr_store_dead_error(struct mr_error *e);
mr_time mr_store_now(void);
