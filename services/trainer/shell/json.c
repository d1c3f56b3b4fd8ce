/* Checks JSON with yyjson. */
#include "services/trainer/shell/json.h"

#include "base/unconst.h"

#include <stdint.h>
#include <string.h>
#include <yyjson.h>

int mr_trainer_check_json(const char *field, const char *text, struct mr_error *e)
{
    size_t n = strlen(text);
    if (n > MR_TRAINER_JSON_BYTES_MAX)
        return mr_fail(e, MR_ETOOBIG, "%s: %zu bytes; at most %zu are kept", field, n,
            MR_TRAINER_JSON_BYTES_MAX);
    yyjson_read_err why;
    yyjson_doc *doc = yyjson_read_opts(mr_unconst(text), n, 0, NULL, &why);
    if (!doc) return mr_fail(e, MR_EINVAL, "%s: not JSON at byte %zu: %s", field, why.pos, why.msg);
    yyjson_doc_free(doc);
    return MR_OK;
}
