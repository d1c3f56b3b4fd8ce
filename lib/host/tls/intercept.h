/* Lets a program look at the bytes that a library reads from a descriptor. libmicrohttpd needs this
 * module, because it has no hook for these bytes. A program that links this module defines its own
 * recv(2) and gnutls_record_recv(3), and the dynamic linker gives these functions to the library.
 * Descriptors without an interceptor are read as usual. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where the bytes come from: recv without flags, or gnutls_record_recv. `read` returns what that
 * function returns. */
struct mr_source {
    ssize_t (*read)(const struct mr_source *s, void *to, size_t n);
    int fd;
    void *session; /* the TLS session; NULL: the connection has no TLS */
    /* The result of `read`, with errno EAGAIN, when no bytes are there yet. */
    ssize_t nothing;
    /* True: a short read means that no more bytes are there yet. */
    bool is_drained_by_less;
};

/* An interceptor of one descriptor; used on the thread that reads the descriptor. */
struct mr_interceptor {
    /* Called instead of s->read; returns what s->read would return. */
    ssize_t (*take)(struct mr_interceptor *i, const struct mr_source *s, char *to, size_t n);
    bool is_tls; /* the connection uses TLS: encrypted bytes are not passed to `take` */
};

/* Sets the interceptor of a descriptor; NULL removes it. False: the descriptor cannot have one. */
bool mr_intercept(int fd, struct mr_interceptor *i);
