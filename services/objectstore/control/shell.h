/* Private to services/objectstore: the store around its core. It has four kinds of threads. The
 * control thread owns the core, the directory and the sockets of local clients. The gRPC thread
 * (main) serves all other clients. Writers write to the disk. Fetchers restore from it and wait
 * for room. The last three kinds are clients of the store like any other, over a socketpair, and
 * send messages to the control thread's inbox. */
#pragma once

#include "host/inbox.h"
#include "host/os/peer.h"
#include "services/objectstore/core/info.h"
#include "store/arena/catalog.h"
#include "store/arena/client_link.h"

struct mr_disk;
struct mr_local_client;

struct mr_ostore_shell_config {
    const char *socket_path;
    const char *node;
    const char *dir; /* NULL: no disk */
    uint64_t memory_bytes;
    uint64_t group; /* the control group that limits this process's memory; 0: none */
    uint32_t objects_max;
    mr_duration claim_time;     /* objects that no job claims within it are freed */
    struct mr_peer_rules peers; /* who may connect to UNIX sockets */
};

/* A question from the gRPC thread about what only the core knows. It moves to the control thread
 * and back; the thread that has it owns it. */
enum mr_ask_type {
    MR_ASK_STAT,
    MR_ASK_PAGE,
    MR_ASK_STATS,
    MR_ASK_MISSING, /* of the ids in `infos`, those of objects that are not here */
    MR_ASK_OFFER,   /* ids of the unvouched in `infos`; they count as offered */
    MR_ASK_EVENT,   /* DELETE, PERSIST (answered when done), HOLD, UNHOLD (at once) */
};

struct mr_ask {
    enum mr_ask_type type;
    struct mr_ostore_event ev; /* of EVENT; `id` also of STAT */
    uint64_t after;            /* of PAGE */
    size_t n_max;
    /* the answer */
    int err;
    struct mr_store_holder holder; /* the holder that prevents a DELETE */
    struct mr_ostore_info *infos;  /* of STAT (one), PAGE, MISSING; mr_release it */
    size_t infos_count;
    struct mr_store_stats stats;
    struct mr_ostore_disk disk; /* of STATS */
    /* for the caller */
    void (*done)(struct mr_ask *ask); /* called on the gRPC thread; frees it */
    void *ctx;
    uint64_t number;
};

struct mr_ostore_shell_item {  /* in the control thread's inbox */
    struct mr_ostore_event ev; /* unless `ask` */
    struct mr_ask *ask;
};

struct mr_ostore_shell_segment {
    int fd; /* of use while bytes != 0 */
    bool sealed;
    uint64_t bytes;
};

#define MR_SOURCES_MAX 4096u
#define MR_ASKS_MAX 4096u

struct mr_ostore_shell {
    struct mr_ostore_shell_config config;
    struct mr_ostore *core;
    struct mr_ostore_effects fx;
    struct mr_ctl_welcome welcome; /* without a maker */
    int catalog_fd;
    void *catalog_map;
    struct mr_catalog catalog;
    int epoll_fd, wake_fd, listen_fd;
    struct mr_inbox *inbox;
    bool stopping;
    bool said_full; /* the disk is; so it was logged */
    bool is_draining;
    int drained_fd; /* eventfd: what had to be written is */

    struct mr_local_client **clients; /* `clients_count`, dense */
    uint32_t clients_count;
    uint32_t client_number;                   /* the last one given */
    struct mr_ostore_shell_segment *segments; /* by number */
    uint32_t segments_room;
    char **sources; /* addresses of other stores, from 1 */
    uint32_t sources_count;
    uint32_t *seen; /* by entry: the number of the scan that saw it pinned */
    uint32_t scans;
    uint64_t pinned_bytes;         /* of the scan under way */
    void *buffer;                  /* one packet */
    struct mr_ostore_event *queue; /* events that effects made, in order */
    size_t queue_count, queue_room;
    struct mr_ostore_effect *evicts; /* of the step under way */
    size_t evicts_count, evicts_room;

    struct mr_ask **asks; /* EVENTs that wait for an effect */
    uint32_t asks_count;
    uint64_t ask_number;
    void (*answer)(void *ctx, struct mr_ask *ask); /* gives an ask back, from the control thread */
    /* The same; starts a transfer. Source NULL: the cluster's directory has the source. */
    void (*pull)(void *ctx, mr_object_id id, const char *source);
    void (*lost)(void *ctx, mr_object_id id);    /* the same: tells the scheduler */
    void (*unplace)(void *ctx, mr_object_id id); /* takes its entry from the directory; no wait */
    void *answer_ctx;
    const char *address; /* of our own gRPC; NULL: none */

    struct mr_disk *disk;
};

/* Everything but the threads. The socket is bound here, so that clients may connect at once. */
int mr_ostore_shell_open(
    const struct mr_ostore_shell_config *config, struct mr_ostore_shell **out, struct mr_error *e);
void mr_ostore_shell_close(struct mr_ostore_shell **sh);
int mr_ostore_shell_connect(
    struct mr_ostore_shell *sh, int *socket, struct mr_error *e); /* before the run */
void mr_ostore_shell_run(void *sh); /* the control thread, until mr_ostore_shell_stop */
void mr_ostore_shell_stop(struct mr_ostore_shell *sh);
/* Writes what jobs and names hold to the disk and waits for it; false: not in time. */
bool mr_ostore_shell_drain(struct mr_ostore_shell *sh, mr_duration timeout);

/* Any thread. */
void mr_ostore_shell_post(struct mr_ostore_shell *sh, const struct mr_ostore_event *ev);
int mr_ostore_shell_ask(
    struct mr_ostore_shell *sh, struct mr_ask *ask); /* MR_ELIMIT: still the caller's */

/* Control thread: one event through the core, its effects carried out, and what follows from them.
 */
void mr_ostore_shell_step(struct mr_ostore_shell *sh, const struct mr_ostore_event *ev);
void mr_ostore_shell_effects(struct mr_ostore_shell *sh); /* effects.c */
void mr_ostore_shell_stats(struct mr_ostore_shell *sh, struct mr_store_stats *out);
void mr_ostore_shell_queue(
    struct mr_ostore_shell *sh, const struct mr_ostore_event *ev); /* from within effects */
uint32_t mr_ostore_shell_source(
    struct mr_ostore_shell *sh, const char *address); /* 0: none, or too many */
void mr_ostore_shell_holder_text(struct mr_store_holder h, char *out, size_t n);
void mr_ostore_shell_note_recent(struct mr_ostore_shell *sh);

/* local_client.c: the local clients */
int mr_local_clients_listen(struct mr_ostore_shell *sh, struct mr_error *e);
void mr_local_clients_accept(struct mr_ostore_shell *sh);
void mr_local_clients_add(struct mr_ostore_shell *sh, int fd, bool internal);
void mr_local_client_handle(
    struct mr_ostore_shell *sh, struct mr_local_client *peer, uint32_t epoll_events);
void mr_local_clients_close(struct mr_ostore_shell *sh);
struct mr_local_client *mr_local_client_find(
    struct mr_ostore_shell *sh, uint32_t client); /* NULL: gone */
void mr_local_client_send(struct mr_ostore_shell *sh, struct mr_local_client *p,
    enum mr_ctl_type type, uint64_t request, const void *fixed, const void *items, uint32_t count,
    int fd);
void mr_local_client_free_room(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_freed *room);
void mr_local_client_flush_freed(struct mr_ostore_shell *sh, struct mr_local_client *p);
/* Was this segment's descriptor sent to it? Marks it as sent. */
bool mr_local_client_knows_segment(struct mr_local_client *p, uint32_t segment);
void mr_local_client_forget_segment(struct mr_local_client *p, uint32_t segment, bool *knew);
const struct mr_pin_page *mr_local_client_pins(const struct mr_local_client *p);
uint32_t *mr_local_client_recent(struct mr_local_client *p);
/* One id of a DELETE is done; the last one sends the answer. */
void mr_local_client_deleted(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ostore_effect *x);
