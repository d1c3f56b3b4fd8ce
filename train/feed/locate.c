/* Asks the store of this node where objects are: calls Objects.Where in blocks of ids. */
#include "train/feed/locate.h"

#include "base/alloc.h"
#include "host/os/log.h"
#include "millrace/v1/objects.pb-c.h"

#include <string.h>

#define IDS_MAX 16384u /* limit of ids in one call */
#define ID_BYTES 16u
#define CALL_TIMEOUT (20 * MR_SECOND)
#define ANSWER_BYTES_MAX ((size_t)64 << 20)

static int ask(const struct mr_role_store *s, const mr_object_id *ids, uint32_t n, uint32_t first,
    mr_role_where_fn take, void *ctx, struct mr_error *e)
{
    Millrace__V1__WhereRequest r = MILLRACE__V1__WHERE_REQUEST__INIT;
    unsigned char *bytes = mr_alloc_array(n, ID_BYTES);
    for (uint32_t i = 0; i < n; i++)
        mr_object_id_to_bytes(ids[first + i], bytes + (size_t)i * ID_BYTES);
    r.ids = (ProtobufCBinaryData){(size_t)n * ID_BYTES, bytes};
    struct mr_pb_arena arena;
    mr_pb_arena_init(&arena, ANSWER_BYTES_MAX);
    const Millrace__V1__WhereResponse *m = NULL;
    int err = mr_role_call(s->link, "/millrace.v1.Objects/Where", &r.base, CALL_TIMEOUT, s->stop,
        &millrace__v1__where_response__descriptor, &arena, &m, e);
    for (size_t i = 0; !err && i < m->n_places; i++) {
        const Millrace__V1__WherePlace *p = m->places[i];
        if (p->has.len == n) take(ctx, p->node, p->address, first, p->has.data, n);
    }
    mr_pb_arena_fini(&arena);
    mr_release(bytes);
    return err;
}

int mr_role_where(const struct mr_role_store *s, const mr_object_id *ids, uint32_t n,
    mr_role_where_fn take, void *ctx, struct mr_error *e)
{
    int err = MR_OK;
    for (uint32_t at = 0; at < n && !err; at += IDS_MAX)
        err = ask(s, ids, MR_MIN(n - at, IDS_MAX), at, take, ctx, e);
    return err;
}

/* ---- sources --------------------------------------------------------------------------------- */

struct search {
    struct mr_role_store *s;
    const char **sources;
    bool *here;
};

static const char *keep(struct mr_role_store *s, const char *address)
{
    for (uint32_t i = 0; i < s->addresses_count; i++)
        if (!strcmp(s->addresses[i], address)) return s->addresses[i];
    uint32_t n = s->addresses_count++;
    s->addresses = mr_grow(s->addresses, n * sizeof(char *), (n + 1) * sizeof(char *));
    return s->addresses[n] = mr_copy_text(address);
}

static void take_source(void *ctx, const char *node, const char *address, uint32_t first,
    const unsigned char *has, uint32_t n)
{
    struct search *x = ctx;
    bool is_own = x->s->node && !strcmp(node, x->s->node);
    const char *source = is_own || !address[0] ? NULL : keep(x->s, address);
    for (uint32_t i = 0; i < n; i++) {
        if (has[i] != 1 || x->here[first + i]) continue;
        x->here[first + i] = is_own;
        if (is_own)
            x->sources[first + i] = NULL;
        else if (!x->sources[first + i])
            x->sources[first + i] = source;
    }
}

static bool are_here(const struct mr_role_store *s, const mr_object_id *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct mr_store_view view = {0};
        if (mr_store_get(s->store, ids[i], NULL, 0, &view, NULL)) return false;
        mr_store_release(s->store, &view);
    }
    return true;
}

void mr_role_find_sources(
    struct mr_role_store *s, const mr_object_id *ids, uint32_t n, const char **sources)
{
    struct mr_error e;
    memset(sources, 0, n * sizeof *sources);
    if (!s->store || are_here(s, ids, n)) return;
    struct search x = {s, sources, mr_alloc_array(n + 1, sizeof(bool))};
    if (mr_role_where(s, ids, n, take_source, &x, &e))
        /* without sources, a search for each single object follows when it is read */
        mr_log(MR_WARN, "objects.locate_failed", "why=\"%s\"", e.text);
    mr_release(x.here);
}

void mr_role_sources_fini(struct mr_role_store *s)
{
    for (uint32_t i = 0; i < s->addresses_count; i++)
        mr_release(s->addresses[i]);
    mr_release(s->addresses);
    s->addresses = NULL;
    s->addresses_count = 0;
}
