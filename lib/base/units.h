/* Byte counts with units, for people. */
#pragma once

#include <stdint.h>

#define MR_BYTES_TEXT_MAX 32

/* Writes a byte count as text, for example "312 B", "4.0 KiB" or "179.4 MiB". */
void mr_bytes_text(uint64_t bytes, char out[MR_BYTES_TEXT_MAX]);
