/* Decides when to read files again that may change while a process runs: certificates, tokens,
 * secrets.
 *
 * A thread that uses the files calls mr_reread_begin at each use. At most every two seconds, this
 * call costs a stat(2) of each file. If a file has changed, or the last reading failed, the calling
 * thread reads the files and reports the result with mr_reread_end. Any thread may call. One thread
 * reads at a time; the others go on with the version in memory.
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

struct mr_file_stamp { /* state of a file when it was last read */
    struct timespec changed;
    ino_t inode;
    off_t bytes;
};

struct mr_reread {
    const char *paths[MR_REREAD_FILES]; /* paths of the files, borrowed; NULL: no file */
    _Atomic mr_time looked_at;
    /* Set by the thread that looks at the files; this thread owns the members below. */
    _Atomic bool is_looking;
    struct mr_file_stamp stamps[MR_REREAD_FILES];
    struct mr_error why; /* error of the last reading; code MR_OK: it succeeded */
};

void mr_reread_init(struct mr_reread *r, const char *path, const char *other);

/* True: the caller should now read the files and then call mr_reread_end. False: the caller goes on
 * with the version in memory, because the files have not changed, were checked recently, or are
 * being read by another thread. With `at_once` the files are checked even if the last check was
 * less than two seconds ago. A caller uses `at_once` when it has received a token or secret that it
 * does not know. */
bool mr_reread_begin(struct mr_reread *r, bool at_once);
/* Ends a reading, whose result is `err` with the error text in `e`. A failed reading is repeated
 * after two seconds even if the files have not changed, because the cause may have been temporary,
 * such as a lack of descriptors. True: the reading failed for another reason than the last one, and
 * should be logged. False: nothing is to be logged. */
bool mr_reread_end(struct mr_reread *r, int err, const struct mr_error *e);
