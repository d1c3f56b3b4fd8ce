/* Functions of the core that its own files call, grouped by the file that defines them. Private to
 * services/objectstore/core. `o` is the number of an object. */
#pragma once

#include "services/objectstore/core/state.h"

/* Functions of table.c: rows of the tables, lists of objects, holders and pins, and waiters. */
struct mr_ostore_effect *mr_ostore__emit(struct mr_ostore *s, enum mr_ostore_effect_type type);
/* returns 0 if the id is unknown */
uint32_t mr_ostore__find(const struct mr_ostore *s, mr_object_id id);
/* returns 0 if the table is full */
uint32_t mr_ostore__object_new(struct mr_ostore *s, mr_object_id id);
void mr_ostore__object_drop(struct mr_ostore *s, uint32_t o);
/* undoes mr_ostore__doubt: the object's holders are no longer in doubt */
void mr_ostore__vouch(struct mr_ostore *s, uint32_t o);
/* says that the object's holders may no longer exist */
void mr_ostore__doubt(struct mr_ostore *s, uint32_t o);
/* moves the object into `list`, as the most recently used one; LIST_NONE: into no list */
void mr_ostore__enlist(struct mr_ostore *s, uint32_t o, enum list list);
/* adds a holder or a pin; false: the table of holders and pins is full */
bool mr_ostore__link(struct mr_ostore *s, uint32_t o, uint32_t kind, uint64_t key);
/* removes a holder or one pin; false: there is no such holder or pin */
bool mr_ostore__unlink(struct mr_ostore *s, uint32_t o, uint32_t kind, uint64_t key);
/* removes all holders that are jobs; false: there are none */
bool mr_ostore__unlink_jobs(struct mr_ostore *s, uint32_t o);
bool mr_ostore__is_held_by(const struct mr_ostore *s, uint32_t o, uint32_t kind, uint64_t key);
bool mr_ostore__has_job(const struct mr_ostore *s, uint32_t o);
/* makes the client of `ev` wait for the object; false: the table of waiters is full */
bool mr_ostore__wait(struct mr_ostore *s, uint32_t o, const struct mr_ostore_event *ev);
void mr_ostore__waiter_drop(struct mr_ostore *s, uint32_t w);
/* returns NULL if the client has gone */
struct client *mr_ostore__client(struct mr_ostore *s, uint32_t number);
/* returns the segment's slot; 0: there is no such segment */
uint32_t mr_ostore__segment_of(const struct mr_ostore *s, uint32_t number);
struct mr_store_holder mr_ostore__some_holder(struct mr_ostore *s, uint32_t o, uint32_t but_client);

/* Functions of answer.c: answers to clients that asked for an object. */
void mr_ostore__refuse_get(
    struct mr_ostore *s, uint32_t client, uint64_t request, mr_object_id id, int err);
void mr_ostore__answer_persist(
    struct mr_ostore *s, uint32_t client, uint64_t request, mr_object_id id, int err);
/* Pins for the client an object that is in memory, and answers the client's get. `flags`: those of
 * the effect GOT. False: the client has gone, or the get was refused because the table of holders
 * and pins is full. */
bool mr_ostore__answer_got(
    struct mr_ostore *s, uint32_t client, uint64_t request, uint32_t o, uint32_t flags);
void mr_ostore__answer_copied(struct mr_ostore *s, uint32_t o, uint32_t flags);
void mr_ostore__answer_waiters(struct mr_ostore *s, uint32_t o, bool persist, int err);
void mr_ostore__waiter_expire(struct mr_ostore *s, uint32_t w, int err);

/* Functions of object.c: the life cycle of an object, and its end. */
void mr_ostore__move_to(struct mr_ostore *s, uint32_t o, enum place to);
void mr_ostore__enlist_recent(struct mr_ostore *s, uint32_t o);
void mr_ostore__leave_room(struct mr_ostore *s, uint32_t o);
void mr_ostore__stop_leaving(struct mr_ostore *s, struct object *x);
void mr_ostore__ask_evict(struct mr_ostore *s, uint32_t o, bool for_ever);
void mr_ostore__placed(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__unplace(struct mr_ostore *s, uint32_t o);
void mr_ostore__live_by_holders(struct mr_ostore *s, uint32_t o, bool on);
/* Called when a holder has gone: frees the object if it has no holder left. */
void mr_ostore__unheld(struct mr_ostore *s, uint32_t o);
/* Deletes the object as soon as no client has it pinned. */
void mr_ostore__doom(struct mr_ostore *s, uint32_t o);
/* Deletes an object that is not in memory, at once. */
void mr_ostore__remove(struct mr_ostore *s, uint32_t o);
void mr_ostore__retry_doomed(struct mr_ostore *s);
void mr_ostore__check_orphans(struct mr_ostore *s);

/* Functions of residency.c: how objects leave memory and come back. */
void mr_ostore__evict(struct mr_ostore *s, uint32_t o);
void mr_ostore__write(struct mr_ostore *s, uint32_t o);
void mr_ostore__fetch(struct mr_ostore *s, uint32_t o, uint32_t source);
void mr_ostore__evicted(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__written(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__fetch_failed(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__recovered(struct mr_ostore *s, const struct mr_ostore_event *ev);

/* Functions of request.c: requests of clients. */
void mr_ostore__seal(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__get(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__want(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__delete(struct mr_ostore *s, const struct mr_ostore_event *ev);

/* Functions of persist.c: objects that have to be on disk. */
void mr_ostore__drain(struct mr_ostore *s);
void mr_ostore__persist(struct mr_ostore *s, const struct mr_ostore_event *ev);

/* Functions of client_groups.c: clients in control groups with a memory limit. */
void mr_ostore__limit(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__group_leave(struct mr_ostore *s, struct client *c);
void mr_ostore__group_closed(struct mr_ostore *s, const struct segment *g);
uint64_t mr_ostore__group_max(const struct mr_ostore *s, uint32_t group); /* UINT64_MAX: no limit */
/* UINT64_MAX: no limit */
uint64_t mr_ostore__group_left(const struct mr_ostore *s, uint32_t group);
/* enters the object in the list of its group, as the most recently used one */
void mr_ostore__group_enlist(struct mr_ostore *s, uint32_t o);
void mr_ostore__group_unlist(struct mr_ostore *s, uint32_t o);
void mr_ostore__group_leaving(struct mr_ostore *s, const struct object *x, bool starts);
void mr_ostore__groups_check(const struct mr_ostore *s);

/* Functions of memory.c: segments, grants of segments, and which objects leave memory. */
void mr_ostore__grant(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__cancel(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__returned(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__room_free(struct mr_ostore *s, uint32_t segment, uint64_t offset, uint64_t room);
void mr_ostore__join(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__gone(struct mr_ostore *s, const struct mr_ostore_event *ev);
void mr_ostore__make_room(struct mr_ostore *s);
void mr_ostore__expire_grants(struct mr_ostore *s);
mr_time mr_ostore__grants_deadline(const struct mr_ostore *s);
