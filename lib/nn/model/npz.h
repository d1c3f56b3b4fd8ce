/* A model as an .npz archive for numpy.load: one array for each parameter, named
 * "<layer>/<parameter>" ("dense_0/kernel"), "model.json" (the JSON text, an array without axes) and
 * "model.version". Archives from numpy.savez and numpy.savez_compressed can be read.
 *
 * The input may be malicious. All sizes are checked against the model before memory is allocated,
 * checksums must match, and arrays with unknown names are skipped. */
#pragma once

#include "base/buf.h"
#include "nn/model/model.h"

/* Appends the archive to `out`. Equal models give equal bytes. MR_ELIMIT: the archive is larger
 * than the ceiling of `out`, or than 4 GiB. */
int mr_nn_npz_write(const struct mr_nn_model *m, uint64_t version, const float *params,
    struct mr_buf *out, struct mr_error *e);
/* Returns an upper bound of the bytes that mr_nn_npz_write appends. */
uint64_t mr_nn_npz_bytes_max(const struct mr_nn_model *m);

/* Reads the model from "model.json", and the version from "model.version" (0 if the archive has
 * none). */
int mr_nn_npz_model(
    struct mr_str npz, struct mr_nn_model **out, uint64_t *version_out, struct mr_error *e);
/* Reads the m->count parameters from arrays of f32 or f64. An error text names the array that is
 * missing or has another shape. */
int mr_nn_npz_read(
    struct mr_str npz, const struct mr_nn_model *m, float *params, struct mr_error *e);
