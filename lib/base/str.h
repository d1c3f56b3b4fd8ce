/* A borrowed byte string: pointer and length. It need not end with a NUL. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>
#include <string.h>

struct mr_str {
    const char *p;
    size_t n;
};

#define MR_STR_INIT(literal)                                                                       \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    } /* an mr_str of a string literal, for static initializers */
#define MR_STR(literal) ((struct mr_str)MR_STR_INIT(literal))
/* The two arguments of a printf format "%.*s": `"%.*s", MR_STR_ARG(s)`. */
#define MR_STR_ARG(s) (int)((s).n), ((s).p ? (s).p : "")

static inline struct mr_str mr_str(const char *text)
{
    return (struct mr_str){text, text ? strlen(text) : 0};
}

static inline struct mr_str mr_str_of(const void *p, size_t n)
{
    return (struct mr_str){p, n};
}

static inline bool mr_str_eq(struct mr_str a, struct mr_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Compares the bytes up to the shorter length, then the lengths. Returns a number below, equal to
 * or above 0, as memcmp does. */
static inline int mr_str_cmp(struct mr_str a, struct mr_str b)
{
    size_t n = MR_MIN(a.n, b.n);
    int c = n ? memcmp(a.p, b.p, n) : 0;
    if (c) return c;
    return a.n < b.n ? -1 : a.n > b.n;
}
