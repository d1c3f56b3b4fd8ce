/* The journal: numbered records in a Redis stream, written by one connection's thread, read back at
 * the next start. It knows order, acknowledgement, epochs and what to do when Redis is away or
 * comes back without what it had acknowledged; it does not know what a record means.
 *
 * Sequence numbers count from 1 without gaps. A record is acknowledged when Redis has executed the
 * call that carried it; every call carries (cluster id, epoch, incarnation, sequence) and is
 * refused by a Redis that knows a higher epoch, or the same of another incarnation: then this
 * process must end.
 *
 * The `base` is the first record that a reader needs: the owner appends a snapshot of all that is
 * live as ordinary records and, once its last one is acknowledged, moves the base to its first;
 * what stands before it is trimmed. When Redis comes back behind what it had acknowledged, or
 * empty, `on_rewind` asks the owner for such a snapshot: mr_journal_rewind, append,
 * mr_journal_rewound. It is written beside what is there and takes its place whole, in one call:
 * whoever opens the journal reads the old one or the new one, whenever the writer dies. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/time.h"

struct mr_journal;

/* What stands in the stream, as the hash of the cluster says: 1 was a record an entry, 2 is all of
 * a call; since 3 graphs have narrow columns (graph/columns.h). A program that is older than what
 * is there refuses to open it, and changes nothing. */
#define MR_JOURNAL_FORMAT 3

struct mr_journal_config {
    const char *address;  /* of Redis: "unix:PATH" or "HOST:PORT" */
    const char *password; /* NULL: none */
    const char *prefix;   /* NULL: MR_META_PREFIX */
    /* One at a time, on the connection's thread or in mr_journal_look. */
    void (*on_acked)(void *ctx, uint64_t sequence); /* this one and all before it are kept */
    /* It is away, or refuses (out of memory, a key that is not ours …), or serves again. */
    void (*on_state)(void *ctx, bool here, const char *why);
    void (*on_rewind)(void *ctx);                         /* see above */
    void (*on_refused)(void *ctx, uint32_t higher_epoch); /* another scheduler lives */
    void *ctx;
};

struct mr_journal_info {
    char cluster_id[33];
    uint32_t epoch;       /* ours: 1 + the highest that Redis knew */
    uint64_t incarnation; /* ours, drawn at random: base/id.h */
    uint64_t sequence;    /* of the last record that was there */
};

typedef int (*mr_journal_record_fn)(void *ctx, uint64_t sequence, struct mr_str record);

/* Connects within `timeout_ns`, takes the next epoch, and calls `on_record` for each record from
 * the base on, in order, on the caller's thread. MR_EAWAY when Redis is not to be had, MR_ESTATE
 * when a later program wrote it. */
int mr_journal_open(const struct mr_journal_config *config, mr_duration timeout_ns,
    mr_journal_record_fn on_record, struct mr_journal **out, struct mr_journal_info *info,
    struct mr_error *e);
void mr_journal_close(struct mr_journal **j); /* what is not acknowledged is lost */

/* Takes a higher epoch: a worker knew one that Redis had lost. Redis has it with the records that
 * are appended from now on. */
void mr_journal_raise_epoch(struct mr_journal *j, uint32_t epoch);

/* Queues a record (copied); any thread, in sequence. Never blocks and never refuses: the owner
 * bounds what it has unacknowledged (mr_journal_unacked_bytes). What is queued leaves with the
 * next flush, which writes a small call itself, without waiting. */
void mr_journal_append(struct mr_journal *j, uint64_t sequence, struct mr_str record);
/* The same without a copy, for large ones: the owner fills what mr_journal_record_new made, and
 * gives it. */
void *mr_journal_record_new(size_t bytes);
void mr_journal_record_free(void **record);
void mr_journal_append_given(struct mr_journal *j, uint64_t sequence, void **record);
void mr_journal_flush(struct mr_journal *j);
size_t mr_journal_unacked_bytes(struct mr_journal *j);

/* Forgets everything unacknowledged; what is appended until mr_journal_rewound, a record at least,
 * is a snapshot that Redis gets in place of what it has. Acknowledgements up to its last record say
 * nothing; that one says that the snapshot is the journal. */
void mr_journal_rewind(struct mr_journal *j);
void mr_journal_rewound(struct mr_journal *j);

/* Moves the base, once `base` itself is acknowledged, and trims. */
void mr_journal_set_base(struct mr_journal *j, uint64_t base);

/* For a thread that looks for work before it sleeps: it reads the answers meanwhile, callbacks run
 * on it, and the connection's thread sleeps on. See mr_redis_attend. */
void mr_journal_attend(struct mr_journal *j, bool on);
void mr_journal_look(struct mr_journal *j);

bool mr_journal_is_here(const struct mr_journal *j);
