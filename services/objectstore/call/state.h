/* State that the calls and the sessions of the gRPC thread share. Private to services/objectstore.
 * Only the gRPC thread (main) writes the members, except `stopping`. Other threads read `posts`,
 * `sh`, `names`, `places`, `self`, `loop`, `address` and `config`, which do not change while these
 * threads run. */
#pragma once

#include "host/config/config.h"
#include "host/limit/allowance.h"
#include "host/os/stats.h"
#include "rpc/loop.h"
#include "rpc/util/auth.h"
#include "services/objectstore/call/posts.h"
#include "services/objectstore/control/directory.h"
#include "services/objectstore/control/shell.h"

#include <stdatomic.h>

struct mr_service_config {
    const struct mr_texts *listen;
    const char *advertise; /* address for other processes; NULL: the last of `listen` */
    const char *node;
    const char *dir;
    uint64_t directory; /* number of the directory `dir`, from mr_claim_directory; 0: none */
    const char *redis;
    const char *redis_password; /* NULL: none */
    const char *scheduler;
    const char *token_file;
    const char *secret_file;
};

struct mr_channels;
struct mr_checksums_cache;
struct mr_converter;
struct mr_offload;
struct mr_places;
struct mr_scheduler_session;

struct mr_service {
    struct mr_ostore_shell *sh;
    struct mr_service_config config;
    char *address;         /* the address at which other nodes reach this store */
    struct mr_store *self; /* the store's own client; NULL before and after mr_service_run */

    struct mr_rpc_loop *loop;
    struct mr_rpc_server *server;
    struct mr_rpc_auth *auth;
    struct mr_stats *stats;
    struct mr_posts *posts;
    struct mr_converter *converter;
    struct mr_offload *hasher;  /* computes checksums of chunks that other stores pull */
    struct mr_offload *checker; /* copies and checks chunks that this store pulls */
    _Atomic bool stopping;

    struct mr_names *names;
    struct mr_places *places;
    /* the walk over all names (api/name_walk.c) while it waits until `walk_at`, because Redis is
     * away; NULL: no walk waits */
    struct name_walk *walk;
    mr_time walk_at;
    bool names_walked; /* the core knows every object that has a name */

    struct mr_channels *channels; /* channels to other stores; NULL: this store is stopping */
    struct mr_scheduler_session *scheduler_session; /* NULL: started without --scheduler */
    struct mr_checksums_cache *checksums;
    uint32_t pulls_receiving;     /* number of objects that this store is pulling */
    struct mr_list leases;        /* api/lease.c */
    struct mr_list persisting;    /* struct mr_persisting (cluster/scheduler_session.h) */
    struct mr_allowance *uploads; /* limits the bytes of uploads that are not objects yet */
    uint64_t puts, gets, pulls_served;
};
