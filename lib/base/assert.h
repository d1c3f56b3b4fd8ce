/* Assertions that stay on in release builds, and MR_PANIC, which logs a sentence and aborts.
 * Assertions are for mistakes of this program. Wrong input from a peer is reported as an error,
 * never by an assertion. */
#pragma once

#include "base/defs.h"

MR_NORETURN void mr_panic(const char *file, int line, const char *fmt, ...) MR_PRINTF(3, 4);

#define MR_PANIC(...) mr_panic(__FILE__, __LINE__, __VA_ARGS__)
#define mr_assert(cond)                                                                            \
    (MR_LIKELY(cond) ? (void)0 : mr_panic(__FILE__, __LINE__, "assertion failed: %s", #cond))
