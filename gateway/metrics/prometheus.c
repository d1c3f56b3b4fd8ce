/* Families are kept in a sorted array, because there are only a few hundred. */
#include "gateway/metrics/prometheus.h"

#include "base/alloc.h"

#include <inttypes.h>

#define FAMILIES_MAX 4096
#define FAMILY_BYTES_MAX ((size_t)16 << 20)

struct family {
    char *name;
    char *help; /* the whole line "# HELP …"; NULL: the family has none */
    char *type;
    struct mr_buf series;
};

struct mr_prometheus {
    struct family items[FAMILIES_MAX];
    size_t count;
};

struct mr_prometheus *mr_prometheus_new(void)
{
    return mr_alloc(sizeof(struct mr_prometheus));
}

void mr_prometheus_free(struct mr_prometheus **p)
{
    if (!*p) return;
    for (size_t i = 0; i < (*p)->count; i++) {
        struct family *f = &(*p)->items[i];
        mr_release(f->name);
        mr_release(f->help);
        mr_release(f->type);
        mr_buf_fini(&f->series);
    }
    mr_release(*p);
    *p = NULL;
}

static struct family *family_of(struct mr_prometheus *p, struct mr_str name)
{
    size_t low = 0, high = p->count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = mr_str_cmp(name, mr_str(p->items[mid].name));
        if (c == 0) return &p->items[mid];
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    if (p->count == FAMILIES_MAX) return NULL;
    memmove(&p->items[low + 1], &p->items[low], (p->count - low) * sizeof p->items[0]);
    p->count++;
    p->items[low] = (struct family){.name = mr_format("%.*s", MR_STR_ARG(name))};
    mr_buf_init(&p->items[low].series, FAMILY_BYTES_MAX);
    return &p->items[low];
}

static size_t name_bytes(struct mr_str s)
{
    size_t n = 0;
    if (s.n && s.p[0] >= '0' && s.p[0] <= '9') return 0;
    while (n < s.n && (s.p[n] == '_' || s.p[n] == ':' || (s.p[n] >= '0' && s.p[n] <= '9') ||
                          ((s.p[n] | 32) >= 'a' && (s.p[n] | 32) <= 'z')))
        n++;
    return n;
}

/* Adds "# HELP name …" or "# TYPE name …". Returns the family of the series that follow. NULL: the
 * line is another comment, or there are FAMILIES_MAX families. */
static struct family *add_comment(struct mr_prometheus *p, struct mr_str line)
{
    if (line.n < 8) return NULL;
    bool is_help = !memcmp(line.p, "# HELP ", 7), is_type = !memcmp(line.p, "# TYPE ", 7);
    if (!is_help && !is_type) return NULL;
    struct mr_str rest = mr_str_of(line.p + 7, line.n - 7);
    size_t n = name_bytes(rest);
    struct family *f = n ? family_of(p, mr_str_of(rest.p, n)) : NULL;
    if (!f) return NULL;
    char **slot = is_help ? &f->help : &f->type;
    if (!*slot) *slot = mr_format("%.*s\n", MR_STR_ARG(line));
    return f;
}

static void add_series(struct family *f, struct mr_str line, size_t name_n, const char *labels)
{
    struct mr_buf *b = &f->series;
    mr_buf_add(b, line.p, name_n);
    mr_buf_printf(b, "{%s", labels);
    const char *rest = line.p + name_n;
    size_t rest_n = line.n - name_n;
    if (rest_n && rest[0] == '{') {
        if (rest_n > 1 && rest[1] != '}') mr_buf_add_byte(b, ',');
        mr_buf_add(b, rest + 1, rest_n - 1);
    } else {
        mr_buf_add_byte(b, '}');
        mr_buf_add(b, rest, rest_n);
    }
    mr_buf_add_byte(b, '\n');
}

/* True: the series belongs to the family. A histogram `name` has the series name_bucket, name_sum
 * and name_count. */
static bool belongs(const struct family *f, struct mr_str name)
{
    size_t n = strlen(f->name);
    return name.n >= n && !memcmp(name.p, f->name, n) && (name.n == n || name.p[n] == '_');
}

void mr_prometheus_label(struct mr_buf *out, const char *name, const char *value)
{
    if (out->n && out->p[out->n - 1] != '{') mr_buf_add_byte(out, ',');
    mr_buf_printf(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') mr_buf_add_byte(out, '\\');
        if (*value == '\n')
            mr_buf_add_text(out, "\\n");
        else
            mr_buf_add_byte(out, (unsigned char)*value);
    }
    mr_buf_add_byte(out, '"');
}

void mr_prometheus_add(struct mr_prometheus *p, struct mr_str text, const char *labels)
{
    struct family *current = NULL;
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        struct mr_str line = mr_str_of(text.p, n);
        text = mr_str_of(text.p + n + (end ? 1 : 0), text.n - n - (end ? 1 : 0));
        if (line.n && line.p[0] == '#') {
            struct family *f = add_comment(p, line);
            if (f) current = f;
            continue;
        }
        size_t name_n = name_bytes(line);
        if (!name_n || name_n == line.n) continue;
        struct mr_str name = mr_str_of(line.p, name_n);
        if (!current || !belongs(current, name)) current = family_of(p, name);
        if (current) add_series(current, line, name_n, labels);
    }
}

void mr_prometheus_add_value(struct mr_prometheus *p, const struct mr_prometheus_family *family,
    const char *labels, uint64_t value)
{
    struct family *f = family_of(p, mr_str(family->name));
    if (!f) return;
    if (!f->help) f->help = mr_format("# HELP %s %s\n", family->name, family->help);
    if (!f->type) f->type = mr_format("# TYPE %s %s\n", family->name, family->type);
    mr_buf_printf(&f->series, "%s{%s} %" PRIu64 "\n", family->name, labels, value);
}

void mr_prometheus_write(const struct mr_prometheus *p, struct mr_buf *out)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct family *f = &p->items[i];
        if (f->help) mr_buf_add_text(out, f->help);
        if (f->type) mr_buf_add_text(out, f->type);
        mr_buf_add_str(out, mr_buf_str(&f->series));
    }
}
