/* Fuzzes the filter of gateway/http/framing.h, which reads the bytes of an HTTP client. The first
 * byte of the fuzzer's input, plus 1, is the size of the pieces in which the filter gets the rest.
 * The filter must pass on the same bytes whatever the size of the pieces. Its output must pass
 * through a second filter unchanged. */
#include "base/alloc.h"
#include "base/assert.h"
#include "gateway/http/framing.h"

#include <stdint.h>

#define OUT_BYTES_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void pass(struct mr_framing *f, struct mr_str in, size_t piece, struct mr_buf *out)
{
    mr_framing_init(f);
    mr_buf_init(out, OUT_BYTES_MAX);
    for (size_t at = 0; at < in.n;) {
        size_t n = MR_MIN(piece, in.n - at);
        uint64_t passes = mr_framing_free(f);
        if (passes && at % 2) {
            n = (size_t)MR_MIN((uint64_t)n, passes);
            mr_buf_add(out, in.p + at, n);
            mr_framing_skip(f, n);
        } else {
            mr_framing_feed(f, in.p + at, n, out);
        }
        at += n;
    }
    mr_assert(!mr_buf_status(out));
    mr_assert((f->state == MR_FRAMING_REFUSED) == (f->status != 0));
    mr_assert(!f->status || f->why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 200000) return 0;
    struct mr_str in = mr_str_of(data + 1, size - 1);
    struct mr_framing whole, pieces, again;
    struct mr_buf a, b, c;
    pass(&whole, in, in.n ? in.n : 1, &a);
    pass(&pieces, in, (size_t)data[0] + 1, &b);
    mr_assert(mr_str_eq(mr_buf_str(&a), mr_buf_str(&b)));
    mr_assert(whole.status == pieces.status);
    mr_assert(whole.heads == pieces.heads);
    mr_assert(whole.state == pieces.state);
    mr_assert(a.n <= in.n + MR_FRAMING_REFUSAL_BYTES_MAX);
    pass(&again, mr_buf_str(&a), 4096, &c);
    mr_assert(!again.status);
    mr_assert(again.heads == whole.heads);
    mr_assert(mr_str_eq(mr_buf_str(&a), mr_buf_str(&c)));
    mr_framing_fini(&whole);
    mr_framing_fini(&pieces);
    mr_framing_fini(&again);
    mr_buf_fini(&a);
    mr_buf_fini(&b);
    mr_buf_fini(&c);
    return 0;
}
