/* Writes values as JSON text. A value can be a list or a map (encoded as a pack, base/pack.h) or a
 * collection of stored values. Both may contain further lists, maps and collections, so the walk
 * keeps a stack of frames instead of recursing. Tensors, tables and bytes contain no other
 * values. */
#include "store/object/format/json.h"

#include "base/alloc.h"
#include "store/object/collection.h"
#include "store/object/format/writer.h"
#include "store/object/format/json_leaf.h"

struct frame {
    bool is_collection;
    /* true: this frame reads a part of the pack of the frame below; that frame later continues
     * where this frame has stopped */
    bool same_source;
    void *owned;             /* an aligned copy of a nested value; freed with the frame */
    const char *close;       /* text to write at the end of the frame */
    struct mr_pack_reader r; /* the reader of the pack */
    uint64_t left;           /* items that are still to come */
    uint64_t index;
    bool is_map;
    struct mr_value value; /* a collection */
    uint32_t part;
};

struct walk {
    struct mr_out out;
    const struct mr_format_options *options;
    struct frame *frames;
    unsigned depth;
    struct mr_error *e;
};

static int push(struct walk *w, struct frame **out)
{
    if (w->depth == MR_DEPTH_MAX + 1)
        return mr_fail(w->e, MR_ELIMIT, "value nested deeper than %d", MR_DEPTH_MAX);
    *out = &w->frames[w->depth++];
    **out = (struct frame){.close = ""};
    return MR_OK;
}

static void pop(struct walk *w)
{
    struct frame *f = &w->frames[--w->depth];
    mr_out_text(&w->out, f->close);
    mr_release(f->owned);
    if (f->same_source) w->frames[w->depth - 1].r.at = f->r.at;
}

/* Pushes a frame for a pack. On success the frame owns `*owned`. */
static int push_pack(struct walk *w, struct mr_str pack, void **owned, const char *close)
{
    struct frame *f = NULL;
    int err = push(w, &f);
    if (err) return err;
    f->r = mr_pack_read(pack);
    f->left = 1;
    f->close = close;
    if (owned) f->owned = MR_STEAL(*owned);
    return MR_OK;
}

static int push_collection(struct walk *w, const struct mr_value *v, void **owned)
{
    struct mr_collection c;
    int err = mr_collection_open(v, &c, w->e);
    if (err) return err;
    struct frame *f = NULL;
    err = push(w, &f);
    if (err) return err;
    f->is_collection = true;
    f->value = *v;
    if (owned) f->owned = MR_STEAL(*owned);
    mr_out_text(&w->out, "{\"collection\":\"");
    mr_out_text(&w->out, mr_value_kind_name(c.kind));
    if (c.kind == MR_VALUE_TENSOR) {
        mr_out_text(&w->out, "\",\"dtype\":\"");
        mr_out_text(&w->out, mr_dtype_name(c.dtype));
    }
    mr_out_text(&w->out, "\",\"shape\":");
    mr_json_write_u64s(&w->out, c.shape, c.ndim);
    if (c.axis != MR_COLLECTION_GRID) {
        mr_out_text(&w->out, ",\"axis\":");
        mr_out_u64(&w->out, c.axis);
    }
    mr_out_text(&w->out, ",\"parts\":[");
    f->close = "]}";
    return MR_OK;
}

/* Writes one value. For a value that contains others, pushes a frame for its contents. `*owned` is
 * the memory of the value, or NULL; a frame that is pushed takes this memory. */
static int write_value(struct walk *w, const struct mr_value *v, void **owned)
{
    switch (v->kind) {
    case MR_VALUE_PACK: return push_pack(w, mr_str_of(v->data, v->data_bytes), owned, "");
    case MR_VALUE_COLLECTION: return push_collection(w, v, owned);
    case MR_VALUE_TENSOR: return mr_json_write_tensor(&w->out, &v->tensor, w->e);
    case MR_VALUE_TABLE:
        return mr_json_write_table(&w->out, v, w->options && w->options->json_columns, w->e);
    case MR_VALUE_BYTES:
        mr_json_write_base64(&w->out, mr_str_of(v->data, v->data_bytes));
        return MR_OK;
    case MR_VALUE_MODEL:
    case MR_VALUE_NONE: break;
    }
    return mr_fail(w->e, MR_EACCEPT, "a %s has no JSON form", mr_value_kind_name(v->kind));
}

static int write_nested_value(struct walk *w, struct mr_str bytes)
{
    MR_AUTO(mr_free_ptr) void *copy = NULL;
    memcpy(mr_value_heap_alloc(&copy, bytes.n), bytes.p, bytes.n);
    struct mr_value v;
    int err = mr_value_check_deep(mr_str_of(copy, bytes.n), &v, w->e);
    if (err) return err;
    return write_value(w, &v, &copy);
}

static void write_object(struct walk *w, mr_object_id id)
{
    char text[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(id, text);
    mr_out_text(&w->out, "\"object\":\"");
    mr_out_text(&w->out, text);
    mr_out_byte(&w->out, '"');
}

static int write_ext(struct walk *w, const struct mr_pack_item *item)
{
    mr_object_id id;
    if (item->ext == MR_PACK_EXT_VALUE) return write_nested_value(w, item->bytes);
    if (item->ext != MR_PACK_EXT_OBJECT || mr_object_id_from_bytes(item->bytes, &id))
        return mr_fail(w->e, MR_EFORMAT, "extension %d has no JSON form", item->ext);
    mr_out_byte(&w->out, '{');
    write_object(w, id);
    mr_out_byte(&w->out, '}');
    return MR_OK;
}

/* Pushes a frame for the items of a list or a map. */
static int push_items(struct walk *w, const struct frame *from, const struct mr_pack_item *item)
{
    struct mr_pack_reader r = from->r;
    struct frame *f = NULL;
    int err = push(w, &f);
    if (err) return err;
    f->r = r;
    f->same_source = true;
    f->is_map = item->type == MR_PACK_MAP;
    f->left = (f->is_map ? 2 : 1) * (uint64_t)item->count;
    f->close = f->is_map ? "}" : "]";
    mr_out_byte(&w->out, f->is_map ? '{' : '[');
    return MR_OK;
}

static int write_item(struct walk *w, struct frame *f)
{
    struct mr_pack_item item;
    if (mr_pack_next(&f->r, &item)) return mr_fail(w->e, MR_EFORMAT, "malformed pack");
    bool is_key = f->is_map && f->left % 2 == 0;
    bool is_first_of_pair = !f->is_map || is_key;
    if (f->index && is_first_of_pair) mr_out_byte(&w->out, ',');
    f->left--;
    f->index++;
    struct mr_out *o = &w->out;
    switch (item.type) {
    case MR_PACK_TEXT: {
        int err = mr_json_write_text(o, item.bytes, w->e);
        if (!err && is_key) mr_out_byte(o, ':');
        return err;
    }
    case MR_PACK_NIL: mr_out_text(o, "null"); break;
    case MR_PACK_BOOL: mr_out_text(o, item.boolean ? "true" : "false"); break;
    case MR_PACK_INT: o->n += mr_number_i64(mr_out_reserve(o, MR_NUMBER_TEXT_MAX), item.i); break;
    case MR_PACK_UINT: mr_out_u64(o, item.u); break;
    case MR_PACK_FLOAT: mr_json_write_f64(o, item.f); break;
    case MR_PACK_BYTES: mr_json_write_base64(o, item.bytes); break;
    case MR_PACK_LIST:
    case MR_PACK_MAP: return push_items(w, f, &item);
    case MR_PACK_EXT: return write_ext(w, &item);
    }
    return is_key ? mr_fail(w->e, MR_EFORMAT, "map key that is not a text") : MR_OK;
}

static int write_part(struct walk *w, struct frame *f)
{
    struct mr_collection c;
    struct mr_collection_part part;
    int err = mr_collection_open(&f->value, &c, w->e);
    if (!err) err = mr_collection_part(&c, f->part, &part, w->e);
    if (err) return err;
    mr_out_text(&w->out, f->part ? ",{\"start\":" : "{\"start\":");
    f->part++;
    mr_json_write_u64s(&w->out, part.start, c.ndim);
    mr_out_text(&w->out, ",\"shape\":");
    mr_json_write_u64s(&w->out, part.shape, c.ndim);
    mr_out_byte(&w->out, ',');
    if (!part.inline_pack.n) {
        write_object(w, part.id);
        mr_out_text(&w->out, ",\"nbytes\":");
        mr_out_u64(&w->out, part.nbytes);
        mr_out_byte(&w->out, '}');
        return MR_OK;
    }
    mr_out_text(&w->out, "\"value\":");
    return push_pack(w, part.inline_pack, NULL, "}");
}

static int step(struct walk *w)
{
    struct frame *f = &w->frames[w->depth - 1];
    if (f->is_collection) {
        struct mr_collection c;
        int err = mr_collection_open(&f->value, &c, w->e);
        if (err) return err;
        if (f->part < c.count) return write_part(w, f);
    } else if (f->left) {
        return write_item(w, f);
    } else if (!f->same_source && !mr_pack_at_end(&f->r)) {
        return mr_fail(w->e, MR_EFORMAT, "bytes after the end of a pack");
    }
    pop(w);
    return MR_OK;
}

int mr_json_export(const struct mr_value *v, const struct mr_format_options *o, struct mr_sink sink,
    struct mr_error *e)
{
    struct walk w = {
        .options = o, .frames = mr_alloc_array(MR_DEPTH_MAX + 1, sizeof(struct frame)), .e = e};
    mr_out_init(&w.out, sink);
    int err = write_value(&w, v, NULL);
    while (!err && w.depth && !w.out.err)
        err = step(&w);
    for (unsigned i = 0; i < w.depth; i++)
        mr_release(w.frames[i].owned);
    mr_release(w.frames);
    int sunk = mr_out_finish(&w.out);
    if (!err && sunk) err = mr_fail(e, sunk, "JSON export: %s", mr_err_words(sunk));
    return err;
}

int mr_json_from_pack(struct mr_str pack, struct mr_buf *out, struct mr_error *e)
{
    struct mr_value v = {
        .kind = MR_VALUE_PACK, .data = (const unsigned char *)pack.p, .data_bytes = pack.n};
    return mr_json_export(&v, NULL, mr_sink_to_buf(out), e);
}
