/* Common start of the tests of the worker's core: CMocka, and for each test a rig whose worker has
 * two slots. The head of services/worker/core/core.h explains the terms strand, item, cut and turn.
 */
#pragma once

#include "tests/unit/worker/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define INPUTS(...) ((const int[]){__VA_ARGS__, -1})
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int setup(void **state)
{
    *state = rig_new(2);
    return 0;
}

static int teardown(void **state)
{
    rig_free((struct rig **)state);
    return 0;
}
