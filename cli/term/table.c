/* Keeps the cells until the table is written. Then each column gets the width of its widest cell. A
 * table that is too wide is narrowed in steps until it fits. First sentences are wrapped, then keys
 * are shortened, then optional columns are left out. Last, keys are shortened further. */
#include "cli/term/table.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "cli/term/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_BYTES_MAX ((size_t)1 << 30)
#define GAP 2
/* Keys are cut to this width before optional columns are left out. */
#define STUMP 12
/* Keys are cut to this width after optional columns are left out. */
#define LEAST 5
#define SENTENCE_MIN 24

struct mr_table {
    const struct mr_column *columns;
    size_t count;
    struct mr_buf text;              /* the texts of all cells, one after the other */
    struct mr_buf ends;              /* size_t numbers: the end of each cell in `text` */
    unsigned wanted[MR_COLUMNS_MAX]; /* width of the widest cell of each column so far */
    bool has_heading;
};

struct layout {
    unsigned width[MR_COLUMNS_MAX]; /* 0: the column is left out */
};

struct mr_table *mr_table_new(const struct mr_column *columns, size_t count)
{
    mr_assert(count && count <= MR_COLUMNS_MAX);
    struct mr_table *t = mr_alloc(sizeof *t);
    t->columns = columns;
    t->count = count;
    mr_buf_init(&t->text, TABLE_BYTES_MAX);
    mr_buf_init(&t->ends, TABLE_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        bool has_title = columns[i].title != NULL;
        t->wanted[i] = has_title ? mr_text_width(mr_str(columns[i].title)) : 0;
        t->has_heading = t->has_heading || has_title;
    }
    return t;
}

void mr_table_free(struct mr_table **table)
{
    struct mr_table *t = *table;
    if (!t) return;
    mr_buf_fini(&t->text);
    mr_buf_fini(&t->ends);
    mr_release(t);
    *table = NULL;
}

static size_t cells_of(const struct mr_table *t)
{
    return t->ends.n / sizeof(size_t);
}

static struct mr_str cell(const struct mr_table *t, size_t i)
{
    const size_t *ends = (const size_t *)(const void *)t->ends.p;
    size_t from = i ? ends[i - 1] : 0;
    return mr_str_of((const char *)t->text.p + from, ends[i] - from);
}

void mr_table_add(struct mr_table *t, const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    size_t column = cells_of(t) % t->count;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n > 0) mr_buf_add(&t->text, text, (size_t)n);
    unsigned width = n > 0 ? mr_text_width(mr_str_of(text, (size_t)n)) : 0;
    free(text);
    mr_buf_add(&t->ends, &t->text.n, sizeof t->text.n);
    t->wanted[column] = MR_MAX(t->wanted[column], width);
}

/* ---- widths ---------------------------------------------------------------------------------- */

static unsigned total(const struct mr_table *t, const struct layout *l)
{
    unsigned sum = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (!l->width[i]) continue;
        sum += (sum ? GAP : 0) + l->width[i];
    }
    return sum;
}

/* Narrows the columns of keys, the widest column first, until the table fits into `width`. Makes no
 * column narrower than `least`. */
static void shorten(const struct mr_table *t, struct layout *l, unsigned width, unsigned least)
{
    while (total(t, l) > width) {
        size_t longest = t->count;
        for (size_t i = 0; i < t->count; i++) {
            if (t->columns[i].kind != MR_COLUMN_KEY || l->width[i] <= least) continue;
            if (longest == t->count || l->width[i] > l->width[longest]) longest = i;
        }
        if (longest == t->count) return;
        l->width[longest]--;
    }
}

/* Widens cut columns of keys, the narrowest first, by what is left of `width`. */
static void widen(const struct mr_table *t, struct layout *l, unsigned width)
{
    while (total(t, l) < width) {
        size_t least = t->count;
        for (size_t i = 0; i < t->count; i++) {
            if (t->columns[i].kind != MR_COLUMN_KEY || l->width[i] >= t->wanted[i]) continue;
            if (least == t->count || l->width[i] < l->width[least]) least = i;
        }
        if (least == t->count) return;
        l->width[least]++;
    }
}

static void leave_out(const struct mr_table *t, struct layout *l, unsigned width)
{
    for (size_t i = t->count; i-- > 0 && total(t, l) > width;)
        if (t->columns[i].is_optional) l->width[i] = 0;
}

static struct layout layout_of(const struct mr_table *t, unsigned width)
{
    struct layout l;
    memcpy(l.width, t->wanted, sizeof l.width);
    size_t last = t->count - 1;
    if (!width || total(t, &l) <= width) return l;
    if (t->columns[last].kind == MR_COLUMN_SENTENCE) {
        unsigned over = total(t, &l) - width;
        unsigned least = MR_MIN(l.width[last], (unsigned)SENTENCE_MIN);
        l.width[last] = l.width[last] > over + least ? l.width[last] - over : least;
    }
    shorten(t, &l, width, STUMP);
    leave_out(t, &l, width);
    shorten(t, &l, width, LEAST);
    widen(t, &l, width);
    return l;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Appends a sentence that is wrapped. Words that are wider than the column are keys, and lose their
 * middle. */
static void add_sentence(
    struct mr_str text, unsigned at, unsigned width, bool is_terminal, struct mr_buf *out)
{
    struct mr_buf words;
    if (!is_terminal) {
        mr_text_add(text, out);
        return;
    }
    mr_buf_init(&words, TABLE_BYTES_MAX);
    for (size_t n = 0; text.n; text = mr_str_of(text.p + n, text.n - n)) {
        const char *space = memchr(text.p, ' ', text.n);
        n = space ? (size_t)(space - text.p) : text.n;
        mr_text_add_elided(mr_str_of(text.p, n), width, &words);
        n += space != NULL;
        if (space) mr_buf_add_byte(&words, ' ');
    }
    mr_text_add_wrapped(mr_buf_str(&words), at, at, at + width, out);
    mr_buf_fini(&words);
}

static void add_cell(const struct mr_table *t, const struct layout *l, size_t i, unsigned at,
    struct mr_str text, bool is_terminal, struct mr_buf *out)
{
    unsigned width = l->width[i];
    unsigned has = MR_MIN(mr_text_width(text), width);
    switch (t->columns[i].kind) {
    case MR_COLUMN_NUMBER: mr_buf_printf(out, "%*s", (int)(width - has), ""); break;
    case MR_COLUMN_KEY: mr_text_add_elided(text, width, out); break;
    case MR_COLUMN_SENTENCE: add_sentence(text, at, width, is_terminal, out); return;
    case MR_COLUMN_WORD: break;
    }
    if (t->columns[i].kind != MR_COLUMN_KEY) mr_text_add(text, out);
    if (t->columns[i].kind != MR_COLUMN_NUMBER) mr_buf_printf(out, "%*s", (int)(width - has), "");
}

static void add_row(const struct mr_table *t, const struct layout *l, size_t row, bool is_heading,
    bool is_terminal, struct mr_buf *out)
{
    unsigned at = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (!l->width[i]) continue;
        if (at) mr_buf_printf(out, "%*s", GAP, "");
        at += at ? GAP : 0;
        struct mr_str text = is_heading ? mr_str(t->columns[i].title) : cell(t, row * t->count + i);
        add_cell(t, l, i, at, text, is_terminal, out);
        at += l->width[i];
    }
    while (out->n && out->p[out->n - 1] == ' ')
        out->n--;
    mr_buf_add_byte(out, '\n');
}

void mr_table_write(struct mr_table *t, unsigned width, struct mr_buf *out)
{
    mr_assert(cells_of(t) % t->count == 0);
    struct layout l = layout_of(t, width);
    if (t->has_heading) add_row(t, &l, 0, true, width != 0, out);
    t->has_heading = false;
    for (size_t i = 0; i < cells_of(t) / t->count; i++)
        add_row(t, &l, i, false, width != 0, out);
    mr_buf_clear(&t->text);
    mr_buf_clear(&t->ends);
}

void mr_table_print(struct mr_table *t)
{
    struct mr_buf out;
    mr_buf_init(&out, TABLE_BYTES_MAX);
    mr_table_write(t, mr_text_columns(stdout), &out);
    (void)fwrite(out.p, 1, out.n, stdout);
    mr_buf_fini(&out);
}
