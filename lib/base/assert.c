#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void mr_panic(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)fprintf(stderr, "panic at %s:%d: ", file, line);
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
    va_end(ap);
    abort();
}
