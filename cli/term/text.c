/* Walks a text character by character (struct glyph) and adds up the widths. */
#include "cli/term/text.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define COLUMNS_MIN 20
#define COLUMNS_MAX 10000
#define COLUMNS_ELSE 80
#define TEXT_BYTES_MAX ((size_t)1 << 28)
#define CUT "…"

unsigned mr_text_columns(FILE *file)
{
    struct winsize size = {0};
    const char *given = getenv("COLUMNS");
    if (!isatty(fileno(file))) return 0;
    unsigned long columns = 0;
    if (!ioctl(fileno(file), TIOCGWINSZ, &size)) columns = size.ws_col;
    if (!columns && given) columns = strtoul(given, NULL, 10);
    if (!columns) columns = COLUMNS_ELSE;
    return (unsigned)MR_MIN(MR_MAX(columns, COLUMNS_MIN), COLUMNS_MAX);
}

unsigned mr_text_live_columns(FILE *file)
{
    unsigned columns = mr_text_columns(file);
    return columns ? columns - 3 : 0;
}

/* ---- characters ------------------------------------------------------------------------------ */

struct glyph {
    size_t bytes;
    unsigned columns;
    bool shown; /* false: "?" is shown instead of the character */
};

static struct glyph broken(void)
{
    return (struct glyph){.bytes = 1, .columns = 1};
}

/* Returns the first character of a text, which must not be empty. */
static struct glyph glyph_of(struct mr_str s)
{
    unsigned char lead = (unsigned char)s.p[0];
    size_t bytes = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (!bytes || bytes > s.n || lead > 0xf4) return broken();
    wchar_t c = bytes == 1 ? lead : lead & (0x7f >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (((unsigned char)s.p[i] & 0xc0) != 0x80) return broken();
        c = c << 6 | (s.p[i] & 0x3f);
    }
    int columns = wcwidth(c);
    if (columns >= 0) return (struct glyph){bytes, (unsigned)columns, true};
    return (struct glyph){.bytes = bytes, .columns = 1};
}

static struct mr_str after(struct mr_str s, size_t bytes)
{
    return mr_str_of(s.p + bytes, s.n - bytes);
}

unsigned mr_text_width(struct mr_str text)
{
    unsigned columns = 0;
    while (text.n) {
        struct glyph g = glyph_of(text);
        columns += g.columns;
        text = after(text, g.bytes);
    }
    return columns;
}

/* Returns how many bytes from the start of the text fit into `columns`. */
static size_t bytes_of(struct mr_str text, unsigned columns)
{
    size_t at = 0;
    while (at < text.n) {
        struct glyph g = glyph_of(after(text, at));
        if (g.columns > columns) break;
        columns -= g.columns;
        at += g.bytes;
    }
    return at;
}

void mr_text_add(struct mr_str text, struct mr_buf *out)
{
    while (text.n) {
        struct glyph g = glyph_of(text);
        mr_buf_add(out, g.shown ? text.p : "?", g.shown ? g.bytes : 1);
        text = after(text, g.bytes);
    }
}

void mr_text_add_truncated(struct mr_str text, unsigned columns, struct mr_buf *out)
{
    bool fits = !columns || mr_text_width(text) <= columns;
    mr_text_add(mr_str_of(text.p, fits ? text.n : bytes_of(text, columns - 1)), out);
    if (!fits) mr_buf_add_text(out, CUT);
}

void mr_text_add_elided(struct mr_str text, unsigned columns, struct mr_buf *out)
{
    unsigned width = mr_text_width(text);
    if (!columns || width <= columns) {
        mr_text_add(text, out);
        return;
    }
    unsigned tail = (columns - 1) / 2;
    size_t from = bytes_of(text, width - tail);
    /* A wide character lies across the cut. */
    if (mr_text_width(after(text, from)) > tail) from += glyph_of(after(text, from)).bytes;
    mr_text_add(mr_str_of(text.p, bytes_of(text, columns - 1 - tail)), out);
    mr_buf_add_text(out, CUT);
    mr_text_add(after(text, from), out);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static struct mr_str line_of(struct mr_str text)
{
    const char *end = text.n ? memchr(text.p, '\n', text.n) : NULL;
    return mr_str_of(text.p, end ? (size_t)(end - text.p) : text.n);
}

/* Returns at which byte to break a line that is too long: at a space after the line's indentation.
 * If there is no such space, returns the length of the line. */
static size_t break_of(struct mr_str line, unsigned columns)
{
    size_t lead = 0;
    size_t most = bytes_of(line, columns);
    while (lead < line.n && line.p[lead] == ' ')
        lead++;
    for (size_t at = MR_MIN(most, line.n - 1); at > lead; at--)
        if (line.p[at] == ' ') return at;
    for (size_t at = most; at < line.n; at++)
        if (at > lead && line.p[at] == ' ') return at;
    return line.n;
}

static unsigned room_of(unsigned columns, unsigned from)
{
    return columns > from + COLUMNS_MIN ? columns - from : COLUMNS_MIN;
}

void mr_text_add_wrapped(
    struct mr_str text, unsigned start, unsigned indent, unsigned columns, struct mr_buf *out)
{
    for (unsigned from = start; text.n; from = 0) {
        struct mr_str line = line_of(text);
        text = after(text, line.n);
        for (; columns && mr_text_width(line) > room_of(columns, from); from = indent) {
            size_t at = break_of(line, room_of(columns, from));
            mr_text_add(mr_str_of(line.p, at), out);
            line = after(line, at);
            while (line.n && line.p[0] == ' ')
                line = after(line, 1);
            if (!line.n) break;
            mr_buf_printf(out, "\n%*s", (int)indent, "");
        }
        mr_text_add(line, out);
        if (!text.n) return;
        mr_buf_add_byte(out, '\n');
        text = after(text, 1);
    }
}

void mr_text_print(unsigned indent, const char *fmt, ...)
{
    struct mr_buf out;
    va_list ap;
    char *made = NULL;
    va_start(ap, fmt);
    int n = vasprintf(&made, fmt, ap);
    va_end(ap);
    mr_buf_init(&out, TEXT_BYTES_MAX);
    if (n < 0) return;
    mr_text_add_wrapped(mr_str_of(made, (size_t)n), 0, indent, mr_text_columns(stdout), &out);
    (void)fwrite(out.p, 1, out.n, stdout);
    free(made);
    mr_buf_fini(&out);
}
