/* How a journal is taken over: its keys, the claim of an epoch, and the records that are there.
 * Private to journal.c; calls wait for Redis. */
#pragma once

#include "store/meta/journal/journal.h"

#define MR_CLUSTER_ID_BYTES 33 /* of hex digits, with the NUL */
#define MR_INCARNATION_TEXT 17 /* the same */

struct mr_redis;

struct mr_journal_keys {
    char *cluster; /* a hash: id, epoch, incarnation, sequence, base, format */
    char *stream;
    char *staging; /* a snapshot on its way */
};

void mr_journal_keys_fill(struct mr_journal_keys *k, const char *prefix); /* NULL: the usual one */
void mr_journal_keys_fini(struct mr_journal_keys *k);

struct mr_str mr_journal_number(char out[24], uint64_t v); /* in digits, which stay in `out` */

void mr_journal_make_cluster_id(char out[MR_CLUSTER_ID_BYTES]); /* at random */

struct mr_journal_claim {
    char cluster_id[MR_CLUSTER_ID_BYTES];  /* in: of a new cluster; out: of this one */
    char incarnation[MR_INCARNATION_TEXT]; /* in: of who claims */
    uint32_t epoch;
    uint64_t sequence; /* of the newest record; 0: none */
    uint64_t base;     /* the first record that counts */
};

uint64_t mr_journal_draw_incarnation(char out[MR_INCARNATION_TEXT]); /* at random; see base/id.h */

/* Takes the next epoch: whoever had the one before is refused from now on. MR_ESTATE: a later
 * version's journal; MR_EFORMAT: something else's. */
int mr_journal_claim(struct mr_redis *redis, const struct mr_journal_keys *keys,
    struct mr_journal_claim *c, struct mr_error *e);

/* Calls `fn` for each record from `base` on, in order, until it says other than MR_OK. */
int mr_journal_load(struct mr_redis *redis, const char *stream, uint64_t base,
    mr_journal_record_fn fn, void *ctx, struct mr_error *e);
