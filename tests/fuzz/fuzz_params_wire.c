/* Reads messages that another node may send to the services Parameters and Collective. Adds
 * accepted messages of Collective to the inbox of a rank; the memory of the inbox must stay
 * bounded. */
#include "base/alloc.h"
#include "base/assert.h"
#include "train/allreduce/ring_inbox.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COUNT 4096u

static void inside(struct mr_str part, struct mr_str whole)
{
    if (!part.n) return;
    mr_assert(part.p >= whole.p);
    mr_assert(part.p + part.n <= whole.p + whole.n);
}

static void read_one(struct mr_ring_inbox *in, struct mr_str bytes)
{
    struct mr_gradient_chunk g;
    struct mr_parameter_chunk p;
    struct mr_ring_message m;
    if (!mr_gradient_chunk_read(bytes, &g, NULL)) inside(g.data, bytes);
    if (!mr_parameter_chunk_read(bytes, &p, NULL)) inside(p.data, bytes);
    if (mr_ring_message_read(bytes, &m, NULL)) return;
    inside(m.data, bytes);
    m.count %= 2 * COUNT;
    m.round %= 4;
    m.step %= 4;
    (void)mr_ring_inbox_add(in, &m, NULL);
    mr_assert(in->bytes <= 3 * COUNT * sizeof(float));
    struct mr_ring_block *b = mr_ring_inbox_take(in, m.step, m.round);
    if (b) mr_assert(b->got == b->count * sizeof(float));
    if (b) mr_ring_inbox_give(in, &b);
}

/* The input is messages, each after its length in two bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_ring_inbox *in = mr_alloc(sizeof *in);
    (void)snprintf(in->session, sizeof in->session, "t1-1");
    in->ranks = 2;
    in->count = COUNT;
    mr_ring_inbox_open(in);
    for (size_t at = 0; at + 2 <= size;) {
        size_t n = (size_t)data[at] | (size_t)data[at + 1] << 8;
        at += 2;
        n = MR_MIN(n, size - at);
        read_one(in, mr_str_of(data + at, n));
        at += n;
    }
    mr_ring_inbox_close(&in);
    return 0;
}
