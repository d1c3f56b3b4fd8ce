/* Reads the entries of the JSON object "tasks" or "dsk" in two passes. The first pass adds the keys
 * of all entries to the builder. The second pass reads the values of the entries, because a string
 * in a value may refer to a later key. The JSON is parsed as a whole or in slices (slice.h). */
#include "graph/json/entries.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "graph/build/column_input.h"
#include "graph/json/estimate.h"
#include "graph/json/fast_path.h"
#include "graph/json/slice.h"
#include "graph/build/unroll.h"

#define LOOK_AHEAD 8

/* The largest text of one entry, in bytes. A longer text would exceed other limits:
 * MR_LITERAL_BYTES_MAX bounds an entry's arguments in MessagePack, MR_TASK_INPUTS_MAX its
 * references. */
#define ENTRY_BYTES_MAX ((uint32_t)128 << 20)

/* Puts `key "y": ` before the error text, unless the error text begins with a key. */
static int within_key(struct mr_json *j, int err, struct mr_str key)
{
    if (!j->e || strncmp(j->e->text, "key \"", 5) == 0) return err;
    return mr_fail_within(j->e, err, "key", key);
}

/* Adds the key of an entry, in the first pass. Both passes go over the entries in the same order,
 * so the n-th new node of the builder is the n-th entry. `expected` is the number of that node. */
static int take_key(struct mr_json *j, yyjson_val *key, uint32_t expected)
{
    int err = MR_OK;
    yyjson_val *v = mr_json_resolve_text(j, key, &err);
    if (err) return within_key(j, err, mr_json_text(key));
    uint32_t node = 0;
    struct mr_str text = mr_json_text(v);
    err = mr_builder_own(j->b, text, &node, j->e);
    if (err) return err;
    if (node == expected) return MR_OK;
    return mr_fail(j->e, MR_EINVAL, "key \"%.*s\" is defined twice%s", MR_SHOWN(text),
        v == key && j->bindings_count > j->params_count ? ": it does not use its \"for\" variable"
                                                        : "");
}

static int define(struct mr_json *j, yyjson_val *entry, uint32_t node)
{
    int err = mr_json_entry(j, node, entry);
    return err ? within_key(j, err, mr_builder_key(j->b, node)) : MR_OK;
}

static int one_entry(struct mr_json *j, yyjson_val *key, bool first_pass, uint32_t *at)
{
    yyjson_val *entry = yyjson_obj_iter_get_val(key);
    yyjson_val *spec = mr_json_entry_loop(j, entry);
    if (!spec) return first_pass ? take_key(j, key, (*at)++) : define(j, entry, (*at)++);
    struct mr_json_loop loop;
    int err = mr_json_loop_open(j, spec, &loop);
    if (err) return within_key(j, err, mr_json_text(key));
    while (!err && mr_json_loop_next(j, &loop)) {
        err = first_pass ? take_key(j, key, *at) : define(j, entry, *at);
        (*at)++;
    }
    mr_json_loop_close(j, &loop);
    return err;
}

/* Prefetches the memory that an entry needs, a few entries ahead, because each look-up in a table
 * of a million keys misses the cache. */
static void prefetch(struct mr_json *j, yyjson_val *key, bool first_pass)
{
    if (first_pass)
        mr_intern_prefetch(&j->b->keys, mr_intern_hash(&j->b->keys, mr_json_text(key)));
    else
        mr_json_prefetch(j, yyjson_obj_iter_get_val(key));
}

static int all_entries(struct mr_json *j, yyjson_val *tasks, bool first_pass, uint32_t *at)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(tasks), ahead = it;
    for (int i = 0; i < LOOK_AHEAD; i++) {
        yyjson_val *k = yyjson_obj_iter_next(&ahead);
        if (k) prefetch(j, k, first_pass);
    }
    int err = MR_OK;
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k && !err; k = yyjson_obj_iter_next(&it)) {
        yyjson_val *next = yyjson_obj_iter_next(&ahead);
        if (next) prefetch(j, next, first_pass);
        err = one_entry(j, k, first_pass, at);
    }
    return err;
}

int mr_json_entries(struct mr_json *j, yyjson_val *tasks)
{
    /* `first` is not 0 in two cases: the nodes for the results of the job's loops exist already, or
     * `tasks` is the body of a loop. */
    uint32_t first = j->b->keys.count;
    if (!first)
        mr_builder_reserve(j->b, (uint32_t)MR_MIN(yyjson_obj_size(tasks), (size_t)MR_TASKS_MAX));
    uint32_t at = first;
    int err = all_entries(j, tasks, true, &at);
    at = first;
    return err ? err : all_entries(j, tasks, false, &at);
}

/* ---- slice by slice -------------------------------------------------------------------------- */

static void *room_for(void *p, size_t *room, size_t n)
{
    if (n <= *room) return p;
    *room = n + n / 2;
    return mr_grow(p, *room, *room);
}

yyjson_val *mr_json_parse_slice(struct mr_str text, const struct mr_json_slice *slice, char **copy,
    size_t *copy_room, void **pool, size_t *pool_room)
{
    size_t n = (size_t)slice->n + 2;
    yyjson_read_flag flags = YYJSON_READ_BIGNUM_AS_RAW | YYJSON_READ_INSITU;
    size_t most = yyjson_read_max_memory_usage(n, flags);
    *copy = room_for(*copy, copy_room, n + YYJSON_PADDING_SIZE);
    *pool = room_for(*pool, pool_room, most);
    (*copy)[0] = '{';
    memcpy(*copy + 1, text.p + slice->at, slice->n);
    (*copy)[n - 1] = '}';
    yyjson_alc alc;
    if (!yyjson_alc_pool_init(&alc, *pool, *pool_room)) return NULL;
    yyjson_doc *doc = yyjson_read_opts(*copy, n, flags, &alc, NULL);
    return yyjson_doc_get_root(doc); /* the document lies in the pool, so it need not be freed */
}

static int plain_keys(struct mr_json *j, struct mr_str text, const struct mr_json_slices *split,
    const struct mr_json_slice *slice, uint32_t *at)
{
    const struct mr_json_span *key = split->keys + slice->keys_at;
    struct mr_intern *keys = &j->b->keys;
    int err = MR_OK;
    for (uint32_t i = 0; i < slice->keys_count && !err; i++) {
        if (i + LOOK_AHEAD < slice->keys_count) {
            const struct mr_json_span *next = key + i + LOOK_AHEAD;
            mr_intern_prefetch(keys, mr_intern_hash(keys, mr_str_of(text.p + next->at, next->n)));
        }
        yyjson_val v = {.tag = (uint64_t)key[i].n << YYJSON_TAG_BIT | YYJSON_TYPE_STR,
            .uni.str = text.p + key[i].at};
        err = take_key(j, &v, (*at)++);
    }
    return err;
}

int mr_json_slice_keys(struct mr_json_slicer *s, struct mr_str text,
    const struct mr_json_slices *split, const struct mr_json_slice *slice)
{
    const struct mr_json_span *key = split->keys + slice->keys_at;
    size_t bytes = 0;
    for (uint32_t i = 0; i < slice->keys_count; i++)
        bytes += key[i].n;
    s->copy = room_for(s->copy, &s->copy_room, bytes + 1);
    s->pool = room_for(s->pool, &s->pool_room, slice->keys_count * sizeof(uint32_t));
    uint32_t *lengths = s->pool;
    char *to = s->copy;
    for (uint32_t i = 0; i < slice->keys_count; i++) {
        memcpy(to, text.p + key[i].at, key[i].n);
        to += key[i].n;
        lengths[i] = key[i].n;
    }
    /* Only MR_ELIMIT has an error text here. After another error the caller reads the whole job
     * again, and reports the error of that second reading. */
    return mr_builder_add_keys(
        s->j->b, mr_str_of(s->copy, bytes), lengths, slice->keys_count, s->j->e);
}

void mr_json_slicer_fini(struct mr_json_slicer *s)
{
    mr_release(s->copy);
    mr_release(s->pool);
    *s = (struct mr_json_slicer){0};
}

static int malformed_slice(struct mr_json *j)
{
    /* The caller then reads the whole job again, and reports the error of that second reading. */
    return mr_fail(j->e, MR_EFORMAT, "malformed");
}

/* True: all texts are taken as they are: no `${…}` is replaced, and no key gets the name of a loop
 * as a prefix. */
static bool takes_texts_as_they_are(const struct mr_json *j)
{
    return !j->has_params && !j->bindings_count && !j->b->scope;
}

/* Reads all entries of a slice. In the first pass adds their keys, in the second defines their
 * nodes. */
static int read_slice(
    struct mr_json_slicer *s, const struct mr_json_piece *piece, uint32_t *at, bool first_pass)
{
    const struct mr_json_slice *slice = &piece->slice;
    if (slice->n > ENTRY_BYTES_MAX)
        return mr_fail(s->j->e, MR_ELIMIT, "key \"%.*s\": an entry of more than %u bytes",
            MR_SHOWN(piece->last_key), ENTRY_BYTES_MAX);
    yyjson_val *object =
        mr_json_parse_slice(piece->text, slice, &s->copy, &s->copy_room, &s->pool, &s->pool_room);
    /* slice.c and the parser must have found the same number of entries */
    if (!object || yyjson_obj_size(object) != slice->keys_count) return malformed_slice(s->j);
    return all_entries(s->j, object, first_pass, at);
}

struct mr_json_piece mr_json_piece_of(
    struct mr_str text, const struct mr_json_slices *split, uint32_t slice, uint32_t first)
{
    const struct mr_json_slice *of = &split->slices[slice];
    const struct mr_json_span *last = &split->keys[of->keys_at + of->keys_count - 1];
    return (struct mr_json_piece){text, *of, mr_str_of(text.p + last->at, last->n), first};
}

static int slices(struct mr_json_slicer *s, struct mr_str text, const struct mr_json_slices *split,
    uint32_t at, bool first_pass)
{
    int err = MR_OK;
    for (uint32_t i = 0; i < split->slices_count && !err; i++) {
        const struct mr_json_slice *slice = &split->slices[i];
        const struct mr_json_piece piece = mr_json_piece_of(text, split, i, at);
        if (!first_pass || !slice->is_plain) {
            err = read_slice(s, &piece, &at, first_pass);
        } else if (!s->j->b->parallel || !takes_texts_as_they_are(s->j)) {
            err = plain_keys(s->j, text, split, slice, &at);
        } else { /* no key contains `${…}`, so all keys of the slice are added in one call */
            err = mr_json_slice_keys(s, text, split, slice);
            at += slice->keys_count;
        }
    }
    return err;
}

int mr_json_read_parallel(
    struct mr_json_slicer *s, const struct mr_json_piece *pieces, uint32_t count)
{
    struct mr_json_fast_path *plain = mr_json_fast_path_new(s->j);
    int err = MR_OK;
    uint32_t at = 0;
    for (uint32_t i = 0; i < count && !err;) {
        uint32_t n = MR_MIN(count - i, mr_json_fast_path_room(plain));
        uint32_t keys = s->j->b->keys.count;
        mr_json_fast_path_read(plain, pieces + i, n, true);
        for (uint32_t k = 0; k < n && !err; k++, i++) {
            bool taken = false;
            /* In "dsk" (Dask's notation), a text that was no key when it was read may now be the
             * key of a nested task. */
            bool is_stale = s->j->dsk && s->j->b->keys.count != keys;
            if (!is_stale) err = mr_json_fast_path_add(plain, k, &taken);
            at = pieces[i].first;
            if (!taken && !err) err = read_slice(s, &pieces[i], &at, false);
        }
    }
    mr_json_fast_path_free(&plain);
    return err;
}

/* Runs the second pass on several threads. These read the simple slices (fast_path.h); this thread
 * reads the other slices and adds all slices in order. Each entry is one node, because no entry has
 * a "for". */
static int slices_by_many(
    struct mr_json_slicer *s, struct mr_str text, const struct mr_json_slices *split, uint32_t at)
{
    struct mr_json_piece *pieces = mr_alloc_array((size_t)split->slices_count + 1, sizeof *pieces);
    uint32_t first = at;
    for (uint32_t i = 0; i < split->slices_count; i++) {
        pieces[i] = mr_json_piece_of(text, split, i, at);
        at += split->slices[i].keys_count;
    }
    /* The first slice is read alone, so that the threads know its operators when they read the
     * others. */
    int err = split->slices_count ? read_slice(s, &pieces[0], &first, false) : MR_OK;
    if (!err && split->slices_count)
        err = mr_json_read_parallel(s, pieces + 1, split->slices_count - 1);
    mr_release(pieces);
    return err;
}

static bool are_plain(const struct mr_json *j, const struct mr_json_slices *split)
{
    bool plain = j->b->parallel && takes_texts_as_they_are(j);
    for (uint32_t i = 0; i < split->slices_count && plain; i++)
        plain = split->slices[i].is_plain;
    return plain;
}

int mr_json_sliced_estimate(struct mr_json *j, struct mr_json_estimate *x, struct mr_str text,
    const struct mr_json_slices *split)
{
    struct mr_json_slicer s = {.j = j};
    int err = MR_OK;
    for (uint32_t i = 0; i < split->slices_count && !err; i++) {
        const struct mr_json_slice *slice = &split->slices[i];
        if (slice->is_plain || slice->n > ENTRY_BYTES_MAX) continue;
        yyjson_val *entries =
            mr_json_parse_slice(text, slice, &s.copy, &s.copy_room, &s.pool, &s.pool_room);
        err = mr_json_estimate_entries(x, entries, 1);
    }
    mr_json_slicer_fini(&s);
    return err;
}

int mr_json_sliced_entries(
    struct mr_json *j, struct mr_str text, const struct mr_json_slices *split)
{
    struct mr_json_slicer s = {.j = j};
    uint32_t first = j->b->keys.count;
    if (!first) mr_builder_reserve(j->b, split->keys_count);
    int err = slices(&s, text, split, first, true);
    if (!err && are_plain(j, split))
        err = slices_by_many(&s, text, split, first);
    else if (!err)
        err = slices(&s, text, split, first, false);
    mr_json_slicer_fini(&s);
    return err;
}
