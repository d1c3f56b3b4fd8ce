/* Channels in Redis: a stream each, with a bound and a floor: the id after which nothing was
 * dropped. A reader names the entry after which it goes on; an entry that is neither there nor the
 * floor tells that something in between is gone, whether it was trimmed or Redis lost it.
 *
 * What Redis returns is outside bytes and is checked. Callbacks come on the connection's thread,
 * exactly once, when the function has returned MR_OK; else (MR_EAWAY, MR_ELIMIT) never. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct mr_redis;
struct mr_reply;

#define MR_CHANNELS_MAX 100000         /* names in one Redis */
#define MR_CHANNEL_ENTRIES_INIT 10000u /* bound of a new channel */

struct mr_channel_entry {
    struct mr_str id; /* "<ms>-<n>" */
    struct mr_str value;
    uint64_t time_ns; /* wall clock */
};

struct mr_channel_answer {
    int err; /* MR_EAWAY, MR_EFORMAT; MR_ERANGE: that part is gone; MR_ELIMIT: too many channels */
    struct mr_str first_id; /* read: the oldest that is there; "": none */
    struct mr_str last_id; /* append: of the last one; read: of the last one given, or `after_id` */
    struct mr_channel_entry *entries;
    struct mr_str *names; /* list */
    size_t count;
    bool more;              /* read: there are entries after the last one given */
    struct mr_reply *reply; /* what the texts point into */
};

typedef void (*mr_channel_fn)(void *ctx, struct mr_channel_answer **answer); /* given */
void mr_channel_answer_free(struct mr_channel_answer **a);

struct mr_channel_append {
    struct mr_str channel;
    const struct mr_str *values;
    size_t count;
    uint32_t entries_max; /* 0: as it is */
    struct mr_str token;  /* of this append; with `is_again` one that is there already is found */
    bool is_again;        /* an earlier try may have come through */
    uint64_t time_ns;
};

int mr_channel_append(
    struct mr_redis *r, const struct mr_channel_append *append, mr_channel_fn fn, void *ctx);
/* `after_id`: "": from the beginning; "$": nothing but the last id. */
int mr_channel_read(struct mr_redis *r, struct mr_str channel, struct mr_str after_id,
    uint32_t entries_max, mr_channel_fn fn, void *ctx);
int mr_channel_list(struct mr_redis *r, mr_channel_fn fn, void *ctx);

/* "<ms>-<n>"? */
bool mr_channel_id_is_good(struct mr_str id);
int mr_channel_id_cmp(struct mr_str a, struct mr_str b); /* of good ones; "" is before all */
