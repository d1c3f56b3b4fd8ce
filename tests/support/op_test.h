/* What tests of operators have in common: the headers of CMocka, and `host`, through which a test
 * calls operators (op_host.h). Each test gets a new `host`. */
#pragma once

#include "store/object/format/json.h"
#include "store/object/value.h"
#include "support/op_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct op_host host;

static int setup(void **state)
{
    (void)state;
    op_host_init(&host);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    op_host_fini(&host);
    return 0;
}

/* Writes the result to `text` as JSON that ends with a NUL. The result may be inline or in an
 * extent. */
static inline void op_result_json(const struct mr_op_result *r, char *text, size_t size)
{
    struct mr_error e = {0};
    struct mr_buf b;
    struct mr_value v;
    mr_buf_init(&b, size - 1);
    if (r->kind == MR_OP_RESULT_EXTENT)
        assert_int_equal(mr_value_check_deep(r->extent, &v, &e), MR_OK);
    else
        assert_int_equal(mr_value_from_pack(r->pack, NULL, &v, &e), MR_OK);
    assert_int_equal(mr_json_export(&v, NULL, mr_sink_to_buf(&b), &e), MR_OK);
    memcpy(text, b.p, b.n);
    text[b.n] = 0;
    mr_buf_fini(&b);
}
