/* A model as an .npz, the archive that numpy.load opens: one array for each parameter, named
 * "<layer>/<parameter>" ("dense_0/kernel"), "model.json" (its text, an array without axes) and
 * "model.version". What numpy.savez and numpy.savez_compressed write is read back.
 *
 * The reader believes nothing: all sizes are checked against the model's own before memory is
 * taken for them, checksums must agree, and names that are not expected are passed over. */
#pragma once

#include "base/buf.h"
#include "nn/model/model.h"

/* The same model gives the same bytes. MR_ELIMIT past the buffer's ceiling or 4 GiB. */
int mr_nn_npz_write(const struct mr_nn_model *m, uint64_t version, const float *params,
    struct mr_buf *out, struct mr_error *e);
uint64_t mr_nn_npz_bytes_max(const struct mr_nn_model *m); /* never less than what write takes */

/* The model that "model.json" describes, and its version (0 when there is none). */
int mr_nn_npz_model(
    struct mr_str npz, struct mr_nn_model **out, uint64_t *version_out, struct mr_error *e);
/* Its parameters, m->count of them, from f32 or f64. Names the array that is missing or
 * of another shape. */
int mr_nn_npz_read(
    struct mr_str npz, const struct mr_nn_model *m, float *params, struct mr_error *e);
