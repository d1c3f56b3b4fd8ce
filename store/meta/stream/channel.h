/* Channels in Redis. A channel is a stream with a bound and a floor. The floor is the id after
 * which no entry was dropped. A reader continues after the last entry that it has read. If this
 * entry is neither in the stream nor the floor, entries after it are gone: trimmed, or lost by
 * Redis.
 *
 * Everything read from Redis is untrusted and checked. If a function returns MR_OK, its callback is
 * called exactly once, on the connection's thread; otherwise (MR_EAWAY, MR_ELIMIT) never. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct mr_redis;
struct mr_reply;

#define MR_CHANNELS_MAX 100000         /* channels in one Redis */
#define MR_CHANNEL_ENTRIES_INIT 10000u /* default bound of a new channel */

struct mr_channel_entry {
    struct mr_str id; /* "<ms>-<n>" */
    struct mr_str value;
    uint64_t time_ns; /* ns since 1970 */
};

struct mr_channel_answer {
    /* MR_OK, MR_EAWAY, MR_EFORMAT, or MR_ECANCELED if the connection was closed. MR_ERANGE: entries
     * after `after_id` are gone. MR_ELIMIT: there are too many channels. */
    int err;
    struct mr_str first_id; /* after a read: id of the oldest entry; "": the channel is empty */
    /* After an append: id of the last entry. After a read: id of the last returned entry, or
     * `after_id`. */
    struct mr_str last_id;
    struct mr_channel_entry *entries;
    struct mr_str *names; /* the names of a list of channels */
    size_t count;
    bool more;              /* after a read: there are more entries after the last returned one */
    struct mr_reply *reply; /* owns the bytes of the texts */
};

/* Receives the answer, which the callee then owns. */
typedef void (*mr_channel_fn)(void *ctx, struct mr_channel_answer **answer);
void mr_channel_answer_free(struct mr_channel_answer **a);

struct mr_channel_append {
    struct mr_str channel;
    const struct mr_str *values;
    size_t count;
    uint32_t entries_max; /* new bound of the number of entries; 0: the bound is kept */
    /* Identifies this append. With `is_again` the script looks for an entry that has this token. */
    struct mr_str token;
    /* True: the append is repeated, and the first one may have been executed. */
    bool is_again;
    uint64_t time_ns;
};

int mr_channel_append(
    struct mr_redis *r, const struct mr_channel_append *append, mr_channel_fn fn, void *ctx);
/* Reads entries after `after_id`. "": from the oldest entry. "$": no entries, only the newest
 * id. */
int mr_channel_read(struct mr_redis *r, struct mr_str channel, struct mr_str after_id,
    uint32_t entries_max, mr_channel_fn fn, void *ctx);
int mr_channel_list(struct mr_redis *r, mr_channel_fn fn, void *ctx);

/* True: the id has the form "<ms>-<n>". */
bool mr_channel_id_is_good(struct mr_str id);
/* Compares two well-formed ids by number: first <ms>, then <n>. Negative: a is less. "" is less
 * than all other ids. */
int mr_channel_id_cmp(struct mr_str a, struct mr_str b);
