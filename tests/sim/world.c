/* Virtual time, dice, the trace of the last events, and the memory of messages. */
#include "tests/sim/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define TALES 160
#define TALE_BYTES 200

struct sim *sim_current;
static char tales[TALES][TALE_BYTES];
static uint64_t tales_count;

static bool is_before(const struct sim_ev *a, const struct sim_ev *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_push(struct sim *s, mr_duration after, struct sim_ev ev)
{
    ev.at = s->now + after;
    ev.order = ++s->order;
    if (s->heap_count == s->heap_room) {
        uint32_t room = s->heap_room ? 2 * s->heap_room : 1024;
        s->heap = mr_grow(s->heap, s->heap_room * sizeof ev, room * sizeof ev);
        s->heap_room = room;
    }
    uint32_t at = s->heap_count++;
    for (; at && is_before(&ev, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = ev;
}

bool sim_pop(struct sim *s, struct sim_ev *out)
{
    if (!s->heap_count) return false;
    *out = s->heap[0];
    struct sim_ev last = s->heap[--s->heap_count];
    uint32_t at = 0;
    for (uint32_t down = 1; down < s->heap_count; down = 2 * at + 1) {
        if (down + 1 < s->heap_count && is_before(&s->heap[down + 1], &s->heap[down])) down++;
        if (!is_before(&s->heap[down], &last)) break;
        s->heap[at] = s->heap[down];
        at = down;
    }
    if (s->heap_count) s->heap[at] = last;
    return true;
}

void sim_say(struct sim *s, const char *fmt, ...)
{
    char *to = tales[tales_count++ % TALES];
    int n = snprintf(to, TALE_BYTES, "%12.6f ", (double)s->now / 1e9);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(to + n, TALE_BYTES - (size_t)n, fmt, ap);
    va_end(ap);
    if (s->trace) (void)fprintf(stderr, "%s\n", to);
}

void sim_story(const char *what)
{
    const struct sim *s = sim_current;
    if (!s) return;
    if (!s->trace)
        for (uint64_t i = tales_count > TALES ? tales_count - TALES : 0; i < tales_count; i++)
            (void)fprintf(stderr, "%s\n", tales[i % TALES]);
    (void)fprintf(stderr, "seed %" PRIu64 " at %.6f s, step %" PRIu64 ": %s\n", s->seed,
        (double)s->now / 1e9, s->steps, what);
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
    char text[1000];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    sim_story(text);
    (void)fflush(NULL);
    _exit(s->plant ? 0 : 1);
}

uint64_t sim_below(struct sim *s, uint64_t n)
{
    return s->is_steady ? n / 2 : mr_rng_below(&s->rng, n);
}

bool sim_chance(struct sim *s, uint32_t in)
{
    return !s->is_steady && mr_rng_below(&s->rng, in) == 0;
}

void *sim_keep(struct sim_msg *m, const void *p, size_t n)
{
    if (!n) return NULL;
    struct sim_chunk *c = mr_alloc(sizeof *c + n);
    c->next = m->chunks;
    m->chunks = c;
    if (p) memcpy(c + 1, p, n);
    return c + 1;
}

void sim_msg_free(struct sim_msg **mp)
{
    struct sim_msg *m = *mp;
    *mp = NULL;
    if (!m) return;
    while (m->chunks) {
        struct sim_chunk *next = m->chunks->next;
        mr_release(m->chunks);
        m->chunks = next;
    }
    mr_release(m);
}
