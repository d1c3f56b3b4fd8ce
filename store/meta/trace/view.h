/* What a reader (reader.h) needs for a job's whole trace, besides the blocks in Redis and in files:
 * the blocks and sheets that the scheduler has not written yet. Views share these blocks and sheets
 * with the scheduler's list (log.h), by reference counts. So a view costs 8 bytes for each of them,
 * however large they are. A view and the list may belong to different threads. */
#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "host/ref_count.h"

struct mr_trace_waiting { /* a block or a sheet; it is never changed */
    struct mr_ref_count owners;
    mr_job_id job;
    uint64_t number; /* of the entry */
    bool is_sheet;   /* false: the bytes are a block */
    size_t n;
    char bytes[];
};

/* Copies the bytes. The caller is the first owner. */
struct mr_trace_waiting *mr_trace_waiting_new(
    mr_job_id job, uint64_t number, bool is_sheet, struct mr_str bytes);
void mr_trace_waiting_put(struct mr_trace_waiting **w);

struct mr_trace_view {
    mr_job_id job;
    uint64_t spans; /* all spans of the job so far */
    /* The blocks of entries before (epoch, number) are in Redis or in files. */
    uint32_t epoch;
    uint64_t number;
    /* a struct mr_trace_waiting * for each entry from `number` on; the view is an owner of each */
    struct mr_buf waiting;
};

void mr_trace_view_init(struct mr_trace_view *v, mr_job_id job);
void mr_trace_view_fini(struct mr_trace_view *v);
/* Adds `w`. The view becomes an owner, and the caller stays one. */
void mr_trace_view_add(struct mr_trace_view *v, struct mr_trace_waiting *w);
uint32_t mr_trace_view_count(const struct mr_trace_view *v);
/* Returns the block or sheet with the index `i`, lent until mr_trace_view_fini. */
const struct mr_trace_waiting *mr_trace_view_at(const struct mr_trace_view *v, uint32_t i);
