/* gzip: whole files, of one member or several. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

bool mr_gzip_is(struct mr_str bytes);
/* Appends what is packed to `out`; MR_ELIMIT past its ceiling, MR_EFORMAT when it is damaged or cut
 * off. `stop` (may be NULL) is asked every few milliseconds: MR_ECANCELED. */
int mr_gzip_unpack(struct mr_str packed, struct mr_buf *out, bool (*stop)(void *ctx), void *ctx,
    struct mr_error *e);
