/* Reading and writing formats is too slow for the gRPC thread. This thread turns the body of an
 * upload into a draft that is ready to be sealed, and a value into the pieces of a download. */
#pragma once

#include "services/objectstore/call/call.h"
#include "store/object/format/format.h"

struct mr_piece { /* of an export */
    bool owned;   /* at `at` in the job's text; else in the value */
    size_t at;
    size_t n;
};

struct mr_format_job {
    struct mr_ostore_call *call; /* open meanwhile; ended when done, its `err` and `error` set */
    bool is_import;
    enum mr_format format; /* of an export: the outcome */
    struct mr_format_options options;
    struct mr_buf text; /* in: the body; out: what of an export is not in the value */
    struct mr_str accept;
    const struct mr_store_view *view; /* of an export; stays pinned */
    struct mr_piece *pieces;
    size_t pieces_count, pieces_room;
    struct mr_store_draft draft; /* of an import, to seal or abort */
    const char *mime;
};

struct mr_converter *mr_converter_open(struct mr_service *sv);
void mr_converter_close(struct mr_converter **f);
void mr_converter_do(struct mr_converter *f, struct mr_format_job *job, mr_ostore_call_fn then);
void mr_format_job_fini(struct mr_format_job *job);
