/* The one place where const is dropped: for functions of others that know no const and do not
 * write, and for memory that is ours. */
#pragma once

#include <stdint.h>

static inline void *mr_unconst(const void *p)
{
    return (void *)(uintptr_t)p;
}
