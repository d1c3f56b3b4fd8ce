/* Converts between values and formats (npy, JSON, …) on a thread of its own, because a conversion
 * would block the gRPC thread for too long. The body of an upload becomes a draft that is ready to
 * be sealed. A value becomes the pieces of a download. */
#pragma once

#include "services/objectstore/call/call.h"
#include "store/object/format/format.h"

struct mr_piece { /* a piece of an export: `n` bytes from position `at` on */
    bool owned;   /* true: `at` is in mr_format_job.text; false: in the bytes of the value */
    size_t at;
    size_t n;
};

struct mr_format_job {
    /* The call that waits for the job. The converter sets call->err and call->error. */
    struct mr_ostore_call *call;
    bool is_import;
    /* an import has a given format; for an export the converter chooses it by `accept` */
    enum mr_format format;
    struct mr_format_options options;
    /* of an import: the body; of an export: the bytes that are not taken from the value */
    struct mr_buf text;
    struct mr_str accept;
    const struct mr_store_view *view; /* only in an export: the value, pinned */
    struct mr_piece *pieces;
    size_t pieces_count, pieces_room;
    /* only in an import: the new value, which the caller seals or aborts */
    struct mr_store_draft draft;
    const char *mime;
};

struct mr_converter *mr_converter_open(struct mr_service *sv);
void mr_converter_close(struct mr_converter **f);
void mr_converter_do(struct mr_converter *f, struct mr_format_job *job, mr_ostore_call_fn then);
void mr_format_job_fini(struct mr_format_job *job);
