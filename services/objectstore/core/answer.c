/* Answers to gets and to requests to write an object to disk. */
#include "services/objectstore/core/internal.h"

static void answer(
    struct mr_ostore_effect *x, uint32_t client, uint64_t request, mr_object_id id, int err)
{
    x->client = client;
    x->request = request;
    x->id = id;
    x->err = err;
}

void mr_ostore__refuse_get(
    struct mr_ostore *s, uint32_t client, uint64_t request, mr_object_id id, int err)
{
    mr_assert(err);
    answer(mr_ostore__emit(s, MR_OX_GOT), client, request, id, err);
}

void mr_ostore__answer_persist(
    struct mr_ostore *s, uint32_t client, uint64_t request, mr_object_id id, int err)
{
    answer(mr_ostore__emit(s, MR_OX_DONE), client, request, id, err);
}

/* Answers one waiter. A get that succeeds is answered by mr_ostore__answer_got instead. */
static void answer_waiter(struct mr_ostore *s, const struct waiter *x, mr_object_id id, int err)
{
    if (x->persist)
        mr_ostore__answer_persist(s, x->client, x->request, id, err);
    else
        mr_ostore__refuse_get(s, x->client, x->request, id, err);
}

bool mr_ostore__answer_got(
    struct mr_ostore *s, uint32_t client, uint64_t request, uint32_t o, uint32_t flags)
{
    struct object *x = &s->objects[o];
    if (!mr_ostore__client(s, client)) return false;
    if (!mr_ostore__link(s, o, LINK_PIN, client)) {
        mr_ostore__refuse_get(s, client, request, x->id, MR_ELIMIT);
        return false;
    }
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_GOT);
    fx->client = client;
    fx->request = request;
    fx->flags = flags;
    fx->object = o;
    fx->id = x->id;
    fx->segment = x->segment;
    fx->offset = x->offset;
    fx->bytes = x->bytes;
    return true;
}

/* Answers waiting gets, and tells their clients where the object came from. PULLED: only one get is
 * answered, so only one worker counts the transfer. RESTORED: all of them waited for the disk. */
void mr_ostore__answer_copied(struct mr_ostore *s, uint32_t o, uint32_t flags)
{
    bool told = false;
    for (uint32_t w = s->objects[o].waiters, next; w && !told; w = next) {
        const struct waiter x = s->waiters[w];
        next = x.next;
        if (x.persist) continue;
        mr_ostore__waiter_drop(s, w);
        told = mr_ostore__answer_got(s, x.client, x.request, o, flags) && flags == MR_OSTORE_PULLED;
    }
}

void mr_ostore__answer_waiters(struct mr_ostore *s, uint32_t o, bool persist, int err)
{
    for (uint32_t w = s->objects[o].waiters, next; w; w = next) {
        const struct waiter x = s->waiters[w];
        next = x.next;
        if (x.persist != persist) continue;
        mr_ostore__waiter_drop(s, w);
        if (err || persist)
            answer_waiter(s, &x, s->objects[o].id, err);
        else
            (void)mr_ostore__answer_got(s, x.client, x.request, o, 0);
    }
}

void mr_ostore__waiter_expire(struct mr_ostore *s, uint32_t w, int err)
{
    struct waiter x = s->waiters[w];
    answer_waiter(s, &x, s->objects[x.object].id, err);
    mr_ostore__waiter_drop(s, w);
    struct object *object = &s->objects[x.object];
    if (object->place == PLACE_WANTED && !object->waiters) mr_ostore__object_drop(s, x.object);
}
