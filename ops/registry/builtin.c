#include "ops/registry/builtin.h"

#include "ops/array/array.h"
#include "ops/data/data.h"
#include "ops/glm/glm.h"
#include "ops/ml/ml.h"
#include "ops/nn/nn.h"

const mr_op_family *mr_op_families(uint32_t *count)
{
    static const mr_op_family families[] = {
        mr_scalar_ops,
        mr_container_ops,
        mr_elementwise_ops,
        mr_array_shape_ops,
        mr_array_reduce_ops,
        mr_array_moments_ops,
        mr_array_create_ops,
        mr_array_linalg_ops,
        mr_array_encode_ops,
        mr_text_ops,
        mr_collection_ops,
        mr_image_ops,
        mr_table_ops,
        mr_digits_ops,
        mr_nn_ops,
        mr_ml_fold_ops,
        mr_ml_libsvm_ops,
        mr_ml_linear_ops,
        mr_ml_metrics_ops,
        mr_ml_search_ops,
        mr_nn_fit_ops,
        mr_glm_ops,
        mr_glm_part_ops,
        mr_glm_model_ops,
    };
    *count = MR_ARRAY_LEN(families);
    return families;
}
