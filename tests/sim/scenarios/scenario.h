/* Each scenario is a bug that the simulator found, written as a test. A seed alone would not do,
 * because a seed gives another run after the next change of the code. */
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
