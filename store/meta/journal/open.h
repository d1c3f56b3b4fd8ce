/* Private to journal.c: the keys of a journal, the claim of an epoch, and reading the records. All
 * calls wait for Redis. */
#pragma once

#include "store/meta/journal/journal.h"

#define MR_CLUSTER_ID_BYTES 33 /* hexadecimal digits, including the NUL */
#define MR_INCARNATION_TEXT 17 /* hexadecimal digits, including the NUL */

struct mr_redis;

struct mr_journal_keys {
    /* Key of a hash with the fields id, epoch, incarnation, sequence, base, format. */
    char *cluster;
    char *stream;
    char *staging; /* key of the stream in which a snapshot grows */
};

/* Fills in the keys. `prefix` NULL: the prefix is MR_META_PREFIX. */
void mr_journal_keys_fill(struct mr_journal_keys *k, const char *prefix);
void mr_journal_keys_fini(struct mr_journal_keys *k);

/* Formats `v` in `out`; the result points into `out`. */
struct mr_str mr_journal_number(char out[24], uint64_t v);

void mr_journal_make_cluster_id(char out[MR_CLUSTER_ID_BYTES]); /* draws a random id */

struct mr_journal_claim {
    /* In: the id to use if Redis has no cluster id yet. Out: the cluster's id. */
    char cluster_id[MR_CLUSTER_ID_BYTES];
    char incarnation[MR_INCARNATION_TEXT]; /* in: the incarnation of this process */
    uint32_t epoch;
    uint64_t sequence; /* number of the newest record; 0: there is no record */
    uint64_t base;     /* number of the first record that a reader needs */
};

/* Draws a random incarnation (base/id.h), returns it, and writes it to `out` as text. */
uint64_t mr_journal_draw_incarnation(char out[MR_INCARNATION_TEXT]);

/* Claims the next epoch. From now on Redis refuses the process that had the last epoch. MR_ESTATE:
 * a later version of the program wrote the journal. MR_EFORMAT: the keys hold something else. */
int mr_journal_claim(struct mr_redis *redis, const struct mr_journal_keys *keys,
    struct mr_journal_claim *c, struct mr_error *e);

/* Calls `fn` for each record from `base` on, in order, until `fn` returns an error, which is then
 * returned. */
int mr_journal_load(struct mr_redis *redis, const char *stream, uint64_t base,
    mr_journal_record_fn fn, void *ctx, struct mr_error *e);
