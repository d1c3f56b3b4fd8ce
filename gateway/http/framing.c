/* Parses the bytes of one connection, and keeps at most one head or line of them in memory. The
 * bytes that libmicrohttpd may read are appended to `out`. */
#include "gateway/http/framing.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CHUNK_DIGITS_MAX 15
#define KEPT_BYTES_MAX 4096 /* bytes of memory that an idle connection keeps */
#define CHUNK_LINE_BYTES_MAX (CHUNK_DIGITS_MAX + MR_FRAMING_EXTENSION_BYTES_MAX + 2)
#define LENGTH_DIGITS_MAX 19
#define METHOD_BYTES_MAX 32

struct head {
    unsigned fields, hosts, lengths, codings;
    bool is_old; /* HTTP/1.0 */
    bool is_chunked;
    bool is_padded; /* true: a header of the head ends in white space */
    uint64_t length;
};

void mr_framing_init(struct mr_framing *f)
{
    *f = (struct mr_framing){.state = MR_FRAMING_HEAD};
    mr_buf_init(&f->hold, MR_FRAMING_HEAD_BYTES_MAX + 2);
}

void mr_framing_fini(struct mr_framing *f)
{
    mr_buf_fini(&f->hold);
}

/* ---- refusing -------------------------------------------------------------------------------- */

static bool refuse(struct mr_framing *f, int status, const char *why)
{
    mr_assert(!f->status);
    f->status = status;
    f->why = why;
    return false;
}

/* Appends to `out` what libmicrohttpd reads in place of the refused bytes: a whole request if a
 * head was refused, or else the end of the body. */
static void pass_refusal(struct mr_framing *f, struct mr_buf *out)
{
    switch (f->state) {
    case MR_FRAMING_HEAD:
        f->heads++;
        mr_buf_add_text(out, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        break;
    case MR_FRAMING_CHUNK_END: mr_buf_add_text(out, "\r\n0\r\n\r\n"); break;
    case MR_FRAMING_CHUNK_LINE:
    case MR_FRAMING_TRAILER: mr_buf_add_text(out, "0\r\n\r\n"); break;
    case MR_FRAMING_BODY:
    case MR_FRAMING_CHUNK_DATA:
    case MR_FRAMING_REFUSED: mr_assert(false); break;
    }
    f->state = MR_FRAMING_REFUSED;
    mr_buf_clear(&f->hold);
}

bool mr_framing_is_refused(const struct mr_framing *f, uint64_t head)
{
    return f->state == MR_FRAMING_REFUSED && head == f->heads;
}

/* ---- characters ------------------------------------------------------------------------------ */

static bool is_token_char(unsigned char c)
{
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return true;
    return (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct mr_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_token_char((unsigned char)s.p[i])) return false;
    return s.n > 0;
}

/* True: the text has a control character other than a tab. */
static bool has_control(struct mr_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return true;
    }
    return false;
}

static struct mr_str trim(struct mr_str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = mr_str_of(s.p + 1, s.n - 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static bool is_same(struct mr_str s, const char *text)
{
    return s.n == strlen(text) && strncasecmp(s.p, text, s.n) == 0;
}

/* ---- heads ----------------------------------------------------------------------------------- */

static bool read_version(struct mr_framing *f, struct head *h, struct mr_str version)
{
    h->is_old = mr_str_eq(version, MR_STR("HTTP/1.0"));
    if (h->is_old || mr_str_eq(version, MR_STR("HTTP/1.1"))) return true;
    bool is_other = version.n == 8 && memcmp(version.p, "HTTP/", 5) == 0 && version.p[6] == '.';
    if (is_other) return refuse(f, 505, "this server speaks HTTP/1.1 and HTTP/1.0");
    return refuse(f, 400, "the request line does not end in HTTP/1.1");
}

static bool read_request_line(struct mr_framing *f, struct head *h, struct mr_str line)
{
    const char *first = memchr(line.p, ' ', line.n);
    const char *last = memrchr(line.p, ' ', line.n);
    if (!first || first == last)
        return refuse(f, 400, "the request line is not METHOD TARGET HTTP/1.1");
    struct mr_str method = mr_str_of(line.p, (size_t)(first - line.p));
    struct mr_str target = mr_str_of(first + 1, (size_t)(last - first) - 1);
    if (!is_token(method) || method.n > METHOD_BYTES_MAX)
        return refuse(f, 400, "the method of the request line is not one");
    if (target.n > MR_FRAMING_TARGET_BYTES_MAX)
        return refuse(f, 414, "the request target is longer than 32 KiB");
    if (!target.n || has_control(target) || memchr(target.p, ' ', target.n) ||
        memchr(target.p, '\t', target.n))
        return refuse(f, 400, "the request target has a control character or a space, or is empty");
    size_t at = (size_t)(last - line.p) + 1;
    return read_version(f, h, mr_str_of(line.p + at, line.n - at));
}

static bool read_length(struct mr_framing *f, struct head *h, struct mr_str value)
{
    if (h->lengths++) return refuse(f, 400, "Content-Length is given twice");
    if (!value.n || value.n > LENGTH_DIGITS_MAX)
        return refuse(f, 400, "Content-Length is not a number of bytes");
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return refuse(f, 400, "Content-Length is not a number of bytes");
        h->length = h->length * 10 + (uint64_t)(value.p[i] - '0');
    }
    return true;
}

static bool read_field(struct mr_framing *f, struct head *h, struct mr_str line)
{
    if (++h->fields > MR_FRAMING_FIELDS_MAX)
        return refuse(f, 431, "the request has more than 256 headers");
    if (line.p[0] == ' ' || line.p[0] == '\t')
        return refuse(f, 400, "a header is continued on the next line, which is obsolete");
    const char *colon = memchr(line.p, ':', line.n);
    size_t n = colon ? (size_t)(colon - line.p) : 0;
    if (!is_token(mr_str_of(line.p, n)))
        return refuse(f, 400, "a header is not NAME: VALUE, without a space before the colon");
    struct mr_str name = mr_str_of(line.p, n);
    struct mr_str value = trim(mr_str_of(line.p + n + 1, line.n - n - 1));
    char last = line.p[line.n - 1];
    if (last == ' ' || last == '\t') h->is_padded = true;
    if (has_control(value)) return refuse(f, 400, "a header has a control character in its value");
    if (is_same(name, "Host") && h->hosts++)
        return refuse(f, 400, "the header Host is given twice");
    if (is_same(name, "Content-Length")) return read_length(f, h, value);
    if (!is_same(name, "Transfer-Encoding")) return true;
    if (h->codings++) return refuse(f, 400, "Transfer-Encoding is given twice");
    h->is_chunked = is_same(value, "chunked");
    if (!h->is_chunked)
        return refuse(f, 501, "the only Transfer-Encoding that is understood is chunked");
    return true;
}

static bool check_together(struct mr_framing *f, const struct head *h)
{
    if (!h->hosts && !h->is_old) return refuse(f, 400, "the header Host is missing");
    if (h->codings && h->lengths)
        return refuse(f, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (h->codings && h->is_old) return refuse(f, 400, "HTTP/1.0 knows no Transfer-Encoding");
    return true;
}

/* Drops white space at the end of headers: libmicrohttpd would count it as part of the value. */
static void pass_trimmed(const char *p, size_t n, struct mr_buf *out)
{
    for (size_t at = 0; at < n;) {
        const char *end = memchr(p + at, '\n', n - at);
        struct mr_str line = mr_str_of(p + at, (size_t)(end - p) - at - 1);
        at += line.n + 2;
        while (line.n && (line.p[line.n - 1] == ' ' || line.p[line.n - 1] == '\t'))
            line.n--;
        mr_buf_add_str(out, line);
        mr_buf_add_text(out, "\r\n");
    }
}

/* Reads a complete head, in which every line ends in CR LF, and appends it to `out`. False: the
 * head was refused. */
static bool read_head(struct mr_framing *f, const char *p, size_t n, struct mr_buf *out)
{
    struct head h = {0};
    for (size_t at = 0, line = 0; at < n - 2; line++) {
        const char *end = memchr(p + at, '\n', n - at);
        struct mr_str text = mr_str_of(p + at, (size_t)(end - p) - at - 1);
        if (line == 0 ? !read_request_line(f, &h, text) : !read_field(f, &h, text)) return false;
        at = (size_t)(end - p) + 1;
    }
    if (!check_together(f, &h)) return false;
    f->left = h.length;
    f->state = h.is_chunked   ? MR_FRAMING_CHUNK_LINE
               : h.length > 0 ? MR_FRAMING_BODY
                              : MR_FRAMING_HEAD;
    f->heads++;
    if (h.is_padded)
        pass_trimmed(p, n, out);
    else
        mr_buf_add(out, p, n);
    return true;
}

/* Returns the end of a head, after its empty line. 0: the end has not come yet, or a line does not
 * end in CR LF. `*ok` is false only in the latter case. */
static size_t find_end(const char *p, size_t n, size_t *scanned, bool *ok)
{
    while (*scanned < n) {
        const char *lf = memchr(p + *scanned, '\n', n - *scanned);
        if (!lf) {
            *scanned = n;
            return 0;
        }
        size_t at = (size_t)(lf - p);
        *scanned = at + 1;
        *ok = at > 0 && p[at - 1] == '\r';
        if (!*ok) return 0;
        if (at == 1 || p[at - 2] == '\n') return at + 1;
    }
    return 0;
}

/* True: a head may begin with this byte. The first byte is checked at once, so that a client with
 * another protocol gets an answer instead of waiting for the end of a head. */
static bool may_begin(char c)
{
    return is_token_char((unsigned char)c) || c == '\r';
}

/* Takes bytes of the input up to the end of the head and returns their number. After a refusal,
 * takes all `n` bytes. */
static size_t take_head(struct mr_framing *f, const char *p, size_t n, struct mr_buf *out)
{
    bool is_held = f->hold.n > 0, ok = true;
    size_t held = f->hold.n;
    size_t taken = MR_MIN(n, MR_FRAMING_HEAD_BYTES_MAX + 1 - held);
    if (!is_held && !may_begin(p[0])) {
        (void)refuse(f, 400, "this is not HTTP/1.1");
        pass_refusal(f, out);
        return n;
    }
    if (is_held) mr_buf_add(&f->hold, p, taken);
    const char *head = is_held ? (const char *)f->hold.p : p;
    size_t head_n = held + taken;
    size_t end = find_end(head, head_n, &f->scanned, &ok);
    if (!ok)
        (void)refuse(f, 400, "a line of the head does not end in CR LF");
    else if (!end && head_n > MR_FRAMING_HEAD_BYTES_MAX)
        (void)refuse(f, 431, "the head of the request is larger than 64 KiB");
    if (!f->status && !end) {
        if (!is_held) mr_buf_add(&f->hold, p, taken);
        return taken;
    }
    f->scanned = 0;
    /* An empty line, which some clients send after a body. */
    bool is_empty = end == 2;
    if (!f->status && !is_empty) (void)read_head(f, head, end, out);
    if (f->status) pass_refusal(f, out);
    mr_buf_clear_above(&f->hold, KEPT_BYTES_MAX);
    return f->status ? n : end - held;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
    return -1;
}

static bool read_chunk_line(struct mr_framing *f, struct mr_str line, struct mr_buf *out)
{
    size_t at = 0;
    uint64_t size = 0;
    while (at < line.n && hex(line.p[at]) >= 0 && at <= CHUNK_DIGITS_MAX)
        size = size << 4 | (uint64_t)hex(line.p[at++]);
    struct mr_str extension = trim(mr_str_of(line.p + at, line.n - at));
    if (at == 0 || at > CHUNK_DIGITS_MAX)
        return refuse(f, 400, "a chunk does not begin with its size in hexadecimal digits");
    if (has_control(extension) || (extension.n && extension.p[0] != ';'))
        return refuse(f, 400, "what follows the size of a chunk is not an extension");
    f->left = size;
    f->state = size ? MR_FRAMING_CHUNK_DATA : MR_FRAMING_TRAILER;
    char text[24];
    (void)snprintf(text, sizeof text, "%llx\r\n", (unsigned long long)size);
    if (size) mr_buf_add_text(out, text);
    return true;
}

static bool read_trailer(struct mr_framing *f, struct mr_str line, struct mr_buf *out)
{
    struct head h = {0};
    /* A field of the trailer is checked and dropped. */
    if (line.n) return read_field(f, &h, line);
    mr_buf_add_text(out, "0\r\n\r\n");
    f->left = 0;
    f->state = MR_FRAMING_HEAD;
    return true;
}

static bool read_line(struct mr_framing *f, struct mr_buf *out)
{
    struct mr_str line = mr_str_of(f->hold.p, f->hold.n - 2);
    if (f->hold.n < 2 || line.p[line.n] != '\r')
        return refuse(f, 400, "a line between chunks does not end in CR LF");
    if (f->state == MR_FRAMING_CHUNK_LINE) return read_chunk_line(f, line, out);
    if (f->state == MR_FRAMING_TRAILER) return read_trailer(f, line, out);
    if (line.n) return refuse(f, 400, "a chunk is longer than its size says");
    mr_buf_add_text(out, "\r\n");
    f->state = MR_FRAMING_CHUNK_LINE;
    return true;
}

/* Takes bytes up to the end of a line, or all `n` bytes if the line has no end yet. The line is the
 * size of a chunk, the empty line after its data, or a trailer. Returns how many bytes were taken:
 * all `n` if the line was refused. */
static size_t take_line(struct mr_framing *f, const char *p, size_t n, struct mr_buf *out)
{
    bool is_trailer = f->state == MR_FRAMING_TRAILER;
    size_t most = f->state == MR_FRAMING_CHUNK_LINE ? CHUNK_LINE_BYTES_MAX
                  : is_trailer                      ? MR_FRAMING_TRAILER_BYTES_MAX
                                                    : 2;
    const char *lf = memchr(p, '\n', n);
    size_t taken = lf ? (size_t)(lf - p) + 1 : n;
    bool is_long = f->hold.n + taken > most;
    if (is_trailer) f->left += taken;
    if (is_long || (is_trailer && f->left > MR_FRAMING_TRAILER_BYTES_MAX))
        (void)refuse(f, 400,
            is_trailer ? "the trailers are larger than 8 KiB"
            : f->state == MR_FRAMING_CHUNK_LINE
                ? "the extensions of a chunk are longer than 256 bytes"
                : "a chunk is longer than its size says");
    else
        mr_buf_add(&f->hold, p, taken);
    if (!f->status && !lf) return n;
    if (!f->status) (void)read_line(f, out);
    mr_buf_clear(&f->hold);
    if (!f->status) return taken;
    pass_refusal(f, out);
    return n;
}

/* ---- the whole connection -------------------------------------------------------------------- */

uint64_t mr_framing_free(const struct mr_framing *f)
{
    bool is_data = f->state == MR_FRAMING_BODY || f->state == MR_FRAMING_CHUNK_DATA;
    return is_data ? f->left : 0;
}

void mr_framing_skip(struct mr_framing *f, uint64_t n)
{
    mr_assert(n <= mr_framing_free(f));
    f->left -= n;
    if (f->left) return;
    f->state = f->state == MR_FRAMING_BODY ? MR_FRAMING_HEAD : MR_FRAMING_CHUNK_END;
}

void mr_framing_feed(struct mr_framing *f, const char *p, size_t n, struct mr_buf *out)
{
    while (n) {
        size_t taken = n;
        switch (f->state) {
        case MR_FRAMING_HEAD: taken = take_head(f, p, n, out); break;
        case MR_FRAMING_BODY:
        case MR_FRAMING_CHUNK_DATA:
            taken = (size_t)MR_MIN((uint64_t)n, f->left);
            mr_buf_add(out, p, taken);
            mr_framing_skip(f, taken);
            break;
        case MR_FRAMING_CHUNK_LINE:
        case MR_FRAMING_CHUNK_END:
        case MR_FRAMING_TRAILER: taken = take_line(f, p, n, out); break;
        case MR_FRAMING_REFUSED: break;
        }
        p += taken;
        n -= taken;
    }
}
