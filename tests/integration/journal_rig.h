/* A redis-server and a journal for a test, and what the journal's callbacks report. */
#pragma once

#include "store/meta/journal/journal.h"
#include "store/meta/redis.h"
#include "tests/integration/redis_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct fixture {
    struct redis_rig server;
    atomic_ullong acked;
    pthread_t acker; /* the thread that acknowledged last; written before `acked` */
    atomic_uint rewinds;
    atomic_uint refused;
    atomic_int here;
    atomic_uint told; /* how many times on_state was called */
    char why[200];    /* reason of the last report that Redis is away; written before `here` */
    uint64_t loaded;
    char last[64];
};

static inline int setup(void **state)
{
    struct fixture *f = mr_alloc(sizeof *f);
    redis_open(&f->server, true);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    redis_close(&f->server);
    mr_release(f);
    return 0;
}

static inline void on_acked(void *ctx, uint64_t sequence)
{
    ((struct fixture *)ctx)->acker = pthread_self();
    atomic_store(&((struct fixture *)ctx)->acked, sequence);
}

static inline void on_rewind(void *ctx)
{
    atomic_fetch_add(&((struct fixture *)ctx)->rewinds, 1);
}

static inline void on_refused(void *ctx, uint32_t epoch)
{
    atomic_store(&((struct fixture *)ctx)->refused, epoch);
}

static inline void on_state(void *ctx, bool here, const char *why)
{
    struct fixture *f = ctx;
    if (!here) (void)snprintf(f->why, sizeof f->why, "%s", why);
    atomic_fetch_add(&f->told, 1);
    atomic_store(&f->here, here);
}

static inline int on_record(void *ctx, uint64_t sequence, struct mr_str record)
{
    struct fixture *f = ctx;
    f->loaded++;
    (void)sequence;
    (void)snprintf(f->last, sizeof f->last, "%.*s", MR_STR_ARG(record));
    return MR_OK;
}

static inline struct mr_journal *journal_open(struct fixture *f, struct mr_journal_info *info)
{
    const struct mr_journal_config config = {.address = f->server.address,
        .on_acked = on_acked,
        .on_state = on_state,
        .on_rewind = on_rewind,
        .on_refused = on_refused,
        .ctx = f};
    struct mr_journal *j = NULL;
    struct mr_error e = {0};
    f->loaded = 0;
    int err = mr_journal_open(&config, 10 * MR_SECOND, on_record, &j, info, &e);
    if (err) (void)fprintf(stderr, "%s\n", e.text);
    assert_int_equal(err, MR_OK);
    return j;
}

static inline void append(struct mr_journal *j, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i <= to; i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "record %u", (unsigned)i);
        mr_journal_append(j, i, mr_str_of(text, (size_t)n));
    }
    mr_journal_flush(j);
}

static inline void wait_acked(struct fixture *f, uint64_t sequence)
{
    for (int i = 0; i < 5000 && atomic_load(&f->acked) < sequence; i++)
        nap();
    assert_int_equal(atomic_load(&f->acked), sequence);
}

/* Sends one command over a connection of its own. */
static inline void command(struct fixture *f, size_t argc, const struct mr_str *argv)
{
    const struct mr_redis_config config = {.address = f->server.address};
    struct mr_redis *r = NULL;
    struct mr_reply *reply = NULL;
    assert_int_equal(mr_redis_open(&config, &r, NULL), MR_OK);
    assert_int_equal(mr_redis_wait(r, 10 * MR_SECOND), MR_OK);
    assert_int_equal(mr_redis_call(r, argc, argv, &reply, NULL), MR_OK);
    mr_reply_free(&reply);
    mr_redis_close(&r);
}

static inline int ignore_record(void *ctx, uint64_t sequence, struct mr_str record)
{
    (void)ctx;
    (void)sequence;
    (void)record;
    return MR_OK;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
