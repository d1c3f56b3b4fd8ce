/* What the files of the core do for each other. Private to services/objectstore/core*.c. */
#pragma once

#include "services/objectstore/core/state.h"

/* table.c: numbers, lists, links, waiters */
struct mr_ostore_effect *mr_ostore_emit(struct mr_ostore *s, enum mr_ostore_effect_type type);
uint32_t mr_ostore_find(const struct mr_ostore *s, mr_object_id id); /* 0: unknown */
uint32_t mr_ostore_object_new(struct mr_ostore *s, mr_object_id id); /* 0: full */
void mr_ostore_object_drop(struct mr_ostore *s, uint32_t o);
void mr_ostore_enlist(struct mr_ostore *s, uint32_t o, enum list list); /* at the recent end */
bool mr_ostore_link(struct mr_ostore *s, uint32_t o, uint32_t kind, uint64_t key);
bool mr_ostore_unlink(struct mr_ostore *s, uint32_t o, uint32_t kind, uint64_t key);
bool mr_ostore_unlink_jobs(struct mr_ostore *s, uint32_t o);
bool mr_ostore_is_held_by(const struct mr_ostore *s, uint32_t o, uint32_t kind, uint64_t key);
bool mr_ostore_has_job(const struct mr_ostore *s, uint32_t o);
bool mr_ostore_wait(struct mr_ostore *s, uint32_t o, const struct mr_ostore_event *ev);
void mr_ostore_waiter_drop(struct mr_ostore *s, uint32_t w);
struct client *mr_ostore_client(struct mr_ostore *s, uint32_t number);     /* NULL: dead */
uint32_t mr_ostore_segment_of(const struct mr_ostore *s, uint32_t number); /* slot, 0: none */
struct mr_store_holder mr_ostore_some_holder(
    const struct mr_ostore *s, uint32_t o, uint32_t but_client);

/* object.c: lives */
void mr_ostore_seal(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_get(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_want(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_delete(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_evict(struct mr_ostore *s, uint32_t o);
void mr_ostore_write(struct mr_ostore *s, uint32_t o);
void mr_ostore_evicted(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_written(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_fetch_failed(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_recovered(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_placed(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_doom(struct mr_ostore *s, uint32_t o);
void mr_ostore_unheld(struct mr_ostore *s, uint32_t o); /* a holder went: was it the last? */
void mr_ostore_waiter_expire(struct mr_ostore *s, uint32_t w, int err);
void mr_ostore_retry_doomed(struct mr_ostore *s);
void mr_ostore_check_orphans(struct mr_ostore *s);
void mr_ostore_vouch(struct mr_ostore *s, uint32_t o);
void mr_ostore_doubt(struct mr_ostore *s, uint32_t o);
void mr_ostore_live_by_holders(struct mr_ostore *s, uint32_t o, bool on);
/* To a get (that fails), or to whoever wants it on disk. */
void mr_ostore_answer(
    struct mr_ostore *s, uint32_t client, uint64_t request, bool persist, mr_object_id id, int err);

/* persist.c: what is to be on disk */
void mr_ostore_drain(struct mr_ostore *s);
void mr_ostore_persist(struct mr_ostore *s, const struct mr_ostore_event *ev);

/* client_groups.c: clients in control groups with a limit */
void mr_ostore_limit(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_group_leave(struct mr_ostore *s, struct client *c);
void mr_ostore_group_closed(struct mr_ostore *s, const struct segment *g);
uint64_t mr_ostore_group_max(const struct mr_ostore *s, uint32_t group);  /* UINT64_MAX: no bound */
uint64_t mr_ostore_group_left(const struct mr_ostore *s, uint32_t group); /* the same */
void mr_ostore_group_enlist(struct mr_ostore *s, uint32_t o);             /* at the recent end */
void mr_ostore_group_unlist(struct mr_ostore *s, uint32_t o);
void mr_ostore_group_leaving(struct mr_ostore *s, const struct object *x, bool starts);
void mr_ostore_groups_check(const struct mr_ostore *s);

/* memory.c: segments, grants, what has to leave */
void mr_ostore_grant(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_cancel(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_returned(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_room_free(struct mr_ostore *s, uint32_t segment, uint64_t offset, uint64_t room);
void mr_ostore_join(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_gone(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore_make_room(struct mr_ostore *s);
void mr_ostore_expire_grants(struct mr_ostore *s);
mr_time mr_ostore_grants_deadline(const struct mr_ostore *s);
