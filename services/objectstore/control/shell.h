/* The store around its core. Private to services/objectstore. It has four kinds of threads:
 *
 * - The control thread owns the core, the catalog and the sockets of local clients.
 * - The gRPC thread (main) serves all other clients.
 * - Writers write to the disk.
 * - Fetchers restore objects from the disk, and wait for room for copies.
 *
 * The last three kinds are clients of the store like any other, over a socketpair, and send
 * messages to the control thread's inbox. */
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
    const char *dir;       /* NULL: nothing is written to disk */
    uint64_t memory_bytes; /* limit of memory for objects */
    uint64_t group;        /* the control group that limits this process's memory; 0: none */
    uint32_t objects_max;
    /* objects whose holders may be lost are freed unless a job claims them within this time */
    mr_duration claim_time;
    struct mr_peer_rules peers; /* users that may connect to UNIX sockets */
};

/* A question from the gRPC thread that only the core can answer. The thread that has the question
 * owns it: first the gRPC thread, then the control thread, then the gRPC thread again. */
enum mr_ask_type {
    MR_ASK_STAT,
    MR_ASK_PAGE,
    MR_ASK_STATS,
    MR_ASK_MISSING, /* asks which of the ids in `infos` are not in this store */
    /* asks for ids of objects whose holders may no longer exist; the asker offers them to the
     * scheduler, and the core treats them as offered (event OFFERED) */
    MR_ASK_OFFER,
    /* passes an event to the core: DELETE and PERSIST are answered when the core is done with them,
     * HOLD and UNHOLD at once */
    MR_ASK_EVENT,
};

struct mr_ask {
    enum mr_ask_type type;
    struct mr_ostore_event ev; /* only in EVENT; in STAT only its `id` */
    uint64_t after;            /* only in PAGE: asks for objects with a higher `sequence` */
    size_t n_max;              /* only in PAGE and OFFER: limit of the answer */
    /* The answer: */
    int err;
    struct mr_store_holder holder; /* only in DELETE: a holder that still holds the object */
    /* only in STAT (one element), PAGE, OFFER and MISSING; the asker frees it with mr_release */
    struct mr_ostore_info *infos;
    size_t infos_count;
    struct mr_store_stats stats;
    struct mr_ostore_disk disk; /* only in STATS */
    /* For the caller: */
    void (*done)(struct mr_ask *ask); /* called on the gRPC thread, which owns the question again */
    void *ctx;
    uint64_t number; /* number that the shell gives the question */
};

struct mr_ostore_shell_item {  /* a message in the control thread's inbox */
    struct mr_ostore_event ev; /* used if `ask` is NULL */
    struct mr_ask *ask;
};

struct mr_ostore_shell_segment {
    int fd; /* valid unless bytes is 0 */
    bool sealed;
    uint64_t bytes;
};

#define MR_SOURCES_MAX 4096u
#define MR_ASKS_MAX 4096u

struct mr_ostore_shell {
    struct mr_ostore_shell_config config;
    struct mr_ostore *core;
    struct mr_ostore_effects fx;
    struct mr_ctl_welcome welcome; /* sent to every client; `maker` differs for each */
    int catalog_fd;
    void *catalog_map;
    struct mr_catalog catalog;
    int epoll_fd, wake_fd, listen_fd;
    struct mr_inbox *inbox;
    bool said_full; /* the last log event about the disk was disk.full */
    bool is_draining;
    int drained_fd; /* an eventfd, which is signalled when a drain has written everything */

    struct mr_local_client **clients; /* `clients_count` clients, without gaps */
    uint32_t clients_count;
    uint32_t client_number;                   /* the number of the client that connected last */
    struct mr_ostore_shell_segment *segments; /* by number */
    uint32_t segments_room;
    char **sources; /* addresses of other stores; the core knows them by number, from 1 */
    uint32_t sources_count;
    uint32_t *seen; /* for each object, the number of the last scan that found it pinned */
    uint32_t scans;
    uint64_t pinned_bytes;         /* bytes that the running scan has counted as pinned */
    void *buffer;                  /* memory for one message of a client */
    struct mr_ostore_event *queue; /* events that effects have caused, in order */
    size_t queue_count, queue_room;
    struct mr_ostore_effect *evicts; /* EVICT effects of the running step */
    size_t evicts_count, evicts_room;

    struct mr_ask **asks; /* questions of type MR_ASK_EVENT that wait for their answer */
    uint32_t asks_count;
    uint64_t ask_number;

    /* Callbacks of the gRPC side, called on the control thread with `answer_ctx`. */
    void (*answer)(void *ctx, struct mr_ask *ask); /* hands an answered question over */
    /* Starts a copy. `source` NULL: the cluster's directory tells where the object is. */
    void (*pull)(void *ctx, mr_object_id id, const char *source);
    void (*lost)(void *ctx, mr_object_id id); /* tells the scheduler that the object is lost */
    /* Removes this node's entry for the object in the cluster's directory. No wait for Redis. */
    void (*unplace)(void *ctx, mr_object_id id);
    void *answer_ctx;
    const char *address; /* address of this store's gRPC server; NULL: none */

    struct mr_disk *disk;
};

/* Opens all of the store except the threads. Binds the socket, so that clients may connect at
 * once. */
int mr_ostore_shell_open(
    const struct mr_ostore_shell_config *config, struct mr_ostore_shell **out, struct mr_error *e);
void mr_ostore_shell_close(struct mr_ostore_shell **sh);
/* Connects a client inside this process. Called before mr_ostore_shell_run. */
int mr_ostore_shell_connect(struct mr_ostore_shell *sh, int *socket, struct mr_error *e);
/* The control thread: runs until mr_ostore_shell_stop. */
void mr_ostore_shell_run(void *sh);
void mr_ostore_shell_stop(struct mr_ostore_shell *sh);
/* Answers with MR_EAWAY the questions that still wait for their answer. Called on the gRPC thread
 * when the control thread has ended. */
void mr_ostore_shell_end_asks(struct mr_ostore_shell *sh);
/* Writes to disk the objects that jobs and names hold, and waits for the writes. False: the writes
 * took longer than `timeout`. */
bool mr_ostore_shell_drain(struct mr_ostore_shell *sh, mr_duration timeout);

/* Passes an event to the core. Any thread may call this function. */
void mr_ostore_shell_post(struct mr_ostore_shell *sh, const struct mr_ostore_event *ev);
/* Passes a question to the core. Any thread may call this function. MR_ELIMIT: the inbox is full,
 * and the question is still the caller's. */
int mr_ostore_shell_ask(struct mr_ostore_shell *sh, struct mr_ask *ask);

/* Steps the core with `ev` and carries out the effects, then does the same with the events that the
 * effects cause. Called on the control thread. */
void mr_ostore_shell_step(struct mr_ostore_shell *sh, const struct mr_ostore_event *ev);
/* Queues an event that an effect has caused, for the running step. Called on the control thread. */
void mr_ostore_shell_queue(struct mr_ostore_shell *sh, const struct mr_ostore_event *ev);
/* Returns the number by which the core knows another store's address. 0: there are too many
 * addresses. Called on the control thread. */
uint32_t mr_ostore_shell_source(struct mr_ostore_shell *sh, const char *address);
/* Tells the core which objects clients have read since the last call. Called on the control
 * thread. */
void mr_ostore_shell_note_recent(struct mr_ostore_shell *sh);
/* Writes a description of a holder for messages and listings. Any thread may call this function. */
void mr_ostore_shell_holder_text(struct mr_store_holder h, char *out, size_t n);
