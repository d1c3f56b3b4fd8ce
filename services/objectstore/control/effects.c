/* Carries out the effects of the core: changes the catalog, closes segments, answers clients, and
 * scans for pins before an eviction. */
#include "services/objectstore/control/effects.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/os/log.h"
#include "services/objectstore/control/disk_threads.h"
#include "services/objectstore/control/local_client.h"
#include "store/arena/segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct mr_ostore_shell_segment *segment_at(struct mr_ostore_shell *sh, uint32_t number)
{
    if (number >= sh->segments_room) {
        uint32_t room = MR_MAX(number + 1, sh->segments_room * 2);
        sh->segments = mr_grow(
            sh->segments, sh->segments_room * sizeof *sh->segments, room * sizeof *sh->segments);
        sh->segments_room = room;
    }
    return &sh->segments[number];
}

static void refuse_grant(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x, int code)
{
    struct mr_local_client *p = mr_local_client_find(sh, x->client);
    if (!p) return;
    struct mr_ctl_granted g = {.err = code};
    if (x->room && code == MR_ETOOBIG)
        snprintf(g.text, sizeof g.text,
            "an object that needs %" PRIu64 " bytes is more than the %" PRIu64
            " bytes that this process may write into shared memory: the memory limit of its "
            "control group allows no more",
            x->bytes, x->room);
    else if (x->room && !mr_ostore_disk(sh->core).is_full)
        snprintf(g.text, sizeof g.text,
            "the memory limit of this process's control group allows %" PRIu64
            " bytes of its objects in memory, and %" PRIu64
            " did not become free in time; its objects are pinned, or cannot be spilled%s",
            x->room, x->bytes,
            sh->config.dir ? "" : " (the object store was started without --dir)");
    else if (code == MR_ETOOBIG)
        snprintf(g.text, sizeof g.text,
            "an object that needs %" PRIu64
            " bytes does not fit the store, whose memory is %" PRIu64,
            x->bytes, sh->config.memory_bytes);
    else if (mr_ostore_disk(sh->core).is_full)
        snprintf(g.text, sizeof g.text,
            "no space left on %.200s, where the object store spills what does not fit into memory: "
            "%" PRIu64 " bytes did not become free in time",
            sh->config.dir, x->bytes);
    else
        snprintf(g.text, sizeof g.text,
            "the object store is full: %" PRIu64
            " bytes did not become free in time; its objects are "
            "pinned, or cannot be spilled%s",
            x->bytes, sh->config.dir ? "" : " (it was started without --dir)");
    mr_local_client_send(sh, p,
        &(struct mr_local_message){.type = MR_CTL_GRANTED, .request = x->request, .fixed = &g});
}

static void on_granted(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    if (x->err) {
        refuse_grant(sh, x, x->err);
        return;
    }
    struct mr_local_client *p = mr_local_client_find(sh, x->client);
    struct mr_ostore_shell_segment *g = segment_at(sh, x->segment);
    struct mr_error e;
    int err = p ? mr_segment_make("mr-segment", x->bytes, &g->fd, &e) : MR_EAWAY;
    if (err) {
        if (p)
            mr_log(MR_ERROR, "segment.failed", "bytes=%" PRIu64 " what=\"%s\"", x->bytes, e.text);
        refuse_grant(sh, x, MR_ELIMIT);
        struct mr_ostore_event back = {
            .type = MR_OE_RETURN, .client = x->client, .segment = x->segment};
        mr_ostore_shell_queue(sh, &back);
        return;
    }
    g->bytes = x->bytes;
    g->sealed = false;
    (void)mr_local_client_knows_segment(p, x->segment);
    struct mr_ctl_granted granted = {
        .segment = x->segment, .bytes = x->bytes, .waited_ns = x->waited};
    mr_local_client_send(sh, p,
        &(struct mr_local_message){
            .type = MR_CTL_GRANTED, .request = x->request, .fixed = &granted, .fd = &g->fd});
}

static void explain_get(const struct mr_ostore_shell *sh, struct mr_ctl_got *got, mr_object_id id)
{
    char text[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(id, text);
    const char *why = "is not available";
    if (got->err == MR_ETIMEOUT) why = "did not arrive within the timeout";
    if (got->err == MR_EAGAIN) why = "is not in the memory of this store";
    if (got->err == MR_ELOST) why = "was deleted, or its only copy is lost";
    if (got->err == MR_ELIMIT)
        why =
            "does not fit: too many objects are pinned or waited for, or the limit --objects is reached";
    if (got->err == MR_EAWAY) why = "could not be pulled: the store that has it does not answer";
    if (got->err == MR_ENOENT) why = "is not in the store that should have it";
    if (got->err == MR_ELIMIT && mr_ostore_disk(sh->core).is_full)
        snprintf(got->text, sizeof got->text,
            "object %s does not fit: no space left on %.200s, so no other object can leave memory",
            text, sh->config.dir);
    else
        snprintf(got->text, sizeof got->text, "object %s %s", text, why);
}

static void on_got(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    struct mr_local_client *p = mr_local_client_find(sh, x->client);
    if (!p) return;
    struct mr_ctl_got got = {.id = x->id, .err = x->err};
    const int *fd = NULL;
    if (x->err) {
        explain_get(sh, &got, x->id);
    } else {
        const struct mr_ostore_shell_segment *g = segment_at(sh, x->segment);
        got.segment = x->segment;
        got.segment_bytes = g->bytes;
        got.offset = x->offset;
        got.bytes = x->bytes;
        if (x->flags & MR_OSTORE_PULLED) got.came = MR_CTL_PULLED;
        if (x->flags & MR_OSTORE_RESTORED) got.came = MR_CTL_RESTORED;
        if (!mr_local_client_knows_segment(p, x->segment)) fd = &g->fd;
    }
    mr_local_client_send(sh, p,
        &(struct mr_local_message){
            .type = MR_CTL_GOT, .request = x->request, .fixed = &got, .fd = fd});
}

static void on_done(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    struct mr_local_client *p = mr_local_client_find(sh, x->client);
    if (p) {
        mr_local_client_deleted(sh, p, x);
        return;
    }
    for (uint32_t i = 0; i < sh->asks_count && !x->client; i++) {
        struct mr_ask *ask = sh->asks[i];
        if (ask->number != x->request) continue;
        sh->asks[i] = sh->asks[--sh->asks_count];
        ask->err = x->err;
        ask->holder = x->holder;
        sh->answer(sh->answer_ctx, ask);
        return;
    }
}

/* Publishes an object. Its segment is sealed before the segment's first object is published: then
 * readers may map the segment, because only its maker can still write to it. */
static void on_publish(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    struct mr_ostore_shell_segment *g = segment_at(sh, x->segment);
    uint64_t bytes = 0;
    if (!g->sealed && mr_segment_check(g->fd, g->bytes, true, &bytes, NULL))
        (void)mr_segment_seal(g->fd, NULL);
    g->sealed = true;
    mr_catalog_publish(&sh->catalog, x->object, x->segment, x->offset, x->bytes);
}

static void on_close(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    struct mr_ostore_shell_segment *g = segment_at(sh, x->segment);
    for (uint32_t i = 0; i < sh->clients_count; i++) {
        bool knew;
        mr_local_client_forget_segment(sh->clients[i], x->segment, &knew);
        if (knew)
            mr_local_client_send(sh, sh->clients[i],
                &(struct mr_local_message){.type = MR_CTL_UNMAP, .items = &x->segment, .count = 1});
    }
    if (g->bytes) close(g->fd);
    *g = (struct mr_ostore_shell_segment){0};
}

static void on_freed(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    struct mr_local_client *p = mr_local_client_find(sh, x->client);
    struct mr_ctl_freed room = {.segment = x->segment, .offset = x->offset, .room = x->room};
    if (p) mr_local_client_free_room(sh, p, &room);
}

static void on_pull(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    bool known = x->source > 0 && x->source <= sh->sources_count;
    bool seek = x->source == MR_OSTORE_SEEK;
    if ((known || seek) && sh->pull) {
        sh->pull(sh->answer_ctx, x->id, seek ? NULL : sh->sources[x->source - 1]);
        return;
    }
    struct mr_ostore_event ev = {.type = MR_OE_FETCH_FAILED, .id = x->id, .err = MR_ENOENT};
    mr_ostore_shell_queue(sh, &ev);
}

static void on_refused(const struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(x->id, id);
    mr_log(MR_ERROR, "object.refused", "object=%s client=%u objects_max=%u", id, x->client,
        sh->config.objects_max);
}

static void remember_evict(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    if (sh->evicts_count == sh->evicts_room) {
        size_t room = sh->evicts_room ? sh->evicts_room * 2 : 64;
        sh->evicts = mr_grow(sh->evicts, sh->evicts_room * sizeof *x, room * sizeof *x);
        sh->evicts_room = room;
    }
    sh->evicts[sh->evicts_count++] = *x;
    /* The entry is marked at once, so that a client whose delete is answered does not find the
     * object again. */
    uint64_t word = atomic_load(&sh->catalog.entries[x->object].word);
    if (mr_entry_state(word) == MR_ENTRY_SEALED) mr_catalog_mark(&sh->catalog, x->object);
}

static void carry_out(struct mr_ostore_shell *sh, const struct mr_ostore_effect *x)
{
    struct mr_local_client *p = NULL;
    switch (x->type) {
    case MR_OX_GRANTED: on_granted(sh, x); break;
    case MR_OX_GOT: on_got(sh, x); break;
    case MR_OX_DONE: on_done(sh, x); break;
    case MR_OX_ADD: mr_catalog_add(&sh->catalog, x->object, x->id); break;
    case MR_OX_PUBLISH: on_publish(sh, x); break;
    case MR_OX_REMOVE: mr_catalog_remove(&sh->catalog, x->object); break;
    case MR_OX_EVICT: remember_evict(sh, x); break;
    case MR_OX_FREED: on_freed(sh, x); break;
    case MR_OX_RECLAIM:
        p = mr_local_client_find(sh, x->client);
        if (!p) break;
        /* the client must know first which of its segments are empty */
        mr_local_client_flush_freed(sh, p);
        mr_local_client_send(
            sh, p, &(struct mr_local_message){.type = MR_CTL_RECLAIM, .fixed = &x->bytes});
        break;
    case MR_OX_CLOSE: on_close(sh, x); break;
    case MR_OX_WRITE: mr_disk_write(sh->disk, x); break;
    case MR_OX_MOVE: mr_disk_move(sh->disk, x); break;
    case MR_OX_ERASE: mr_disk_erase(sh->disk, x->id); break;
    case MR_OX_RESTORE: mr_disk_restore(sh->disk, x); break;
    case MR_OX_PULL: on_pull(sh, x); break;
    case MR_OX_REFUSED: on_refused(sh, x); break;
    case MR_OX_UNPLACE:
        if (sh->unplace) sh->unplace(sh->answer_ctx, x->id);
        break;
    case MR_OX_LOST:
        if (sh->lost) sh->lost(sh->answer_ctx, x->id);
        break;
    }
}

/* ---- eviction ---------------------------------------------------------------------------------*/

static void saw_pin(void *ctx, uint32_t entry)
{
    struct mr_ostore_shell *sh = ctx;
    sh->seen[entry] = sh->scans;
}

/* Carries out the EVICT effects of a step. The entries of their objects in the catalog were marked
 * already. One scan of all pin pages serves all of these effects. An object that is in no client's
 * pin page is evicted; the other objects stay in memory (I14 in docs/invariants.md). */
static void evict_all(struct mr_ostore_shell *sh)
{
    if (!sh->evicts_count) return;
    sh->scans++;
    for (uint32_t i = 0; i < sh->clients_count; i++) {
        const struct mr_pin_page *page = mr_local_client_pins(sh->clients[i]);
        if (page) mr_pin_page_scan(&sh->catalog, page, saw_pin, sh);
    }
    for (size_t i = 0; i < sh->evicts_count; i++) {
        const struct mr_ostore_effect *x = &sh->evicts[i];
        bool pinned = sh->seen[x->object] == sh->scans;
        if (!pinned)
            mr_catalog_commit(&sh->catalog, x->object);
        else if (!x->flags)
            mr_catalog_back_off(&sh->catalog, x->object);
        struct mr_ostore_event ev = {
            .type = MR_OE_EVICT_DONE, .object = x->object, .err = pinned ? MR_EAGAIN : MR_OK};
        mr_ostore_shell_queue(sh, &ev);
    }
    sh->evicts_count = 0;
}

static void count_pin(void *ctx, uint32_t entry)
{
    struct mr_ostore_shell *sh = ctx;
    if (sh->seen[entry] == sh->scans || mr_ostore_is_pinned(sh->core, entry)) return;
    sh->seen[entry] = sh->scans;
    sh->pinned_bytes += atomic_load(&sh->catalog.entries[entry].bytes);
}

/* The core counts the bytes of objects that were pinned by a message to the store. This function
 * adds the objects that readers have pinned without a message, which stand in their pin pages. */
void mr_ostore_shell_stats(struct mr_ostore_shell *sh, struct mr_store_stats *out)
{
    mr_ostore_stats(sh->core, out);
    sh->scans++;
    sh->pinned_bytes = 0;
    for (uint32_t i = 0; i < sh->clients_count; i++) {
        const struct mr_pin_page *page = mr_local_client_pins(sh->clients[i]);
        if (page) mr_pin_page_scan(&sh->catalog, page, count_pin, sh);
    }
    out->pinned_bytes += sh->pinned_bytes;
}

void mr_ostore_shell_effects(struct mr_ostore_shell *sh)
{
    for (size_t i = 0; i < sh->fx.n; i++)
        carry_out(sh, &sh->fx.items[i]);
    sh->fx.n = 0;
    evict_all(sh);
    mr_catalog_set_objects_left(&sh->catalog, mr_ostore_objects_left(sh->core));
    mr_catalog_set_away(&sh->catalog, mr_ostore_objects_away(sh->core));
}
