/* As much of the zip format as an .npz needs: members stored or deflated, up to 4 GiB, no
 * encryption, no zip64. For npz.c, and operators that read arrays. Believes nothing of what it
 * reads. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <zlib.h>

#define MR_NN_ZIP_MEMBERS_MAX 4096

/* ---- writing: begin, then the member's bytes into the same buffer, then end ------------------ */

struct mr_nn_zip_writer {
    struct mr_buf *out;
    struct mr_buf directory;
    uint32_t members;
    size_t member; /* where the one being written starts */
    char name[160];
};

void mr_nn_zip_writer_init(struct mr_nn_zip_writer *w, struct mr_buf *out);
void mr_nn_zip_writer_fini(struct mr_nn_zip_writer *w);
void mr_nn_zip_begin(struct mr_nn_zip_writer *w, const char *name);
void mr_nn_zip_end(struct mr_nn_zip_writer *w);
int mr_nn_zip_finish(struct mr_nn_zip_writer *w, struct mr_error *e);

/* ---- reading --------------------------------------------------------------------------------- */

struct mr_nn_zip { /* borrowed bytes */
    struct mr_str bytes;
    struct mr_str directory;
    uint32_t members;
};

int mr_nn_zip_open(struct mr_str bytes, struct mr_nn_zip *out, struct mr_error *e);
/* The name of member `i`, below `members`; MR_EFORMAT. */
int mr_nn_zip_name(const struct mr_nn_zip *z, uint32_t i, struct mr_str *out, struct mr_error *e);
/* A member's bytes: where they lie when they are stored, else in `*owned`, to mr_release. MR_ENOENT
 * without such a name; MR_ELIMIT, and nothing is unpacked, when it says it has over `bytes_max`. */
int mr_nn_zip_take(const struct mr_nn_zip *z, const char *name, uint64_t bytes_max, void **owned,
    struct mr_str *out, struct mr_error *e);
