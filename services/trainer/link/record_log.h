/* Records of sessions on their way to Redis: in order, each acknowledged by its number, and
 * written anew when Redis is back. It keeps a copy of all that Redis has acknowledged, as Redis
 * may come back without it. Does not know what a record means, nor how commands travel: the link
 * does, so that a test can play Redis.
 *
 * Every command carries the trainer's epoch. Redis refuses a command of an older epoch than the
 * newest that it has seen. So a trainer that was replaced can write nothing any more, and
 * `on_refused` is called. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>

#define MR_RECORDS_ARGC 10 /* of every command */

struct mr_records;

struct mr_records_link {
    /* Sends a command; mr_records_answered comes for it later, never from inside. False: away. */
    bool (*send)(void *ctx, uint64_t command, const struct mr_str argv[MR_RECORDS_ARGC]);
    void (*on_acked)(void *ctx, uint64_t sequence); /* this one and all before it are kept */
    void (*on_away)(void *ctx);                     /* what is not acknowledged is forgotten here */
    void (*on_back)(void *ctx); /* what was acknowledged is there again; the owner writes on */
    void (*on_refused)(void *ctx);
    void *ctx;
};

struct mr_records *mr_records_new(
    const struct mr_records_link *link, uint32_t epoch, const char *prefix); /* NULL: the usual */
void mr_records_free(struct mr_records **r);

/* At the start: this is there already. */
void mr_records_known(
    struct mr_records *r, struct mr_str id, struct mr_str record, struct mr_str document);

/* All texts are copied. `document` with p NULL: stays as it is. Sequences grow. While Redis is away
 * nothing is taken: the owner writes again when it is back. */
void mr_records_write(struct mr_records *r, uint64_t sequence, struct mr_str id,
    struct mr_str record, struct mr_str document);
void mr_records_delete(struct mr_records *r, uint64_t sequence, struct mr_str id);

/* MR_OK, MR_EABORTED (an epoch above ours), any other: away. */
void mr_records_answered(struct mr_records *r, uint64_t command, int err);

/* Runs the callbacks that could not run inside a call, and retries. Returns the next deadline. */
mr_time mr_records_turn(struct mr_records *r, mr_time now);
bool mr_records_is_here(const struct mr_records *r);
