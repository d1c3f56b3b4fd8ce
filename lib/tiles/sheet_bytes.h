/* The bytes of a sheet (sheet.h). They can be read without any other data. A reader treats them as
 * untrusted. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "tiles/sheet.h"

#define MR_TILE_SHEET_BYTES_MAX ((size_t)1 << 20)

struct mr_tile_lane { /* a slot of a worker */
    uint32_t worker;  /* index of the worker's name */
    uint32_t slot;
};

/* What the numbers in a sheet mean. */
struct mr_tile_legend {
    const struct mr_str *names, *workers;
    const struct mr_tile_lane *lanes;
    uint32_t names_count, workers_count, lanes_count;
};

struct mr_tile_sheet_id { /* the block that the sheet summarizes */
    uint64_t job;
    uint32_t epoch;
    uint64_t number;
    uint32_t spans; /* all spans of the block, also those that a timeline does not show */
};

/* Appends the bytes of a sheet. MR_ELIMIT: there are more than MR_TILE_SHEET_BYTES_MAX. */
int mr_tile_sheet_write(const struct mr_tile_sheet *sheet, const struct mr_tile_sheet_id *id,
    const struct mr_tile_legend *legend, struct mr_buf *out);

/* A sheet begins with a magic number of 4 bytes and a check sum of 8 bytes. Returns the check sum
 * of the `n` bytes that follow these two. Declared here for tests. */
#define MR_TILE_SHEET_SUMMED_AT 12u
uint64_t mr_tile_sheet_sum(const void *bytes, size_t n);

struct mr_tile_sheet_head {
    struct mr_tile_sheet_id id;
    uint32_t spans;
    uint64_t from, until;
    unsigned bits;
};
/* Reads the head. MR_EFORMAT: the bytes are damaged, or of another version. */
int mr_tile_sheet_read(struct mr_str bytes, struct mr_tile_sheet_head *out);

struct mr_tile_sheet_fns {
    /* Called for each operator name, worker and lane of the sheet. They return the caller's number
     * for it. `lane` and `piece` get the caller's numbers. */
    uint32_t (*name)(void *ctx, struct mr_str name);
    uint32_t (*worker)(void *ctx, struct mr_str name);
    uint32_t (*lane)(void *ctx, uint32_t worker, uint32_t slot);
    void (*piece)(void *ctx, uint32_t lane, const struct mr_tile_time *t);
    void *ctx;
};
/* Calls fns->piece for each piece. After MR_EFORMAT, it may have been called for some pieces. */
int mr_tile_sheet_decode(struct mr_str bytes, const struct mr_tile_sheet_fns *fns);
