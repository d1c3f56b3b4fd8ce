/* What others' code reads from a descriptor can be looked at first: for libmicrohttpd, which has no
 * hook for it. A program that links this has its own recv(2) and gnutls_record_recv(3), which the
 * dynamic linker gives to the library. Descriptors that were not added are read as ever. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where the bytes come from: recv without flags, or its like of TLS, with their results. */
struct mr_source {
    ssize_t (*read)(const struct mr_source *s, void *to, size_t n);
    int fd;
    void *session;           /* of TLS; NULL: none */
    ssize_t nothing;         /* returned, with errno EAGAIN, where nothing is there for now */
    bool is_drained_by_less; /* less than was asked for says that there is no more for now */
};

struct mr_interceptor { /* of one descriptor; the thread that reads it */
    /* In the place of s->read, and with its results. */
    ssize_t (*take)(struct mr_interceptor *i, const struct mr_source *s, char *to, size_t n);
    bool is_tls; /* what is encrypted is not looked at */
};

bool mr_intercept(int fd, struct mr_interceptor *i); /* NULL ends it; false: it cannot be */
