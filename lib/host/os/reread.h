/* When to read files again that may change while a process runs: certificates, tokens, secrets.
 *
 * The owner asks with each use. Every two seconds at most that is a stat(2) of each file; when one
 * has changed, or the last reading failed, the asking thread reads them and says how it went. Any
 * thread may ask; one reads at a time, and the others meanwhile use what there is.
 *
 *     mr_reread_init(&r, path, NULL);        before the first reading
 *     if (mr_reread_begin(&r, false)) {
 *         int err = read_them(&e);
 *         if (mr_reread_end(&r, err, &e)) log e.text
 *     } */
#pragma once

#include "base/err.h"
#include "base/time.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#define MR_REREAD_FILES 2

struct mr_file_stamp { /* of a file as it was when it was read */
    struct timespec changed;
    ino_t inode;
    off_t bytes;
};

struct mr_reread {
    const char *paths[MR_REREAD_FILES]; /* lent; NULL: none */
    _Atomic mr_time looked_at;
    _Atomic bool is_looking; /* what follows is of the thread that has set it */
    struct mr_file_stamp stamps[MR_REREAD_FILES];
    struct mr_error why; /* of the last reading; code MR_OK: it went well */
};

void mr_reread_init(struct mr_reread *r, const char *path, const char *other);

/* Shall the caller read the files now? It then calls mr_reread_end. With `at_once` a change counts
 * whenever the last look was: for a caller that was shown what it does not know. */
bool mr_reread_begin(struct mr_reread *r, bool at_once);
/* A failed reading is tried again at the next look, though the files are the same: the cause may
 * have been a want of descriptors. True: the failure is another than the last one, say it. */
bool mr_reread_end(struct mr_reread *r, int err, const struct mr_error *e);
