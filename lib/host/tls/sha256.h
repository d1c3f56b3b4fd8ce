/* SHA-256 for secrets: a file may hold the hash of a secret instead of the secret. */
#pragma once

#include "base/str.h"

#include <stdint.h>

#define MR_SHA256_BYTES 32

void mr_sha256(struct mr_str bytes, uint8_t out[MR_SHA256_BYTES]);
