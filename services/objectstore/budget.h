/* How much memory a store may take. */
#pragma once

#include <stdint.h>

/* min(`wanted`, 80 % of what the control group, or the machine, allows); wanted 0: 40 % of it. */
uint64_t mr_budget_bytes(uint64_t wanted);
