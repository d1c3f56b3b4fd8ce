/* Converts between values and formats (npy, JSON, …) on a thread of its own, because that is too
 * slow for the gRPC thread. The body of an upload becomes a draft that is ready to be sealed. A
 * value becomes the pieces of a download. */
#pragma once

#include "services/objectstore/call/call.h"
#include "store/object/format/format.h"

struct mr_piece { /* of an export: `n` bytes at `at` … */
    bool owned;   /* … of the job's text; else of the value */
    size_t at;
    size_t n;
};

struct mr_format_job {
    struct mr_ostore_call
        *call; /* its question is open; at the end its `err` and `error` are set */
    bool is_import;
    enum mr_format format; /* of an import: given; of an export: chosen by `accept` */
    struct mr_format_options options;
    struct mr_buf text; /* of an import: the body; of an export: bytes that are not in the value */
    struct mr_str accept;
    const struct mr_store_view *view; /* of an export; pinned */
    struct mr_piece *pieces;
    size_t pieces_count, pieces_room;
    struct mr_store_draft draft; /* of an import; the caller seals or aborts it */
    const char *mime;
};

struct mr_converter *mr_converter_open(struct mr_service *sv);
void mr_converter_close(struct mr_converter **f);
void mr_converter_do(struct mr_converter *f, struct mr_format_job *job, mr_ostore_call_fn then);
void mr_format_job_fini(struct mr_format_job *job);
