/* A log of the sessions' records in Redis: writes them in order and reports acknowledgements by
 * number. Keeps a copy of all that Redis has acknowledged and writes the copy again when Redis
 * comes back, because Redis may have lost its data. Does not know what a record means. Sends
 * commands by the function `send` of struct mr_records_link, so a test can play Redis.
 *
 * Every command carries the trainer's epoch. Redis refuses a command whose epoch is older than the
 * newest it has seen. So a trainer that was replaced can no longer write, and `on_refused` is
 * called. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>

#define MR_RECORDS_ARGC 10 /* number of arguments of every command */

struct mr_records;

struct mr_records_link {
    /* Sends a command. The link calls mr_records_answered later, never from inside this call.
     * False: Redis is away. */
    bool (*send)(void *ctx, uint64_t command, const struct mr_str argv[MR_RECORDS_ARGC]);
    /* Redis has this write and all writes before it */
    void (*on_acked)(void *ctx, uint64_t sequence);
    /* Redis is away: writes that were not acknowledged are dropped. */
    void (*on_away)(void *ctx);
    /* Redis has the whole copy again, so mr_records_write has an effect again. */
    void (*on_back)(void *ctx);
    void (*on_refused)(void *ctx);
    void *ctx;
};

/* `prefix`: prefix of the keys in Redis; NULL: the default prefix. */
struct mr_records *mr_records_new(
    const struct mr_records_link *link, uint32_t epoch, const char *prefix);
void mr_records_free(struct mr_records **r);

/* Puts a record into the copy. Called at the start for each record that Redis has. */
void mr_records_known(
    struct mr_records *r, struct mr_str id, struct mr_str record, struct mr_str document);

/* Writes a record. Copies all texts. `document` with p = NULL: the document stays as it was.
 * Sequences grow from write to write. While Redis is away the call has no effect: the user of this
 * module writes again after `on_back`. */
void mr_records_write(struct mr_records *r, uint64_t sequence, struct mr_str id,
    struct mr_str record, struct mr_str document);
void mr_records_delete(struct mr_records *r, uint64_t sequence, struct mr_str id);

/* Takes the answer to a command. `err`: MR_OK; MR_EABORTED: Redis has seen a newer epoch; any
 * other: Redis is away. */
void mr_records_answered(struct mr_records *r, uint64_t command, int err);

/* Tries to reach Redis again, and runs callbacks that could not run inside another call. Returns
 * the time of the next call, or MR_NEVER if Redis is here or is being restored. */
mr_time mr_records_turn(struct mr_records *r, mr_time now);
bool mr_records_is_here(const struct mr_records *r);
