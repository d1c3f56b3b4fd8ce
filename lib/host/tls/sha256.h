/* SHA-256: of secrets, so that a file may name one without telling it. */
#pragma once

#include "base/str.h"

#include <stdint.h>

#define MR_SHA256_BYTES 32

void mr_sha256(struct mr_str bytes, uint8_t out[MR_SHA256_BYTES]);
