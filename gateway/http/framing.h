/* Where one HTTP/1.1 request ends and the next begins (RFC 9112), strictly: what two readers could
 * understand in two ways is refused before libmicrohttpd reads it. Bytes pass in order; a head
 * passes only when it is whole and good, chunks without their extensions and trailers. Pure.
 *
 *   HEAD ─┬─ no body ───────────────────────────────▶ HEAD
 *         ├─ Content-Length ─▶ BODY ────────────────▶ HEAD
 *         └─ chunked ─▶ CHUNK_LINE ⇄ CHUNK_DATA, CHUNK_END
 *                          └─ last ─▶ TRAILER ──────▶ HEAD
 *   any ──▶ REFUSED: what passes instead is a request that is good, so that it can be answered */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

#define MR_FRAMING_HEAD_BYTES_MAX ((size_t)64 << 10)
#define MR_FRAMING_TARGET_BYTES_MAX ((size_t)32 << 10)
#define MR_FRAMING_FIELDS_MAX 256
#define MR_FRAMING_EXTENSION_BYTES_MAX 256
#define MR_FRAMING_TRAILER_BYTES_MAX ((size_t)8 << 10)
/* More than what comes in passes only then: a refusal in the place of a request, or of its rest. */
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
    uint64_t left;      /* BODY, CHUNK_DATA: bytes until its end */
    struct mr_buf hold; /* of a head or line that is not whole */
    size_t scanned;     /* bytes of it that have been looked at */
    uint64_t heads;     /* that have passed, counting what stands for a refused one */
    int status;         /* REFUSED: of HTTP, and the sentence */
    const char *why;
};

void mr_framing_init(struct mr_framing *f);
void mr_framing_fini(struct mr_framing *f);

/* Takes all of `n` bytes and appends what passes to `out`. */
void mr_framing_feed(struct mr_framing *f, const char *p, size_t n, struct mr_buf *out);

/* How many of the next bytes pass as they are, whatever they are; 0: they have to be fed. */
uint64_t mr_framing_free(const struct mr_framing *f);
void mr_framing_skip(struct mr_framing *f, uint64_t n); /* so many of them have passed */

/* Is the n-th head, counted from 1, the one that is refused? */
bool mr_framing_is_refused(const struct mr_framing *f, uint64_t head);
