/* Reads all names at the start of the store. A name holds its object even after a restart of the
 * store. But the core forgets all holders when the process ends. So all names are read, and the
 * core is told that each name holds its object. */
#include "services/objectstore/api/internal.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "services/objectstore/call/lookup.h"

#define WALK_AGAIN (200 * MR_MS)
#define NAMES_PAGE 1000u

struct name_walk {
    struct mr_service *sv;
    char *after;
};

struct noted {
    struct mr_service *sv;
    char *name;
    mr_object_id object;
    /* the object was in the memory of this store's previous process, and may be gone */
    bool may_be_stale;
    struct mr_ask ask;
};

static void noted_free(struct noted *n)
{
    mr_release(n->ask.infos);
    mr_release(n->name);
    mr_release(n);
}

static void note_looked_up(struct mr_ask *ask)
{
    struct noted *n = ask->ctx;
    if (ask->err) mr_naming_remove(n->sv, mr_str(n->name), n->object);
    noted_free(n);
}

static void note_name(void *p)
{
    struct noted *n = p;
    mr_names_note(n->sv->names, mr_name_key(mr_str(n->name)), mr_str(n->name));
    n->ask = (struct mr_ask){
        .type = MR_ASK_STAT, .ev = {.id = n->object}, .done = note_looked_up, .ctx = n};
    if (!n->may_be_stale || mr_ostore_shell_ask(n->sv->sh, &n->ask)) noted_free(n);
}

static void take_name(struct mr_service *sv, const struct mr_name_record *r)
{
    struct noted *n = mr_alloc(sizeof *n);
    n->sv = sv;
    n->name = mr_format("%.*s", MR_STR_ARG(r->name));
    n->object = r->object;
    n->may_be_stale = !r->durable && mr_str_eq(r->node, mr_str(sv->config.node));
    mr_posts_add(sv->posts, note_name, n);
    mr_ostore_shell_post(sv->sh,
        &(struct mr_ostore_event){
            .type = MR_OE_HOLD, .id = r->object, .holder = {MR_HOLD_NAME, mr_name_key(r->name)}});
}

static void walk_names(void *p);

/* Redis is away: the walk goes on after WALK_AGAIN. */
static void walk_later(void *p)
{
    struct name_walk *walk = p;
    walk->sv->walk = walk;
    walk->sv->walk_at = mr_time_after(mr_clock_now(), WALK_AGAIN);
}

/* Called when all names are read. The core keeps objects that need a holder and were found on disk,
 * until the event OFFERED says that the scheduler was asked whether a job claims them. Without a
 * scheduler there are no jobs, so this function posts the event for all objects. Some time later
 * the core frees those of these objects that no name holds. */
static void all_named(void *p)
{
    struct mr_service *sv = p;
    sv->names_walked = true;
    if (!sv->config.scheduler)
        mr_ostore_shell_post(sv->sh, &(struct mr_ostore_event){.type = MR_OE_OFFERED});
}

/* Takes a page of names. Called on any thread. */
static void names_page(
    void *ctx, int err, const struct mr_name_record *records, size_t count, bool more)
{
    struct name_walk *walk = ctx;
    for (size_t i = 0; i < count && !err; i++)
        take_name(walk->sv, &records[i]);
    if (err == MR_EAWAY) {
        mr_posts_add(walk->sv->posts, walk_later, walk);
        return;
    }
    mr_release(walk->after);
    walk->after = NULL;
    if (!err && !(more && count)) mr_posts_add(walk->sv->posts, all_named, walk->sv);
    if (!err && more && count) {
        walk->after = mr_format("%.*s", MR_STR_ARG(records[count - 1].name));
        mr_posts_add(walk->sv->posts, walk_names, walk);
        return;
    }
    mr_release(walk);
}

static void walk_names(void *p)
{
    struct name_walk *walk = p;
    mr_names_list(walk->sv->names, MR_STR(""), walk->after ? mr_str(walk->after) : MR_STR(""),
        NAMES_PAGE, names_page, walk);
}

void mr_name_walk_start(struct mr_service *sv)
{
    struct name_walk *walk = mr_alloc(sizeof *walk);
    walk->sv = sv;
    walk_names(walk);
}

mr_time mr_name_walk_turn(struct mr_service *sv, mr_time now)
{
    if (sv->walk && sv->walk_at <= now) walk_names(MR_STEAL(sv->walk));
    return sv->walk ? sv->walk_at : MR_NEVER;
}

void mr_name_walk_stop(struct mr_service *sv)
{
    if (!sv->walk) return;
    mr_release(sv->walk->after);
    mr_release(sv->walk);
    sv->walk = NULL;
}
