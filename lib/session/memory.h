/* The memory for the arrays of a decoded message: an arena that its owner clears after the
 * message. */
#pragma once

#include <stddef.h>

struct mr_ws_memory {
    void *(*take)(void *ctx, size_t bytes); /* The memory is aligned for any struct of the messages.
                                             * NULL: the arena is full. */
    void *ctx;
    size_t bytes_max; /* bytes that one message may take */
};
