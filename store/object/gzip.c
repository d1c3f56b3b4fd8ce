#include "store/object/gzip.h"

#include "base/alloc.h"
#include "base/unconst.h"

#include <limits.h>
#include <zlib.h>

/* mr_gzip_unpack unpacks at most this many bytes between two calls of its argument `stop` */
#define BLOCK_BYTES ((size_t)1 << 20)

bool mr_gzip_is(struct mr_str bytes)
{
    return bytes.n > 2 && (unsigned char)bytes.p[0] == 0x1f && (unsigned char)bytes.p[1] == 0x8b;
}

static void inflate_fini(z_stream *s)
{
    (void)inflateEnd(s);
}

int mr_gzip_unpack(struct mr_str packed, struct mr_buf *out, bool (*stop)(void *ctx), void *ctx,
    struct mr_error *e)
{
    MR_AUTO(inflate_fini) z_stream z = {0};
    if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK)
        return mr_fail(e, MR_EINTERNAL, "zlib does not start");
    MR_AUTO(mr_free_ptr) unsigned char *block = mr_alloc(BLOCK_BYTES);
    size_t at = 0;
    for (;;) {
        if (!z.avail_in) {
            z.next_in = mr_unconst(packed.p + at);
            z.avail_in = (uInt)MR_MIN(packed.n - at, (size_t)INT_MAX);
            at += z.avail_in;
        }
        z.next_out = block;
        z.avail_out = BLOCK_BYTES;
        int status = inflate(&z, Z_NO_FLUSH);
        mr_buf_add(out, block, BLOCK_BYTES - z.avail_out);
        if (mr_buf_status(out))
            return mr_fail(e, MR_ELIMIT, "unpacked it has more than %llu bytes",
                (unsigned long long)out->bytes_max);
        bool more = z.avail_in || at < packed.n;
        if (status == Z_STREAM_END && !more) return MR_OK;
        if (status == Z_STREAM_END) /* another member of the file may follow */
            (void)inflateReset(&z);
        else if (status != Z_OK || (!more && z.avail_out))
            return mr_fail(e, MR_EFORMAT, "the gzipped file is damaged or cut off: %s",
                z.msg ? z.msg : "it ends too early");
        if (stop && stop(ctx)) return mr_fail(e, MR_ECANCELED, "cancelled");
    }
}
