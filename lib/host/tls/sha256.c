/* SHA-256 by libcrypto. */
#include "host/tls/sha256.h"

#include "base/assert.h"

#include <openssl/evp.h>

void mr_sha256(struct mr_str bytes, uint8_t out[MR_SHA256_BYTES])
{
    unsigned n = 0;
    int done = EVP_Digest(bytes.p ? bytes.p : "", bytes.n, out, &n, EVP_sha256(), NULL);
    mr_assert(done);
    mr_assert(n == MR_SHA256_BYTES);
}
