/* The only cast that drops const: for C libraries whose parameters lack const although they only
 * read, and for memory that this program owns. */
#pragma once

#include <stdint.h>

static inline void *mr_unconst(const void *p)
{
    return (void *)(uintptr_t)p;
}
