/* The journal of the scheduler: numbered records in a Redis stream. One connection writes the
 * records; the next start of a scheduler reads them back. The journal handles order,
 * acknowledgement, epochs, a Redis that is away, and a Redis that has lost acknowledged records. It
 * does not interpret the records.
 *
 * Sequence numbers count from 1 without gaps. A record is acknowledged when Redis has executed the
 * call that carried it. Every call carries the cluster id, the epoch, the incarnation and the
 * sequence number. Redis refuses a call if Redis has another cluster id, a higher epoch, or the
 * same epoch with another incarnation. Then another scheduler has taken over, and this process must
 * end.
 *
 * The `base` is the first record that a reader needs. To move the base, the owner appends a
 * snapshot of all live state as ordinary records. When the last of them is acknowledged, the base
 * becomes the first record of the snapshot, and all records before it are trimmed.
 *
 * Redis may come back empty, or without records that it had acknowledged. Then `on_rewind` asks the
 * owner for a snapshot. The owner calls mr_journal_rewind, appends the records of the snapshot, and
 * calls mr_journal_rewound. This snapshot is written to a second stream and replaces the journal in
 * one call. So whenever the writer dies, a reader finds either the old journal or the complete new
 * one. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

struct mr_journal;

/* The version of the stream's format, kept in the cluster's hash. In format 1 each record was an
 * entry of the stream. Since format 2 an entry has all records of one call. Since format 3 graphs
 * have narrow columns (graph/columns.h). A program that finds a later format refuses to open the
 * journal and changes nothing. */
#define MR_JOURNAL_FORMAT 3

struct mr_journal_config {
    const char *address;  /* address of Redis: "unix:PATH" or "HOST:PORT" */
    const char *password; /* NULL: no password */
    const char *prefix;   /* NULL: MR_META_PREFIX */
    /* The callbacks come one at a time, on the connection's thread or in mr_journal_look. */
    /* Record `sequence` and all records before it are in Redis. */
    void (*on_acked)(void *ctx, uint64_t sequence);
    /* The state of Redis has changed. `here` false: Redis is away, or refuses to serve (out of
     * memory, a key of another type). */
    void (*on_state)(void *ctx, bool here, const char *why);
    /* Redis has lost acknowledged records. The owner has to write a snapshot. */
    void (*on_rewind)(void *ctx);
    void (*on_refused)(void *ctx, uint32_t higher_epoch); /* another scheduler has taken over */
    void *ctx;
};

struct mr_journal_info {
    char cluster_id[33];
    uint32_t epoch;       /* the epoch of this process: 1 + the highest epoch that Redis knew */
    uint64_t incarnation; /* the incarnation of this process, a random number (base/id.h) */
    /* Sequence number of the last record in Redis; 0: there is no record. */
    uint64_t sequence;
};

typedef int (*mr_journal_record_fn)(void *ctx, uint64_t sequence, struct mr_str record);

/* Connects within `timeout_ns`, claims the next epoch, and calls `on_record` for each record from
 * the base on, in order, on the caller's thread. An error of `on_record` ends the call and is
 * returned. MR_EAWAY: Redis does not answer. MR_ESTATE: a later version of the program wrote the
 * journal. MR_EFORMAT: the keys in Redis do not hold a journal. */
int mr_journal_open(const struct mr_journal_config *config, mr_duration timeout_ns,
    mr_journal_record_fn on_record, struct mr_journal **out, struct mr_journal_info *info,
    struct mr_error *e);
void mr_journal_close(struct mr_journal **j); /* unacknowledged records are lost */

/* Raises the epoch when a worker has seen a higher epoch, which Redis has lost. Redis learns the
 * new epoch with the next appended records. */
void mr_journal_raise_epoch(struct mr_journal *j, uint32_t epoch);

/* Queues a copy of a record. `sequence` must be 1 more than for the record before. Any thread may
 * call. Never blocks and never refuses: the owner bounds the bytes that are not acknowledged.
 * mr_journal_flush sends queued records: it writes a small call to the socket on the thread of its
 * caller, and leaves a large one to the connection's thread. */
void mr_journal_append(struct mr_journal *j, uint64_t sequence, struct mr_str record);
/* Append a large record without a copy: the owner fills the memory that mr_journal_record_new
 * returned, and gives it away. */
void *mr_journal_record_new(size_t bytes);
void mr_journal_record_free(void **record);
void mr_journal_append_given(struct mr_journal *j, uint64_t sequence, void **record);
void mr_journal_flush(struct mr_journal *j);

/* Begin and end a snapshot. mr_journal_rewind drops all unacknowledged records. The records that
 * are appended until mr_journal_rewound, at least one, replace the journal in Redis. They are the
 * journal as soon as the last of them is acknowledged; acknowledgements of the records before it
 * mean nothing. */
void mr_journal_rewind(struct mr_journal *j);
void mr_journal_rewound(struct mr_journal *j);

/* Moves the base to `base`, which must be acknowledged, and trims the records before it. */
void mr_journal_set_base(struct mr_journal *j, uint64_t base);

/* For a thread that polls for work before it sleeps. After mr_journal_attend(j, true), this thread
 * reads the answers of Redis with mr_journal_look, callbacks run on this thread, and the
 * connection's thread is not woken (see mr_redis_attend). */
void mr_journal_attend(struct mr_journal *j, bool on);
void mr_journal_look(struct mr_journal *j);

bool mr_journal_is_here(const struct mr_journal *j);
