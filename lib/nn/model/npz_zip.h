/* The part of the zip format that .npz files use: members stored or deflated, up to 4 GiB, no
 * encryption, no zip64. npz.c and operators that read arrays use these functions. The input may be
 * malicious: everything is checked. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <zlib.h>

#define MR_NN_ZIP_MEMBERS_MAX 4096

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes an archive. For each member the caller calls mr_nn_zip_begin, appends the member's bytes
 * to `out`, and calls mr_nn_zip_end. At last mr_nn_zip_finish appends the directory. */
struct mr_nn_zip_writer {
    struct mr_buf *out;
    struct mr_buf directory;
    uint32_t members;
    size_t member; /* offset of the current member in `out` */
    char name[160];
};

void mr_nn_zip_writer_init(struct mr_nn_zip_writer *w, struct mr_buf *out);
void mr_nn_zip_writer_fini(struct mr_nn_zip_writer *w);
void mr_nn_zip_begin(struct mr_nn_zip_writer *w, const char *name);
void mr_nn_zip_end(struct mr_nn_zip_writer *w);
int mr_nn_zip_finish(struct mr_nn_zip_writer *w, struct mr_error *e);

/* ---- reading --------------------------------------------------------------------------------- */

struct mr_nn_zip { /* an open archive; borrows its bytes */
    struct mr_str bytes;
    struct mr_str directory;
    uint32_t members;
};

int mr_nn_zip_open(struct mr_str bytes, struct mr_nn_zip *out, struct mr_error *e);
/* Sets `*out` to the name of member `i`, which is below `members`. MR_EFORMAT: the directory is
 * damaged. */
int mr_nn_zip_name(const struct mr_nn_zip *z, uint32_t i, struct mr_str *out, struct mr_error *e);
/* Sets `*out` to the bytes of a member. A stored member is not copied; a deflated member is
 * decompressed to `*owned`, which the caller releases (mr_release). MR_ENOENT: there is no such
 * member. MR_ELIMIT: the member's header claims more than `bytes_max`, so nothing is decompressed.
 * MR_EFORMAT: the archive is damaged, or the member is packed in another way. */
int mr_nn_zip_take(const struct mr_nn_zip *z, const char *name, uint64_t bytes_max, void **owned,
    struct mr_str *out, struct mr_error *e);
