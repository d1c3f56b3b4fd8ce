/* A log of the sessions' records in Redis: writes them in order and reports acknowledgements by
 * number. Keeps a copy of all that Redis has acknowledged and writes the copy again when Redis
 * comes back, because Redis may have lost its data. Does not know what a record means, nor how
 * commands travel: the link does, so that a test can play Redis.
 *
 * Every command carries the trainer's epoch. Redis refuses a command whose epoch is older than the
 * newest it has seen. So a trainer that was replaced can no longer write, and `on_refused` is
 * called. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>

#define MR_RECORDS_ARGC 10 /* arguments of every command */

struct mr_records;

struct mr_records_link {
    /* Sends a command. Later, and never from inside, the link calls mr_records_answered. False:
     * Redis is away. */
    bool (*send)(void *ctx, uint64_t command, const struct mr_str argv[MR_RECORDS_ARGC]);
    void (*on_acked)(void *ctx, uint64_t sequence); /* Redis has this write and all before it */
    /* Writes without an acknowledgement are dropped. */
    void (*on_away)(void *ctx);
    void (*on_back)(void *ctx); /* the copy is written; the owner may write again */
    void (*on_refused)(void *ctx);
    void *ctx;
};

struct mr_records *mr_records_new(
    const struct mr_records_link *link, uint32_t epoch, const char *prefix); /* NULL: default */
void mr_records_free(struct mr_records **r);

/* Call at the start for each record that Redis has. */
void mr_records_known(
    struct mr_records *r, struct mr_str id, struct mr_str record, struct mr_str document);

/* Copies all texts. `document` with p NULL: unchanged. Sequences grow. While Redis is away the call
 * has no effect: the owner writes again after `on_back`. */
void mr_records_write(struct mr_records *r, uint64_t sequence, struct mr_str id,
    struct mr_str record, struct mr_str document);
void mr_records_delete(struct mr_records *r, uint64_t sequence, struct mr_str id);

/* `err`: MR_OK; MR_EABORTED: Redis has seen a newer epoch; any other: Redis is away. */
void mr_records_answered(struct mr_records *r, uint64_t command, int err);

/* Runs callbacks that could not run inside a call, and retries. Returns the time of the next
 * turn. */
mr_time mr_records_turn(struct mr_records *r, mr_time now);
bool mr_records_is_here(const struct mr_records *r);
