/* Reads the names in a FileDescriptorSet. Field numbers of google/protobuf/descriptor.proto:
 *   FileDescriptorSet: file 1
 *   File: name 1, package 2, message_type 4, enum_type 5, service 6, extension 7
 *   Message: name 1, field 2, nested_type 3, enum_type 4, extension 6, oneof_decl 8
 *   Enum: name 1, value 2       Service: name 1, method 2
 *   Field: name 1, extendee 2, number 3       value, method, oneof: name 1 */
#include "rpc/server/descriptors.h"

#include "base/alloc.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/protowire.h"

#define FILES_MAX 4096
#define SYMBOLS_MAX 1000000

enum kind { FILE_, MESSAGE, ENUM, SERVICE, FIELD, LEAF };

struct frame { /* a file, message or service on the stack of the walk */
    struct mr_protowire_reader reader;
    enum kind kind;
    /* Length of the name of the scope in which the members are declared. */
    size_t scope_bytes;
};

struct walk {
    struct mr_descriptors *d;
    uint32_t file;
    char scope[MR_DESCRIPTOR_NAME_MAX];
    struct frame frames[MR_DEPTH_MAX];
    uint32_t depth;
};

static uint64_t hash_name(struct mr_str s)
{
    /* FNV-1a (Fowler, Noll, Vo) */
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
    return mr_hash_u64(h);
}

static bool symbol_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_descriptors *d = ctx;
    return mr_str_eq(mr_str(d->symbols[item].name), *(const struct mr_str *)key);
}

static uint64_t symbol_hash(const void *ctx, uint32_t item)
{
    const struct mr_descriptors *d = ctx;
    return hash_name(mr_str(d->symbols[item].name));
}

void mr_descriptors_init(struct mr_descriptors *d)
{
    *d = (struct mr_descriptors){0};
    mr_index_init(&d->by_symbol, 256);
}

void mr_descriptors_fini(struct mr_descriptors *d)
{
    for (uint32_t i = 0; i < d->symbols_count; i++)
        mr_release(d->symbols[i].name);
    for (uint32_t i = 0; i < d->extensions_count; i++)
        mr_release(d->extensions[i].extendee);
    mr_release(d->files);
    mr_release(d->symbols);
    mr_release(d->extensions);
    mr_index_fini(&d->by_symbol);
    *d = (struct mr_descriptors){0};
}

/* Sets `*out` to the bytes of field `number`. If the field occurs more than once, the last one
 * counts, as protobuf requires. Empty: the field is absent. MR_EFORMAT: the message is
 * malformed. */
static int find_bytes(struct mr_str message, uint32_t number, struct mr_str *out)
{
    *out = mr_str_of("", 0);
    struct mr_protowire_reader r = mr_protowire_read(message);
    struct mr_protowire_field f;
    int err = mr_protowire_next(&r, &f);
    for (; !err; err = mr_protowire_next(&r, &f))
        if (f.number == number && f.type == MR_PROTOWIRE_BYTES) *out = f.bytes;
    return err == MR_ENOENT ? MR_OK : err;
}

static int find_number(struct mr_str message, uint32_t number, uint64_t *out)
{
    *out = 0;
    struct mr_protowire_reader r = mr_protowire_read(message);
    struct mr_protowire_field f;
    int err = mr_protowire_next(&r, &f);
    for (; !err; err = mr_protowire_next(&r, &f))
        if (f.number == number && f.type == MR_PROTOWIRE_VARINT) *out = f.value;
    return err == MR_ENOENT ? MR_OK : err;
}

/* Appends ".name" (or "name" at the root) to the scope and returns its new length. 0: `name` is no
 * name, or the scope would be too long. */
static size_t scope_extend(struct walk *w, size_t bytes, struct mr_str name)
{
    size_t dot = bytes ? 1 : 0;
    if (!name.n || memchr(name.p, 0, name.n)) return 0;
    if (bytes + dot + name.n >= sizeof w->scope) return 0;
    if (dot) w->scope[bytes] = '.';
    memcpy(w->scope + bytes + dot, name.p, name.n);
    return bytes + dot + name.n;
}

static int add_symbol(struct walk *w, size_t bytes, bool is_service)
{
    struct mr_descriptors *d = w->d;
    struct mr_str name = mr_str_of(w->scope, bytes);
    if (mr_index_find(&d->by_symbol, hash_name(name), symbol_eq, d, &name) != MR_INDEX_NONE)
        return MR_OK;
    if (d->symbols_count >= SYMBOLS_MAX) return MR_ELIMIT;
    size_t each = sizeof *d->symbols;
    d->symbols = mr_grow(d->symbols, d->symbols_count * each, (d->symbols_count + 1) * each);
    char *copy = mr_alloc(bytes + 1);
    memcpy(copy, w->scope, bytes);
    d->symbols[d->symbols_count] = (struct mr_descriptor_symbol){copy, w->file, is_service};
    mr_index_add(&d->by_symbol, hash_name(name), d->symbols_count, symbol_hash, d);
    d->symbols_count++;
    return MR_OK;
}

static int add_extension(struct walk *w, struct mr_str field)
{
    struct mr_descriptors *d = w->d;
    struct mr_str extendee;
    uint64_t number = 0;
    int err = find_bytes(field, 2, &extendee);
    if (err) return err;
    err = find_number(field, 3, &number);
    if (err) return err;
    if (extendee.n && extendee.p[0] == '.') extendee = mr_str_of(extendee.p + 1, extendee.n - 1);
    if (d->extensions_count >= SYMBOLS_MAX) return MR_ELIMIT;
    size_t each = sizeof *d->extensions;
    d->extensions =
        mr_grow(d->extensions, d->extensions_count * each, (d->extensions_count + 1) * each);
    char *copy = mr_alloc(extendee.n + 1);
    if (extendee.n) memcpy(copy, extendee.p, extendee.n);
    d->extensions[d->extensions_count++] =
        (struct mr_descriptor_extension){copy, (uint32_t)number, w->file};
    return MR_OK;
}

/* Sets `*out` to the kind of the part that field `number` of a parent holds. LEAF parts have a name
 * only; FIELD is an extension. False: the field holds no part. */
static bool child_kind(enum kind parent, uint32_t number, enum kind *out)
{
    static const struct {
        enum kind parent;
        uint32_t number;
        enum kind child;
    } table[] = {
        {FILE_, 4, MESSAGE},
        {FILE_, 5, ENUM},
        {FILE_, 6, SERVICE},
        {FILE_, 7, FIELD},
        {MESSAGE, 2, LEAF},
        {MESSAGE, 3, MESSAGE},
        {MESSAGE, 4, ENUM},
        {MESSAGE, 6, FIELD},
        {MESSAGE, 8, LEAF},
        {SERVICE, 2, LEAF},
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(table); i++) {
        if (table[i].parent != parent || table[i].number != number) continue;
        *out = table[i].child;
        return true;
    }
    return false;
}

static int enter(struct walk *w, const struct frame *parent, enum kind kind, struct mr_str bytes)
{
    struct mr_str name;
    int err = find_bytes(bytes, 1, &name);
    if (err) return err;
    size_t scope_bytes = scope_extend(w, parent->scope_bytes, name);
    if (!scope_bytes) return MR_EFORMAT;
    err = add_symbol(w, scope_bytes, kind == SERVICE);
    if (err) return err;
    if (kind == FIELD) return add_extension(w, bytes);
    if (kind == LEAF || kind == ENUM) return MR_OK;
    if (w->depth == MR_DEPTH_MAX) return MR_EFORMAT;
    w->frames[w->depth++] = (struct frame){mr_protowire_read(bytes), kind, scope_bytes};
    return MR_OK;
}

static int walk_file(struct walk *w, struct mr_str bytes)
{
    struct mr_str package;
    int err = find_bytes(bytes, 2, &package);
    if (err) return err;
    size_t scope_bytes = package.n ? scope_extend(w, 0, package) : 0;
    if (package.n && !scope_bytes) return MR_EFORMAT;
    w->depth = 0;
    w->frames[w->depth++] = (struct frame){mr_protowire_read(bytes), FILE_, scope_bytes};
    while (w->depth) {
        struct frame *top = &w->frames[w->depth - 1];
        struct mr_protowire_field f;
        err = mr_protowire_next(&top->reader, &f);
        if (err == MR_ENOENT) {
            w->depth--;
            continue;
        }
        if (err) return err;
        enum kind kind = LEAF;
        if (f.type != MR_PROTOWIRE_BYTES || !child_kind(top->kind, f.number, &kind)) continue;
        err = enter(w, top, kind, f.bytes);
        if (err) return err;
    }
    return MR_OK;
}

static int add_file(struct mr_descriptors *d, struct mr_str bytes)
{
    struct mr_str name;
    int err = find_bytes(bytes, 1, &name);
    if (err) return err;
    if (!name.n) return MR_EFORMAT;
    if (mr_descriptors_file(d, name) != MR_INDEX_NONE) return MR_OK;
    if (d->files_count >= FILES_MAX) return MR_ELIMIT;
    size_t each = sizeof *d->files;
    d->files = mr_grow(d->files, d->files_count * each, (d->files_count + 1) * each);
    d->files[d->files_count] = (struct mr_descriptor_file){name, bytes};
    MR_AUTO(mr_free_ptr) struct walk *w = mr_alloc(sizeof *w);
    w->d = d;
    w->file = d->files_count++;
    return walk_file(w, bytes);
}

int mr_descriptors_add(struct mr_descriptors *d, struct mr_str set, struct mr_error *e)
{
    struct mr_protowire_reader r = mr_protowire_read(set);
    struct mr_protowire_field f;
    int err = mr_protowire_next(&r, &f);
    for (; !err; err = mr_protowire_next(&r, &f)) {
        if (f.number != 1 || f.type != MR_PROTOWIRE_BYTES) continue;
        int bad = add_file(d, f.bytes);
        if (bad)
            return mr_fail(e, bad, "file %u of the descriptor set is malformed", d->files_count);
    }
    if (err != MR_ENOENT) return mr_fail(e, err, "malformed FileDescriptorSet");
    return MR_OK;
}

uint32_t mr_descriptors_file(const struct mr_descriptors *d, struct mr_str name)
{
    for (uint32_t i = 0; i < d->files_count; i++)
        if (mr_str_eq(d->files[i].name, name)) return i;
    return MR_INDEX_NONE;
}

uint32_t mr_descriptors_symbol_file(const struct mr_descriptors *d, struct mr_str symbol)
{
    uint32_t i = mr_index_find(&d->by_symbol, hash_name(symbol), symbol_eq, d, &symbol);
    return i == MR_INDEX_NONE ? MR_INDEX_NONE : d->symbols[i].file;
}

uint32_t mr_descriptors_extension_file(
    const struct mr_descriptors *d, struct mr_str extendee, uint32_t number)
{
    for (uint32_t i = 0; i < d->extensions_count; i++)
        if (d->extensions[i].number == number &&
            mr_str_eq(mr_str(d->extensions[i].extendee), extendee))
            return d->extensions[i].file;
    return MR_INDEX_NONE;
}
