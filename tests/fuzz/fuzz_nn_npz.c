/* Models as .npz files: an accepted file is written and must read back the same. */
#include "base/alloc.h"
#include "base/assert.h"
#include "nn/model/npz.h"

#define PARAMETERS_MAX 100000 /* larger models would only slow the fuzzer down */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mr_str npz = mr_str_of(data, n);
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    uint64_t version = 0;
    struct mr_error e = {0};
    int err = mr_nn_npz_model(npz, &m, &version, &e);
    mr_assert(!err == !e.code);
    if (err || m->count > PARAMETERS_MAX) return 0;

    MR_AUTO(mr_free_ptr) float *params = mr_alloc_array(m->count, sizeof *params);
    if (mr_nn_npz_read(npz, m, params, &e)) return 0;
    MR_AUTO(mr_buf_fini) struct mr_buf again;
    mr_buf_init(&again, mr_nn_npz_bytes_max(m));
    err = mr_nn_npz_write(m, version, params, &again, &e);
    mr_assert(!err);
    MR_AUTO(mr_free_ptr) float *back = mr_alloc_array(m->count, sizeof *back);
    err = mr_nn_npz_read(mr_buf_str(&again), m, back, &e);
    mr_assert(!err);
    mr_assert(!m->count || memcmp(params, back, m->count * sizeof *params) == 0);
    return 0;
}
