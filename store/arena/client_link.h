/* Private to store/arena/client*.c and to the object store's own process, which is a client of
 * itself: the socket, its thread, the open requests and the mapped segments. */
#pragma once

#include "store/arena/client_stop.h"
#include "store/arena/control.h"
#include "store/arena/catalog.h"
#include "store/arena/space.h"

#include <pthread.h>

#define MR_REQUESTS_MAX 4096u /* requests of one client that have no answer yet */
#define MR_SEGMENT_BLOCK 1024u
/* A value of view.pin: the store counts this pin, which has no slot in the client's pin page. */
#define MR_PIN_BY_STORE UINT64_MAX

struct mr_store_segment {
    _Atomic(unsigned char *) base; /* NULL: the segment is not mapped */
    uint64_t bytes;
    bool ours;
    /* For a segment of this client: pages before this offset have been populated. */
    _Atomic uint64_t warm;
};

struct mr_store_request {
    uint64_t number; /* number of the request; 0: the entry is free */
    bool async;
    bool done;
    int err;
    mr_duration waited_ns; /* of a GRANT: time in which the store had no room */
    mr_time asked_at;      /* of a GET */
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
    _Atomic uint64_t drafts; /* new objects that are not sealed yet */
    _Atomic bool is_dead;
    /* No huge pages are requested before this time, because they were expensive. */
    _Atomic mr_time huge_from;
    bool is_stopped;
    _Atomic(struct mr_store_segment *) segments[MR_SEGMENTS_MAX / MR_SEGMENT_BLOCK];

    pthread_mutex_t space_lock; /* protects `space` */
    struct mr_space space;

    pthread_mutex_t pool_lock;   /* protects the pool; held during a copy */
    struct mr_thread_pool *pool; /* copies large objects; NULL until the first one is put */

    /* Protects the members below; never held together with another lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct mr_store_request *requests; /* an array of MR_REQUESTS_MAX */
    uint32_t requests_hint;
    uint64_t requests_made;
    /* grows when the store answers a request for a segment, and when space in a segment is freed */
    uint64_t space_changes;
    _Atomic uint64_t orders; /* used by mr_store_order_before and mr_store_order_after */
    uint32_t grants_asked;   /* requests for ordinary segments that have no answer yet */
    struct mr_list completions;
    void (*notify)(void *ctx);
    void *notify_ctx;
};

/* For ThreadSanitizer alone. The store makes sure that an object is read only after it was
 * written, and that its room is written again only after the last read. This order goes through
 * another process, where ThreadSanitizer cannot see it, so these two functions repeat it in this
 * process. */
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

/* Opens a client over a connected socket. The client owns the socket from now on, also after an
 * error. An `internal` client may seal objects under ids that it did not make; the store allows
 * this only on its own end of a socketpair. */
int mr_store_open_socket(
    int socket, const char *name, bool internal, struct mr_store **out, struct mr_error *e);

/* Sets a function that is called on the client's thread whenever a completion is queued, for event
 * loops that cannot poll mr_store_fd. To be called before the first mr_store_get_start. */
void mr_store_set_notify(struct mr_store *st, void (*notify)(void *ctx), void *ctx);

/* The first half of mr_store_close: ends the client's thread. After that no notify function is
 * called. Views stay mapped and may still be released. */
void mr_store_stop(struct mr_store *st);

/* For internal clients: do the same as mr_store_create and mr_store_seal, but under the id of an
 * existing object, for a copy that was restored from disk or pulled from another store. A copy does
 * not count against the store's limit of objects. */
int mr_store_create_copy(struct mr_store *st, mr_object_id id, uint64_t bytes, mr_duration timeout,
    struct mr_store_draft *out, struct mr_error *e);
int mr_store_seal_copy(struct mr_store *st, struct mr_store_draft *draft, struct mr_error *e);

void *mr_store_thread(void *st); /* the client's thread: reads the socket until it is closed */

struct mr_store_segment *mr_store_segment(struct mr_store *st, uint32_t number, bool make);

/* mr_store_request_take takes a free request; NULL: too many requests are open.
 * mr_store_request_drop gives the request up. A caller takes a request, sends it, waits for its
 * answer and gives it up. The caller holds `lock` all this time, except while it sends. */
struct mr_store_request *mr_store_request_take(struct mr_store *st);
void mr_store_request_drop(struct mr_store *st, struct mr_store_request *r);
/* Waits for a change of the client's state; the caller holds `lock`. False: the deadline has
 * passed. */
bool mr_store_wait_changed(struct mr_store *st, mr_time deadline);
/* Waits for a change of the client's state, and at most MR_STOP_LOOK if `stop` has a function. The
 * caller holds `lock`. True: `stop` is set. False: it is not. */
bool mr_store_wait_or_stop(struct mr_store *st, struct mr_stop stop);
int mr_store_stopped_error(struct mr_error *e);
/* Sends a request. If the socket is full, waits for room or until `stop` is set. MR_ECANCELED,
 * without an error text: `stop` was set, and nothing was sent. */
int mr_store_send_or_stop(struct mr_store *st, const struct mr_ctl_message *m, struct mr_stop stop);

int mr_store_dead_error(struct mr_error *e);
mr_time mr_store_now(void);
