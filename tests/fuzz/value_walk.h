/* Helpers of fuzz targets that make values. They read everything that a reader of values may
 * read. */
#pragma once

#include "base/alloc.h"
#include "base/assert.h"
#include "store/object/collection.h"
#include "store/object/format/format.h"
#include "store/object/table.h"
#include "store/object/value_text.h"

#define WALK_OUT_BYTES_MAX ((size_t)4 << 20)

/* Limit for the memory of one value, because these targets do not look for memory exhaustion. */
#define WALK_EXTENT_BYTES_MAX ((uint64_t)64 << 20)

static inline void *walk_alloc(void *ctx, uint64_t bytes)
{
    return bytes > WALK_EXTENT_BYTES_MAX ? NULL : mr_value_heap_alloc(ctx, bytes);
}

/* Returns the value in the extent that an import has made in walk_alloc's memory. Panics if the
 * extent is no value. */
static inline struct mr_value walk_open(const void *extent)
{
    struct mr_value_header h;
    memcpy(&h, extent, sizeof h);
    struct mr_value v;
    struct mr_error e;
    int err = mr_value_check_deep(mr_str_of(extent, h.nbytes), &v, &e);
    if (err) MR_PANIC("an import made no value: %s", e.text);
    return v;
}

static inline void walk_value(const struct mr_value *v)
{
    char text[MR_VALUE_SUMMARY_MAX];
    mr_value_summary(v, text);
    struct mr_error e;
    struct mr_buf out;
    mr_buf_init(&out, WALK_OUT_BYTES_MAX);
    for (unsigned f = 0; f < MR_FORMATS_COUNT; f++) {
        mr_buf_clear(&out);
        (void)mr_format_export(v, (enum mr_format)f, NULL, mr_sink_to_buf(&out), &e);
    }
    mr_buf_clear(&out);
    struct mr_format_options columns = {.json_columns = true};
    (void)mr_format_export(v, MR_FORMAT_JSON, &columns, mr_sink_to_buf(&out), &e);
    mr_buf_clear(&out);
    if (mr_value_to_pack(v, &out) == MR_OK) {
        void *extent = NULL;
        struct mr_value_alloc a = {walk_alloc, &extent};
        struct mr_value back;
        if (mr_value_from_pack(mr_buf_str(&out), &a, &back, NULL) == MR_OK)
            mr_assert(back.kind == v->kind && back.nbytes == v->nbytes);
        mr_release(extent);
    }
    mr_buf_fini(&out);
}

/* Imports `bytes`. If they are accepted, the export of the value must read back as the same
 * value. */
static inline void walk_round_trip(enum mr_format format, struct mr_str bytes)
{
    void *extent = NULL;
    struct mr_value_alloc a = {walk_alloc, &extent};
    struct mr_error e;
    if (mr_format_import(format, bytes, NULL, &a, &e) == MR_OK) {
        struct mr_value v = walk_open(extent);
        struct mr_buf out;
        mr_buf_init(&out, v.nbytes + 4096);
        void *again = NULL;
        struct mr_value_alloc b = {walk_alloc, &again};
        int err = mr_format_export(&v, format, NULL, mr_sink_to_buf(&out), &e);
        if (!err) err = mr_format_import(format, mr_buf_str(&out), NULL, &b, &e);
        mr_assert(err == MR_OK);
        mr_assert(memcmp(extent, again, v.nbytes) == 0);
        mr_release(again);
        mr_buf_fini(&out);
        walk_value(&v);
    }
    mr_release(extent);
}
