/* Finds where one HTTP/1.1 request ends and the next begins (RFC 9112), with strict checks. Framing
 * that two parsers could read in two ways (request smuggling) is refused before libmicrohttpd sees
 * it.
 *
 * The filter takes the bytes of a connection in order and passes them on. A head passes only when
 * it is complete and valid. Chunks pass without their extensions and trailers. No function here
 * does I/O.
 *
 *   HEAD ─┬─ no body ───────────────────────────────▶ HEAD
 *         ├─ Content-Length ─▶ BODY ────────────────▶ HEAD
 *         └─ chunked ─▶ CHUNK_LINE ⇄ CHUNK_DATA, CHUNK_END
 *                          └─ last ─▶ TRAILER ──────▶ HEAD
 *   HEAD ──▶ REFUSED: a valid substitute request passes, and the server answers it with the error
 *   CHUNK_LINE, CHUNK_END, TRAILER ──▶ REFUSED: bytes that end the body pass */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

#define MR_FRAMING_HEAD_BYTES_MAX ((size_t)64 << 10)
#define MR_FRAMING_TARGET_BYTES_MAX ((size_t)32 << 10)
#define MR_FRAMING_FIELDS_MAX 256
#define MR_FRAMING_EXTENSION_BYTES_MAX 256
#define MR_FRAMING_TRAILER_BYTES_MAX ((size_t)8 << 10)
/* The output may have this many bytes more than the input, because the filter writes bytes of its
 * own after a refusal: a whole substitute request if it refused a head, or the bytes that end a
 * chunked body if it refused a part of the body. */
#define MR_FRAMING_REFUSAL_BYTES_MAX 128

enum mr_framing_state {
    MR_FRAMING_HEAD,
    MR_FRAMING_BODY,
    MR_FRAMING_CHUNK_LINE,
    MR_FRAMING_CHUNK_DATA,
    MR_FRAMING_CHUNK_END,
    MR_FRAMING_TRAILER,
    MR_FRAMING_REFUSED,
};

struct mr_framing {
    enum mr_framing_state state;
    /* In BODY and CHUNK_DATA: bytes until the end of the data. In TRAILER: bytes of the trailers so
     * far. */
    uint64_t left;
    struct mr_buf hold; /* bytes of an incomplete head or line */
    size_t scanned;     /* bytes of `hold` that have been searched for the end of the head */
    /* Number of heads that were handed to libmicrohttpd. A refused head counts, too, because a
     * substitute is handed on in its place. */
    uint64_t heads;
    /* In REFUSED: the HTTP status and the sentence of the error. */
    int status;
    const char *why;
};

void mr_framing_init(struct mr_framing *f);
void mr_framing_fini(struct mr_framing *f);

/* Takes all `n` bytes, and appends the bytes that pass to `out`. */
void mr_framing_feed(struct mr_framing *f, const char *p, size_t n, struct mr_buf *out);

/* mr_framing_free returns how many of the next bytes pass unread because they are body data (0: the
 * next byte has to be fed). mr_framing_skip notes that `n` of these bytes have passed; the caller
 * does not feed them. */
uint64_t mr_framing_free(const struct mr_framing *f);
void mr_framing_skip(struct mr_framing *f, uint64_t n);

/* True: the request with this head was refused, because of its head or of its body. `head` counts
 * from 1. */
bool mr_framing_is_refused(const struct mr_framing *f, uint64_t head);
