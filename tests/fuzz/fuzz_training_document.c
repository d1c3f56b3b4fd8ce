/* Documents of training sessions. An accepted document has counts within limits, and its own JSON
 * is accepted too, unless the value of a parameter looks like a reference. */
#include "base/assert.h"
#include "services/trainer/document/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_training_document *d = NULL, *again = NULL;
    struct mr_error e = {0};
    int err = mr_training_document_parse(mr_str_of(data, size), &d, &e);
    if (err) {
        mr_assert(!d && e.text[0]);
        return 0;
    }
    mr_assert(d->roles[MR_TRAINING_WORKER] > 0);
    mr_assert(d->lease && d->forming && d->recovering && d->stopping && d->preparing);
    mr_assert(d->name.n && d->save.n && mr_training_document_text(d).n == size);
    struct mr_str json = mr_training_document_json(d);
    if (!memmem(json.p, json.n, "${", 2)) {
        mr_assert(!mr_training_document_parse(json, &again, &e));
        mr_assert(mr_str_eq(json, mr_training_document_json(again)));
    }
    mr_training_document_free(&again);
    mr_training_document_free(&d);
    return 0;
}
