/* Common start of the tests of the worker's core: CMocka, and a rig of two slots for each test. */
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
