#include "cli/client/jobfile.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "host/os/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

static void declared(yyjson_mut_val *params, struct mr_buf *out)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_mut_val *key = NULL;
    yyjson_mut_val *value = NULL;
    yyjson_mut_obj_foreach(params, at, max, key, value)
        mr_buf_printf(out, "%s%s", at ? ", " : "", yyjson_mut_get_str(key));
}

static int refuse(yyjson_mut_val *params, const char *path, struct mr_str name, struct mr_error *e)
{
    struct mr_buf names;
    mr_buf_init(&names, MR_ERROR_TEXT_MAX);
    declared(params, &names);
    int err = mr_fail(e, MR_EINVAL, "--set %.*s: %s declares %s%.*s", MR_STR_ARG(name), path,
        names.n ? "" : "no parameters", MR_STR_ARG(mr_buf_str(&names)));
    mr_buf_fini(&names);
    return err;
}

static int set_one(yyjson_mut_doc *doc, yyjson_mut_val *params, const char *path,
    struct mr_str name, const char *value, struct mr_error *e)
{
    if (!yyjson_mut_obj_getn(params, name.p, name.n)) return refuse(params, path, name, e);
    yyjson_doc *typed = yyjson_read(value, strlen(value), YYJSON_READ_BIGNUM_AS_RAW);
    yyjson_mut_val *v = typed ? yyjson_val_mut_copy(doc, yyjson_doc_get_root(typed))
                              : yyjson_mut_strcpy(doc, value);
    yyjson_doc_free(typed);
    (void)yyjson_mut_obj_put(params, yyjson_mut_strncpy(doc, name.p, name.n), v);
    return MR_OK;
}

static int set_all(yyjson_mut_doc *doc, const char *path, const struct mr_texts *set,
    const char *data, struct mr_error *e)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *params = yyjson_mut_obj_get(root, "params");
    int err = MR_OK;
    for (size_t i = 0; i < set->count && !err; i++) {
        const char *equals = strchr(set->items[i], '=');
        if (!equals || equals == set->items[i])
            return mr_fail(e, MR_EINVAL, "--set \"%s\": expected NAME=VALUE", set->items[i]);
        err = set_one(doc, params, path, mr_str_of(set->items[i], (size_t)(equals - set->items[i])),
            equals + 1, e);
    }
    if (err || !data) return err;
    if (!yyjson_mut_obj_get(params, "data")) return refuse(params, path, MR_STR("data"), e);
    (void)yyjson_mut_obj_put(params, yyjson_mut_str(doc, "data"), yyjson_mut_strcpy(doc, data));
    return MR_OK;
}

static int read_text(const char *path, struct mr_buf *out, struct mr_error *e)
{
    char piece[65536];
    if (strcmp(path, "-") != 0) return mr_file_read(path, out, e);
    for (;;) {
        ssize_t n = read(STDIN_FILENO, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return mr_fail(e, MR_EIO, "stdin: %s", strerror(errno));
        if (!n) return MR_OK;
        mr_buf_add(out, piece, (size_t)n);
        if (mr_buf_status(out))
            return mr_fail(e, MR_ETOOBIG, "stdin: more than %zu bytes", out->bytes_max);
    }
}

int mr_jobfile_read(const char *path, const struct mr_texts *set, const char *data,
    struct mr_buf *out, struct mr_error *e)
{
    struct mr_buf text;
    mr_buf_init(&text, MR_JOB_BODY_BYTES_MAX);
    int err = read_text(path, &text, e);
    if (err || (!set->count && !data)) {
        if (!err) mr_buf_add_str(out, mr_buf_str(&text));
        mr_buf_fini(&text);
        return err ? err : mr_buf_status(out);
    }
    yyjson_read_err why = {0};
    yyjson_doc *doc =
        yyjson_read_opts((char *)text.p, text.n, YYJSON_READ_NUMBER_AS_RAW, NULL, &why);
    mr_buf_fini(&text);
    if (!doc) return mr_fail(e, MR_EFORMAT, "%s: %s at byte %zu", path, why.msg, why.pos);
    yyjson_mut_doc *edit = yyjson_doc_mut_copy(doc, NULL);
    yyjson_doc_free(doc);
    err = set_all(edit, path, set, data, e);
    if (!err) {
        size_t n = 0;
        char *written = yyjson_mut_write(edit, 0, &n);
        mr_buf_add(out, written, n);
        free(written);
    }
    yyjson_mut_doc_free(edit);
    return err ? err : mr_buf_status(out);
}
