/* IDX files: an accepted file is a value, and its export reads back as the same value. */
#include "value_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    walk_round_trip(MR_FORMAT_IDX, mr_str_of(data, n));
    return 0;
}
