/* The extensions of C17 that this project uses: cleanup, typeof and statement expressions, as
 * macros. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MR_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define MR_MAX(a, b) ((a) > (b) ? (a) : (b))

#define MR_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define MR_NORETURN __attribute__((noreturn))
#define MR_UNUSED __attribute__((unused))
#define MR_LIKELY(x) __builtin_expect(!!(x), 1)
#define MR_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Scope cleanup: at the end of its scope, `MR_AUTO(mr_map_close) struct mr_map *m = …;` calls
 * mr_map_close(&m). */
#define MR_AUTO(fn) __attribute__((cleanup(fn)))

/* Returns the pointer and sets the variable to NULL, so that its MR_AUTO cleanup does nothing:
 * ownership moves to the caller or to the receiver. */
#define MR_STEAL(p)                                                                                \
    __extension__({                                                                                \
        __typeof__(p) mr_stolen_ = (p);                                                            \
        (p) = NULL;                                                                                \
        mr_stolen_;                                                                                \
    })

#define MR_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline uint64_t mr_align_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) & ~(to - 1); /* `to` is a power of two */
}
