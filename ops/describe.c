/* Describes operators in words, and checks calls against descriptors (describe.h). */
#include "ops/describe.h"

#include "base/assert.h"
#include "base/limits.h"

#include <assert.h>
#include <stdio.h>

static bool is_variadic(const struct mr_op_desc *op)
{
    return op->flags & MR_OP_VARIADIC;
}

uint32_t mr_op_args_min(const struct mr_op_desc *op)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->params_count; i++)
        if (!op->params[i].fallback) n = i + 1;
    return n;
}

uint32_t mr_op_args_max(const struct mr_op_desc *op)
{
    return is_variadic(op) ? UINT32_MAX : op->params_count;
}

static uint32_t param_of(const struct mr_op_desc *op, struct mr_str name)
{
    for (uint32_t i = 0; i < op->params_count; i++)
        if (mr_str_eq(mr_str(op->params[i].name), name)) return i;
    return UINT32_MAX;
}

/* Writes a signature such as "add(x, [y])", where optional parameters stand in brackets. */
static void signature(const struct mr_op_desc *op, struct mr_buf *out)
{
    mr_buf_add_text(out, op->name);
    mr_buf_add_byte(out, '(');
    for (uint32_t i = 0; i < op->params_count; i++) {
        bool optional = op->params[i].fallback;
        mr_buf_printf(out, "%s%s%s%s%s", optional ? "[" : "", i ? ", " : "", op->params[i].name,
            i + 1 == op->params_count && is_variadic(op) ? "…" : "", optional ? "]" : "");
    }
    mr_buf_add_byte(out, ')');
    mr_buf_add_byte(out, 0);
}

static int wrong_call(const struct mr_op_desc *op, struct mr_error *e, const char *what)
{
    struct mr_buf text;
    mr_buf_init(&text, MR_ERROR_TEXT_MAX);
    signature(op, &text);
    int err = mr_fail(e, MR_EINVAL, "%s: %s; it is called as %s", op->name, what,
        text.n && !text.failed ? (const char *)text.p : op->name);
    mr_buf_fini(&text);
    return err;
}

int mr_op_check_call(const struct mr_op_desc *op, uint32_t positional_count,
    const struct mr_str *names, uint32_t names_count, struct mr_error *e)
{
    char what[400];
    if (positional_count > mr_op_args_max(op)) {
        (void)snprintf(what, sizeof what, "takes at most %u argument%s, %u were given",
            op->params_count, op->params_count == 1 ? "" : "s", positional_count);
        return wrong_call(op, e, what);
    }
    /* One bit for each parameter that has an argument. */
    uint32_t given = 0;
    static_assert(MR_OP_PARAMS_MAX <= 32, "one bit per parameter");
    for (uint32_t i = 0; i < MR_MIN(positional_count, op->params_count); i++)
        given |= 1u << i;
    for (uint32_t i = 0; i < names_count; i++) {
        uint32_t p = param_of(op, names[i]);
        if (p == UINT32_MAX || given >> p & 1) {
            (void)snprintf(what, sizeof what,
                p == UINT32_MAX ? "has no parameter \"%.*s\"" : "argument \"%.*s\" is given twice",
                (int)MR_MIN(names[i].n, 200u), names[i].p ? names[i].p : "");
            return wrong_call(op, e, what);
        }
        given |= 1u << p;
    }
    for (uint32_t i = 0; i < op->params_count; i++) {
        if (op->params[i].fallback || given >> i & 1) continue;
        (void)snprintf(what, sizeof what, "argument \"%.100s\" is missing", op->params[i].name);
        return wrong_call(op, e, what);
    }
    return MR_OK;
}

void mr_op_takes_words(uint32_t takes, struct mr_buf *out)
{
    static const struct {
        uint32_t bits;
        const char *word;
    } rows[] = {
        {MR_TAKES_ANY, "any"},
        {MR_TAKES_ARRAY, "array"},
        {MR_TAKES_NUMBER, "number"},
        {MR_TAKES_TENSOR, "tensor"},
        {MR_TAKES_BOOL, "bool"},
        {MR_TAKES_REAL, "number"},
        {MR_TAKES_INT, "int"},
        {MR_TAKES_FLOAT, "float"},
        {MR_TAKES_TEXT, "text"},
        {MR_TAKES_BYTES, "bytes"},
        {MR_TAKES_LIST, "list"},
        {MR_TAKES_DICT, "dict"},
        {MR_TAKES_VALUE, "value"},
        {MR_TAKES_OBJECT, "object"},
        {MR_TAKES_NIL, "null"},
    };
    bool first = true;
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        if ((takes & rows[i].bits) != rows[i].bits) continue;
        takes &= ~rows[i].bits;
        mr_buf_printf(out, "%s%s", first ? "" : " or ", rows[i].word);
        first = false;
    }
}
