/* Checkpoints. A checkpoint of a version of the parameters is complete when the owners of all
 * shards have reported their objects of that version. This file also returns a session to its
 * latest complete checkpoint. Objects that are no longer needed are *doomed*: the session's record
 * lists them until they are erased. */
#include "services/trainer/core/internal.h"

#include <stdlib.h>

static void doom_one(struct session *s, uint64_t version, uint32_t shard, mr_object_id object)
{
    if (mr_object_id_is_none(object)) return;
    /* Redis has been away for so long that the list is full: the object stays on disk */
    if (s->doomed_count == s->doomed_max) return;
    s->doomed[s->doomed_count++] = (struct doomed){version, shard, object};
    s->is_dirty = true;
}

static void doom_checkpoint(struct session *s, struct checkpoint *c)
{
    uint32_t shards = mr_training_document_shards(s->document);
    for (uint32_t i = 0; i < shards && c->count; i++) {
        doom_one(s, c->version, i, c->objects[i]);
        c->objects[i] = (mr_object_id){0};
    }
    c->count = 0;
}

static void drop_pending(struct session *s, uint64_t up_to)
{
    for (uint32_t i = 0; i < PENDING_MAX; i++)
        if (s->pending[i].count && s->pending[i].version <= up_to)
            doom_checkpoint(s, &s->pending[i]);
}

/* Dooms the oldest complete checkpoint. The memory of its struct moves behind the last checkpoint,
 * where the next one uses it. */
static void drop_first(struct session *s)
{
    struct checkpoint first = s->checkpoints[0];
    doom_checkpoint(s, &first);
    s->checkpoints_count--;
    memmove(
        &s->checkpoints[0], &s->checkpoints[1], s->checkpoints_count * sizeof s->checkpoints[0]);
    s->checkpoints[s->checkpoints_count] = first;
}

void mr_trainer__doom_all(struct session *s)
{
    if (!s->document) return;
    drop_pending(s, UINT64_MAX);
    while (s->checkpoints_count)
        drop_first(s);
}

static bool is_whole_one(const struct session *s, uint32_t shard, mr_object_id object)
{
    for (uint32_t i = 0; i < s->checkpoints_count; i++)
        if (mr_object_id_eq(s->checkpoints[i].objects[shard], object)) return true;
    return false;
}

static struct checkpoint *pending_of(struct session *s, uint64_t version)
{
    struct checkpoint *lowest = &s->pending[0];
    for (uint32_t i = 0; i < PENDING_MAX; i++)
        if (s->pending[i].count && s->pending[i].version == version) return &s->pending[i];
    for (uint32_t i = 0; i < PENDING_MAX; i++) {
        struct checkpoint *c = &s->pending[i];
        if (!c->count) {
            c->version = version;
            return c;
        }
        if (c->version < lowest->version) lowest = c;
    }
    doom_checkpoint(s, lowest); /* `lowest` is incomplete: an owner stored no object of it */
    lowest->version = version;
    return lowest;
}

static void complete(struct mr_trainer *t, struct session *s, struct checkpoint *c)
{
    while (s->checkpoints_count >= s->document->checkpoint_keep)
        drop_first(s);
    struct checkpoint *to = &s->checkpoints[s->checkpoints_count++];
    mr_object_id *spare = to->objects;
    *to = *c;
    to->wall_ns = t->wall_ns;
    *c = (struct checkpoint){.objects = spare};
    memset(spare, 0, mr_training_document_shards(s->document) * sizeof *spare);
    drop_pending(s, to->version);
}

void mr_trainer__checkpoint_reported(
    struct mr_trainer *t, struct session *s, struct member *m, const struct mr_training_report *r)
{
    mr_object_id object = r->checkpoint_object;
    if (mr_object_id_is_none(object) || mr_object_id_eq(object, m->checkpoint)) return;
    if (!mr_trainer__is_owner(s, m) || is_whole_one(s, m->index, object)) return;
    m->checkpoint = object;
    uint64_t latest = s->checkpoints_count ? s->checkpoints[s->checkpoints_count - 1].version : 0;
    bool is_void = r->restore_epoch != s->restore_epoch;
    if (is_void || (s->checkpoints_count && r->checkpoint_version <= latest)) {
        doom_one(s, r->checkpoint_version, m->index, object);
        return;
    }
    struct checkpoint *c = pending_of(s, r->checkpoint_version);
    if (mr_object_id_eq(c->objects[m->index], object)) return;
    if (mr_object_id_is_none(c->objects[m->index]))
        c->count++;
    else
        doom_one(s, c->version, m->index, c->objects[m->index]);
    c->objects[m->index] = object;
    s->is_dirty = true;
    if (c->count == mr_training_document_shards(s->document)) complete(t, s, c);
}

void mr_trainer__restore(struct mr_trainer *t, struct session *s)
{
    s->restore_epoch++;
    s->restores++;
    s->has_restore = s->checkpoints_count > 0;
    s->restore_version = s->has_restore ? s->checkpoints[s->checkpoints_count - 1].version : 0;
    if (s->version_seen > s->restore_version) s->steps_lost += s->version_seen - s->restore_version;
    s->version = s->version_seen = s->restore_version;
    drop_pending(s, UINT64_MAX);
    for (uint32_t i = 0; i < s->members_count; i++) {
        s->members[i].restored = false;
        s->members[i].version = s->restore_version;
    }
    (void)t;
}
