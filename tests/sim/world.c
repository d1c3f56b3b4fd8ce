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

void sim_push(struct sim *s, mr_duration after, struct mr_virtual_event ev)
{
    mr_virtual_push(&s->queue, s->now + after, ev);
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
