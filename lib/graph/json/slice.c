/* Finds the boundaries of the entries of a job, and cuts the entries into slices (slice.h). */
#include "graph/json/slice.h"

#include "base/alloc.h"
#include "base/limits.h"

enum { OTHER, QUOTE, OPEN, CLOSE, COMMA };

static const unsigned char class_of[256] = {
    ['"'] = QUOTE, ['{'] = OPEN, ['['] = OPEN, ['}'] = CLOSE, [']'] = CLOSE, [','] = COMMA};

/* A position in the text. */
struct cursor {
    const char *p;
    const char *end;
};

static void skip_space(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r' || *c->p == '\t'))
        c->p++;
}

static bool take(struct cursor *c, char want)
{
    skip_space(c);
    if (c->p >= c->end || *c->p != want) return false;
    c->p++;
    return true;
}

/* Returns a word in which each byte of `eight` that equals `byte` has its highest bit set. Only the
 * lowest set bit is exact: higher bits may be set for other bytes. */
static uint64_t bytes_like(uint64_t eight, unsigned char byte)
{
    uint64_t x = eight ^ (0x0101010101010101u * byte);
    return (x - 0x0101010101010101u) & ~x & 0x8080808080808080u;
}

/* Moves from after the opening quote of a text to after the closing quote. Sets `*has_escape` to
 * true if the text has a backslash. False: the text has no closing quote. */
static bool skip_text(struct cursor *c, bool *has_escape)
{
    const char *p = c->p;
    for (;;) {
        while (c->end - p >= 8) {
            uint64_t eight = 0;
            memcpy(&eight, p, sizeof eight);
            uint64_t found = bytes_like(eight, '"') | bytes_like(eight, '\\');
            if (found) {
                p += __builtin_ctzll(found) / 8;
                break;
            }
            p += 8;
        }
        if (p >= c->end) return false;
        if (*p == '"') {
            c->p = p + 1;
            return true;
        }
        if (*p == '\\') *has_escape = true;
        p += *p == '\\' ? 2 : 1;
    }
}

/* Skips one value. Sets `*is_plain` to false if the value is an object with a "for", or with an
 * escape in a key, which may spell "for". False: the value is incomplete. */
static bool skip_value(struct cursor *c, bool *is_plain)
{
    bool is_object = c->p < c->end && *c->p == '{', at_key = is_object;
    unsigned depth = 0;
    while (c->p < c->end) {
        unsigned char class = class_of[(unsigned char)*c->p];
        if (class == OTHER) {
            c->p++;
            continue;
        }
        if (!depth && (class == COMMA || class == CLOSE))
            return true; /* this byte ends a number or a word */
        const char *from = ++c->p;
        if (class == QUOTE) {
            bool has_escape = false;
            if (!skip_text(c, &has_escape)) return false;
            if (depth == 1 && is_object && at_key &&
                (has_escape || (c->p - from == 4 && memcmp(from, "for", 3) == 0)))
                *is_plain = false;
            at_key = false;
            if (!depth) return true;
        } else if (class == OPEN) {
            depth++;
        } else if (class == CLOSE) {
            if (!--depth) return true;
        } else if (depth == 1) {
            at_key = true;
        }
    }
    return false;
}

static void add_key(struct mr_json_slices *s, uint32_t at, uint32_t n)
{
    if (s->keys_count == s->keys_room) {
        s->keys_room = s->keys_room ? s->keys_room * 2 : 1024;
        s->keys = mr_grow(s->keys, s->keys_room * sizeof *s->keys, s->keys_room * sizeof *s->keys);
    }
    s->keys[s->keys_count++] = (struct mr_json_span){at, n};
}

static void add_slice(struct mr_json_slices *s, struct mr_json_slice *slice, uint32_t end)
{
    if (s->slices_count == s->slices_room) {
        uint32_t room = s->slices_room ? s->slices_room * 2 : 64;
        s->slices = mr_grow(s->slices, s->slices_room * sizeof *slice, room * sizeof *slice);
        s->slices_room = room;
    }
    slice->n = end - slice->at;
    slice->keys_count = s->keys_count - slice->keys_at;
    s->slices[s->slices_count++] = *slice;
    *slice = (struct mr_json_slice){.at = end + 1, .keys_at = s->keys_count, .is_plain = true};
}

/* Finds the boundaries of one entry. Moves the cursor from the start of the entry's key to the end
 * of the entry's value. False: the entry is malformed or incomplete. */
static bool cut_entry(const char *text, struct cursor *c, struct mr_json_slices *s, bool *is_plain)
{
    bool has_escape = false;
    if (!take(c, '"')) return false;
    uint32_t key_at = (uint32_t)(c->p - text);
    if (!skip_text(c, &has_escape)) return false;
    uint32_t key_bytes = (uint32_t)(c->p - text) - key_at - 1;
    if (!take(c, ':')) return false;
    skip_space(c);
    if (!skip_value(c, is_plain)) return false;
    skip_space(c);
    if (has_escape) *is_plain = false;
    add_key(s, key_at, key_bytes);
    return true;
}

/* Finds the boundaries of all entries. Moves the cursor from after the opening brace to after the
 * closing brace. Stops, and returns true, when there are more than MR_TASKS_MAX keys. False: an
 * entry is malformed. */
static bool cut_entries(
    const char *text, struct cursor *c, uint32_t slice_bytes, struct mr_json_slices *s)
{
    s->from = (uint32_t)(c->p - text);
    struct mr_json_slice slice = {.at = s->from, .is_plain = true};
    do {
        /* The caller compares keys_count with the limit. */
        if (s->keys_count > MR_TASKS_MAX) return true;
        if (!cut_entry(text, c, s, &slice.is_plain)) return false;
        uint32_t end = (uint32_t)(c->p - text);
        bool more = c->p < c->end && *c->p == ',';
        if (!more || end - slice.at >= slice_bytes) add_slice(s, &slice, end);
    } while (take(c, ','));
    s->to = (uint32_t)(c->p - text);
    return take(c, '}');
}

bool mr_json_slices_add(struct mr_str text, uint32_t *at, uint32_t entries_max,
    uint32_t slice_bytes, struct mr_json_slices *s)
{
    struct cursor c = {text.p + *at, text.p + text.n};
    struct mr_json_slice slice = {.at = *at, .keys_at = s->keys_count, .is_plain = true};
    bool is_end = false;
    for (uint32_t i = 0; i < entries_max && !is_end; i++) {
        uint32_t keys_count = s->keys_count;
        bool is_plain = slice.is_plain;
        bool is_whole = cut_entry(text.p, &c, s, &is_plain);
        if (!is_whole || c.p == c.end || (*c.p != ',' && *c.p != '}')) {
            s->keys_count = keys_count;
            break;
        }
        slice.is_plain = is_plain;
        is_end = *c.p++ == '}';
        *at = (uint32_t)(c.p - text.p);
        if (*at - 1 - slice.at >= slice_bytes) add_slice(s, &slice, *at - 1);
    }
    if (s->keys_count > slice.keys_at) add_slice(s, &slice, *at - 1);
    return is_end;
}

static bool is_text(const char *key, size_t n, const char *want)
{
    return n == strlen(want) && memcmp(key, want, n) == 0;
}

/* Moves to after the opening brace of the entries. False: the text has another form or ends
 * earlier. */
static bool find_entries(struct cursor *c, bool *is_dsk)
{
    if (!take(c, '{')) return false;
    do {
        bool unused = false;
        if (!take(c, '"')) return false;
        const char *key = c->p;
        if (!skip_text(c, &unused)) return false;
        size_t n = (size_t)(c->p - key) - 1;
        if (!take(c, ':')) return false;
        skip_space(c);
        *is_dsk = is_text(key, n, "dsk");
        if (*is_dsk || is_text(key, n, "tasks")) return take(c, '{');
        if (!skip_value(c, &unused)) return false;
    } while (take(c, ','));
    return false;
}

uint32_t mr_json_entries_at(struct mr_str text, bool *is_dsk)
{
    struct cursor c = {text.p, text.p + text.n};
    return find_entries(&c, is_dsk) ? (uint32_t)(c.p - text.p) : 0;
}

static bool split(struct mr_str text, uint32_t slice_bytes, struct mr_json_slices *s)
{
    struct cursor c = {text.p, text.p + text.n};
    bool is_dsk = false;
    return find_entries(&c, &is_dsk) && cut_entries(text.p, &c, slice_bytes, s);
}

bool mr_json_slices_find(struct mr_str text, uint32_t slice_bytes, struct mr_json_slices *out)
{
    struct mr_json_slices s = {0};
    if (text.n > UINT32_MAX / 2 || !split(text, slice_bytes, &s)) {
        mr_json_slices_fini(&s);
        return false;
    }
    *out = s;
    return true;
}

void mr_json_slices_fini(struct mr_json_slices *s)
{
    mr_release(s->slices);
    mr_release(s->keys);
    *s = (struct mr_json_slices){0};
}
