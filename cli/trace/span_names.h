/* Names of the enums of the API's message TimelineSpan, for spans that are read from a trace. */
#pragma once

#include <stdint.h>

const char *mr_span_outcome_name(uint32_t outcome); /* `outcome`: enum mr_outcome */
const char *mr_span_held_name(uint32_t held);       /* `held`: enum mr_trace_held */
