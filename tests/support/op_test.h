/* What a test of operators begins with: CMocka, and a host that each test has anew. */
#pragma once

#include "support/op_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

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
