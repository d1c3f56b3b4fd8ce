/* Replaces `${name}` by the value of a parameter or of a loop's variable. A job without "params"
 * has no replacements outside "for". `$${` stands for the text `${`. */
#include "base/pack.h"
#include "base/unconst.h"
#include "graph/json/internal.h"

#include <stdio.h>
#include <stdlib.h>

static struct mr_json_binding *find(struct mr_json *j, struct mr_str name)
{
    for (uint32_t i = j->bindings_count; i-- > 0;)
        if (mr_str_eq(j->bindings[i].name, name)) return &j->bindings[i];
    return NULL;
}

static int unknown_name(struct mr_json *j, struct mr_str name)
{
    struct mr_nearest near;
    mr_nearest_init(&near, name);
    for (uint32_t i = 0; i < j->bindings_count; i++)
        mr_nearest_offer(&near, j->bindings[i].name);
    char hint[MR_NEAREST_HINT_MAX];
    return mr_fail(j->e, MR_EINVAL,
        "${%.*s} is neither in \"params\" nor a variable of \"for\"%s; a plain ${ is written $${",
        MR_SHOWN(name), mr_nearest_hint(&near, hint));
}

/* Appends a decimal of at most 17 digits that reads back as the same number. */
static void add_real(struct mr_buf *out, double d)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, d);
        if (strtod(text, NULL) == d) break;
    }
    mr_buf_add_text(out, text);
}

/* Writes the digits without snprintf, because loops write millions of numbers. */
static void add_uint(struct mr_buf *out, uint64_t v)
{
    char digits[20];
    size_t n = sizeof digits;
    do {
        digits[--n] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    mr_buf_add(out, digits + n, sizeof digits - n);
}

static int add_value(struct mr_json *j, struct mr_str name, yyjson_val *v)
{
    switch (yyjson_get_tag(v)) {
    case YYJSON_TYPE_STR | YYJSON_SUBTYPE_NONE:
    case YYJSON_TYPE_STR | YYJSON_SUBTYPE_NOESC:
        mr_buf_add_str(&j->text, mr_json_text(v));
        return MR_OK;
    case YYJSON_TYPE_NUM | YYJSON_SUBTYPE_UINT:
        add_uint(&j->text, yyjson_get_uint(v));
        return MR_OK;
    case YYJSON_TYPE_NUM | YYJSON_SUBTYPE_SINT:
        mr_buf_printf(&j->text, "%lld", (long long)yyjson_get_sint(v));
        return MR_OK;
    case YYJSON_TYPE_NUM | YYJSON_SUBTYPE_REAL:
        add_real(&j->text, yyjson_get_real(v));
        return MR_OK;
    case YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_TRUE: mr_buf_add_text(&j->text, "true"); return MR_OK;
    case YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_FALSE: mr_buf_add_text(&j->text, "false"); return MR_OK;
    default:
        return mr_fail(j->e, MR_EINVAL, "${%.*s} is %s and cannot stand within a text",
            MR_SHOWN(name), mr_json_kind(v));
    }
}

/* Sets `*name` to the name between the "${" at `at` and the next "}", and `*end` to the position
 * after the "}". */
static int name_at(struct mr_json *j, struct mr_str s, size_t at, struct mr_str *name, size_t *end)
{
    const char *close = memchr(s.p + at, '}', s.n - at);
    if (!close) return mr_fail(j->e, MR_EINVAL, "\"%.*s\": a ${ is not closed by }", MR_SHOWN(s));
    *name = mr_str_of(s.p + at + 2, (size_t)(close - s.p) - at - 2);
    *end = (size_t)(close - s.p) + 1;
    return MR_OK;
}

static int fill(struct mr_json *j, struct mr_str s)
{
    mr_buf_clear(&j->text);
    for (size_t i = 0; i < s.n;) {
        const char *dollar = memchr(s.p + i, '$', s.n - i);
        size_t plain = (dollar ? (size_t)(dollar - s.p) : s.n) - i;
        mr_buf_add(&j->text, s.p + i, plain);
        i += plain;
        if (i == s.n) break;
        bool escaped = s.n - i >= 3 && memcmp(s.p + i, "$${", 3) == 0;
        if (escaped || s.n - i < 2 || s.p[i + 1] != '{') {
            mr_buf_add_text(&j->text, escaped ? "${" : "$");
            i += escaped ? 3 : 1;
            continue;
        }
        struct mr_str name;
        int err = name_at(j, s, i, &name, &i);
        if (err) return err;
        const struct mr_json_binding *found = find(j, name);
        if (!found) return unknown_name(j, name);
        err = add_value(j, name, found->value);
        if (err) return err;
    }
    if (mr_buf_status(&j->text))
        return mr_fail(j->e, MR_ELIMIT, "\"%.*s\" becomes longer than %zu bytes", MR_SHOWN(s),
            j->text.bytes_max);
    return MR_OK;
}

static yyjson_val *fill_text(struct mr_json *j, struct mr_str s, int *err)
{
    *err = fill(j, s);
    if (*err) return NULL;
    j->text_val.tag = (uint64_t)j->text.n << YYJSON_TAG_BIT | YYJSON_TYPE_STR | YYJSON_SUBTYPE_NONE;
    j->text_val.uni.str = j->text.p ? (const char *)j->text.p : "";
    return &j->text_val;
}

/* True: the value is a text that may contain a `${` to replace. */
static bool is_open(const struct mr_json *j, const yyjson_val *v)
{
    if (!j->has_params && j->bindings_count == j->params_count) return false;
    if (!unsafe_yyjson_is_str(mr_unconst(v))) return false;
    struct mr_str s = mr_json_text(v);
    return s.n && memchr(s.p, '$', s.n);
}

yyjson_val *mr_json_resolve_text(struct mr_json *j, yyjson_val *v, int *err)
{
    *err = MR_OK;
    return is_open(j, v) ? fill_text(j, mr_json_text(v), err) : v;
}

static yyjson_val *substitute(struct mr_json *j, struct mr_str s, bool *from_param, int *err)
{
    if (s.n >= 3 && s.p[0] == '$' && s.p[1] == '{') {
        struct mr_str name;
        size_t end = 0;
        *err = name_at(j, s, 0, &name, &end);
        if (*err) return NULL;
        if (end == s.n) { /* the text is one `${name}`: the value keeps its type */
            struct mr_json_binding *found = find(j, name);
            if (!found) *err = unknown_name(j, name);
            if (from_param) *from_param = true;
            return found ? found->value : NULL;
        }
    }
    return fill_text(j, s, err);
}

yyjson_val *mr_json_resolve(struct mr_json *j, yyjson_val *v, bool *from_param, int *err)
{
    *err = MR_OK;
    if (from_param) *from_param = false;
    return is_open(j, v) ? substitute(j, mr_json_text(v), from_param, err) : v;
}

static int bind(struct mr_json *j, struct mr_str name, struct mr_json_binding **out)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    bool ok = name.n && name.n <= 64;
    for (size_t i = 0; i < name.n && ok; i++)
        ok = name.p[i] && strchr(allowed, name.p[i]);
    if (!ok)
        return mr_fail(j->e, MR_EINVAL,
            "\"%.*s\" cannot name a parameter or variable: 1 to 64 letters, digits, '_', '.', '-'",
            MR_SHOWN(name));
    if (find(j, name))
        return mr_fail(
            j->e, MR_EINVAL, "\"%.*s\" is already a parameter or variable here", MR_SHOWN(name));
    if (j->bindings_count == MR_JSON_BINDINGS_MAX)
        return mr_fail(j->e, MR_ELIMIT, "too many parameters and variables");
    *out = &j->bindings[j->bindings_count++];
    (*out)->name = name;
    return MR_OK;
}

static bool is_kind_of(yyjson_val *value, yyjson_val *model)
{
    return yyjson_is_null(model) || yyjson_get_type(value) == yyjson_get_type(model);
}

/* Replaces the defaults of parameters by given values of the same types. */
static int take_given(struct mr_json *j)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(j->given);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        struct mr_str name = mr_json_text(k);
        yyjson_val *v = yyjson_obj_iter_get_val(k);
        struct mr_json_binding *b = find(j, name);
        if (!b) {
            struct mr_nearest near;
            mr_nearest_init(&near, name);
            for (uint32_t i = 0; i < j->params_count; i++)
                mr_nearest_offer(&near, j->bindings[i].name);
            char hint[MR_NEAREST_HINT_MAX];
            return mr_fail(j->e, MR_EINVAL, "\"%.*s\" is no parameter of the template%s",
                MR_SHOWN(name), mr_nearest_hint(&near, hint));
        }
        if (!j->is_any_kind && !is_kind_of(v, b->value))
            return mr_fail(j->e, MR_EINVAL, "parameter \"%.*s\" is %s, and its default is %s",
                MR_SHOWN(name), mr_json_kind(v), mr_json_kind(b->value));
        b->value = v;
    }
    return MR_OK;
}

int mr_json_params(struct mr_json *j, yyjson_val *params)
{
    if (!yyjson_is_obj(params))
        return mr_fail(
            j->e, MR_EINVAL, "\"params\" is %s, but must be an object", mr_json_kind(params));
    if (yyjson_obj_size(params) > MR_JSON_PARAMS_MAX)
        return mr_fail(j->e, MR_ELIMIT, "\"params\": more than %d", MR_JSON_PARAMS_MAX);
    yyjson_obj_iter it = yyjson_obj_iter_with(params);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        struct mr_json_binding *at = NULL;
        int err = bind(j, mr_json_text(k), &at);
        if (err) return mr_fail_within(j->e, err, "field", MR_STR("params"));
        at->value = yyjson_obj_iter_get_val(k);
    }
    j->has_params = true;
    j->params_count = j->bindings_count;
    return j->given ? take_given(j) : MR_OK;
}

int mr_json_pack_params(struct mr_json *j, struct mr_buf *out)
{
    int err = MR_OK;
    mr_pack_map(out, j->params_count);
    for (uint32_t i = 0; i < j->params_count && !err; i++) {
        mr_pack_text(out, j->bindings[i].name);
        err = mr_json_pack(j, j->bindings[i].value, out);
    }
    return err;
}

/* Reads one variable of a `for` and adds it to `loop`. Its values are the numbers below a count, or
 * the items of a list. */
static int loop_var(struct mr_json *j, struct mr_json_loop *loop, yyjson_val *key)
{
    int err = MR_OK;
    yyjson_val *v = mr_json_resolve(j, yyjson_obj_iter_get_val(key), NULL, &err);
    if (err) return err;
    uint32_t at = loop->vars_count;
    if (yyjson_is_uint(v)) {
        loop->vars[at].n = yyjson_get_uint(v);
    } else if (yyjson_is_arr(v)) {
        loop->vars[at].n = yyjson_arr_size(v);
        loop->vars[at].list = v;
    } else {
        return mr_fail(j->e, MR_EINVAL,
            "\"for\": \"%.*s\" is %s, but must be a count (0 or more) or a list",
            MR_SHOWN(mr_json_text(key)), mr_json_kind(v));
    }
    if (loop->vars[at].n > MR_TASKS_MAX)
        return mr_fail(j->e, MR_ELIMIT, "\"for\": \"%.*s\" counts to %llu, the limit is %d",
            MR_SHOWN(mr_json_text(key)), (unsigned long long)loop->vars[at].n, MR_TASKS_MAX);
    loop->rounds *= loop->vars[at].n;
    if (loop->rounds > MR_TASKS_MAX)
        return mr_fail(j->e, MR_ELIMIT, "\"for\": more than %d combinations", MR_TASKS_MAX);
    loop->vars_count++;
    return MR_OK;
}

static void loop_bind(struct mr_json *j, struct mr_json_loop *loop, uint32_t at)
{
    struct mr_json_binding *b = &j->bindings[loop->bindings_at + at];
    if (loop->vars[at].list) {
        b->value = yyjson_arr_iter_next(&loop->vars[at].iter);
        return;
    }
    b->own.tag = YYJSON_TYPE_NUM | YYJSON_SUBTYPE_UINT;
    b->own.uni.u64 = loop->vars[at].i;
    b->value = &b->own;
}

static void loop_start(struct mr_json *j, struct mr_json_loop *loop, uint32_t at)
{
    loop->vars[at].i = 0;
    if (loop->vars[at].list) loop->vars[at].iter = yyjson_arr_iter_with(loop->vars[at].list);
    loop_bind(j, loop, at);
}

int mr_json_loop_open(struct mr_json *j, yyjson_val *spec, struct mr_json_loop *loop)
{
    *loop = (struct mr_json_loop){.rounds = 1, .bindings_at = j->bindings_count};
    if (!yyjson_is_obj(spec) || !yyjson_obj_size(spec) ||
        yyjson_obj_size(spec) > MR_JSON_LOOP_VARS_MAX)
        return mr_fail(j->e, MR_EINVAL,
            "\"for\" must be an object of 1 to %d variables, as in {\"i\": 10}",
            MR_JSON_LOOP_VARS_MAX);
    yyjson_obj_iter it = yyjson_obj_iter_with(spec);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        /* The loop's variables are not bound yet, so no variable sees another. */
        int err = loop_var(j, loop, k);
        if (err) return err;
    }
    it = yyjson_obj_iter_with(spec);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        struct mr_json_binding *b = NULL;
        int err = bind(j, mr_json_text(k), &b);
        if (err) {
            mr_json_loop_close(j, loop);
            return err;
        }
        b->own = (yyjson_val){.tag = YYJSON_TYPE_NULL};
        b->value = &b->own;
    }
    return MR_OK;
}

bool mr_json_loop_next(struct mr_json *j, struct mr_json_loop *loop)
{
    if (loop->round == loop->rounds) return false;
    if (!loop->round++) {
        for (uint32_t i = 0; i < loop->vars_count; i++)
            loop_start(j, loop, i);
        return true;
    }
    for (uint32_t i = loop->vars_count; i-- > 0;) {
        if (++loop->vars[i].i < loop->vars[i].n) {
            loop_bind(j, loop, i);
            break;
        }
        loop_start(j, loop, i);
    }
    return true;
}

void mr_json_loop_close(struct mr_json *j, struct mr_json_loop *loop)
{
    j->bindings_count = loop->bindings_at;
}
