/* A bug that a seed of the simulator found, kept by hand, since a seed dies with its commit. */
#pragma once

#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define SCENARIO(name)                                                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct CMUnitTest tests[] = {RIG_TEST(name)};                                        \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }
