/* Where arrays of a message come from: an arena that its owner clears after the message. */
#pragma once

#include <stddef.h>

struct mr_ws_memory {
    void *(*take)(void *ctx, size_t bytes); /* aligned for any struct of the model; NULL: no more */
    void *ctx;
    size_t bytes_max; /* for one message */
};
