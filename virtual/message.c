/* The memory of a message is a list of chunks. They are freed together, with the message. */
#include "virtual/message.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/limits.h"
#include "session/decode.h"
#include "session/encode.h"

#include <string.h>

struct mr_virtual_chunk {
    struct mr_virtual_chunk *next;
};

struct mr_virtual_message *mr_virtual_message_new(void)
{
    return mr_alloc(sizeof(struct mr_virtual_message));
}

void mr_virtual_message_free(struct mr_virtual_message **mp)
{
    struct mr_virtual_message *m = *mp;
    *mp = NULL;
    if (!m) return;
    while (m->chunks) {
        struct mr_virtual_chunk *next = m->chunks->next;
        mr_release(m->chunks);
        m->chunks = next;
    }
    mr_release(m);
}

void *mr_virtual_keep(struct mr_virtual_message *m, const void *p, size_t n)
{
    if (!n) return NULL;
    struct mr_virtual_chunk *c = mr_alloc(sizeof *c + n);
    c->next = m->chunks;
    m->chunks = c;
    if (p) memcpy(c + 1, p, n);
    return c + 1;
}

static void *take(void *msg, size_t bytes)
{
    return mr_virtual_keep(msg, NULL, bytes);
}

struct mr_ws_memory mr_virtual_memory(struct mr_virtual_message *m)
{
    return (struct mr_ws_memory){take, m, MR_MESSAGE_BYTES_MAX};
}

/* Moves the encoded bytes into the memory of the message, because texts of the decoded message
 * point into them. */
static int keep_bytes(
    struct mr_virtual_message *m, struct mr_buf *wire, struct mr_str *out, struct mr_error *e)
{
    int err = mr_buf_status(wire);
    *out = mr_str_of(mr_virtual_keep(m, wire->p, wire->n), wire->n);
    mr_buf_fini(wire);
    return err ? mr_fail(e, err, "the message is too long") : MR_OK;
}

int mr_virtual_down(
    struct mr_virtual_message *m, const struct mr_ws_down *from, size_t *bytes, struct mr_error *e)
{
    const struct mr_ws_memory memory = mr_virtual_memory(m);
    struct mr_str text;
    struct mr_buf wire;
    mr_buf_init(&wire, MR_MESSAGE_BYTES_MAX);
    mr_ws_encode_down(from, &wire);
    int err = keep_bytes(m, &wire, &text, e);
    if (err) return err;
    *bytes = text.n;
    return mr_ws_decode_down(text, &memory, &m->down, e);
}

int mr_virtual_up(
    struct mr_virtual_message *m, const struct mr_ws_up *from, size_t *bytes, struct mr_error *e)
{
    const struct mr_ws_memory memory = mr_virtual_memory(m);
    struct mr_str text;
    struct mr_buf wire;
    mr_buf_init(&wire, MR_MESSAGE_BYTES_MAX);
    mr_ws_encode_up(from, &wire);
    int err = keep_bytes(m, &wire, &text, e);
    if (err) return err;
    *bytes = text.n;
    return mr_ws_decode_up(text, &memory, &m->up, e);
}
