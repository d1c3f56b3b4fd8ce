/* The object store's core: what is told, field by field; tables that are used again and again and
 * have an end; and what comes in time. */
#include "tests/unit/objectstore/rig.h"

static struct mr_ostore_info info_of(struct world *w, mr_object_id id)
{
    struct mr_ostore_info info;
    assert_int_equal(mr_ostore_stat(w->s, id, &info), MR_OK);
    return info;
}

static struct mr_store_stats stats_of(struct world *w)
{
    struct mr_store_stats stats;
    mr_ostore_stats(w->s, &stats);
    return stats;
}

static void hold(struct world *w, enum mr_ostore_event_type type, uint32_t client, mr_object_id id,
    enum mr_store_holder_kind kind, uint64_t key)
{
    act(w,
        (struct mr_ostore_event){.type = type, .client = client, .id = id, .holder = {kind, key}});
}

static void tick(struct world *w)
{
    w->now = mr_ostore_deadline(w->s);
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
}

static size_t objects_left(struct world *w, uint32_t *ticks)
{
    assert_true(++*ticks < 1000);
    return stats_of(w).objects;
}

static size_t count(const struct world *w, enum mr_ostore_effect_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < w->fx.n; i++)
        n += w->fx.items[i].type == type;
    return n;
}

static void persist(struct world *w, uint64_t request, mr_object_id id)
{
    act(w,
        (struct mr_ostore_event){.type = MR_OE_PERSIST, .client = 1, .request = request, .id = id});
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void a_seal_is_told_where_and_how_large(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    (void)grant(w, 2, 8 * MIB);
    uint32_t segment = grant(w, 1, 8 * MIB);
    assert_int_equal(segment, 2);
    w->now += 7;
    act(w, (struct mr_ostore_event){.type = MR_OE_SEAL,
               .client = 1,
               .id = id_of(1, 1),
               .segment = segment,
               .offset = 8192 + MR_EXTENT_HEAD,
               .bytes = 1000,
               .room = 2000,
               .flags = MR_SEAL_KEEP,
               .owner = {.job = {5}, .task = 6, .attempt = 7}});
    const struct mr_ostore_effect *add = effect(w, MR_OX_ADD), *x = effect(w, MR_OX_PUBLISH);
    assert_true(mr_object_id_eq(add->id, id_of(1, 1)) && mr_object_id_eq(x->id, id_of(1, 1)));
    assert_int_equal(x->object, add->object);
    assert_int_equal(x->segment, segment);
    assert_int_equal(x->offset, 8192 + MR_EXTENT_HEAD);
    assert_int_equal(x->bytes, 1000);
    struct mr_ostore_info info = info_of(w, id_of(1, 1));
    assert_true(mr_object_id_eq(info.id, id_of(1, 1)));
    assert_true(info.in_memory && !info.on_disk && !info.persisted);
    assert_int_equal(info.bytes, 1000);
    assert_int_equal(info.segment, segment);
    assert_int_equal(info.offset, 8192 + MR_EXTENT_HEAD);
    assert_int_equal(info.pins, 1); /* it was to be kept */
    assert_true(mr_ostore_is_pinned(w->s, x->object) && !mr_ostore_is_pinned(w->s, 0));
    assert_int_equal(info.created, w->now);
    assert_int_equal(info.owner.job.v, 5);
    assert_int_equal(info.owner.task, 6);
    assert_int_equal(info.owner.attempt, 7);
    assert_int_equal(info.holders_count, 1);
    assert_int_equal(info.holders[0].kind, MR_HOLD_JOB);
    assert_int_equal(info.holders[0].key, 5);
    get(w, 2, 77, id_of(1, 1), 0, 0);
    x = effect(w, MR_OX_GOT);
    assert_int_equal(x->client, 2);
    assert_int_equal(x->request, 77);
    assert_int_equal(x->segment, segment);
    assert_int_equal(x->offset, 8192 + MR_EXTENT_HEAD);
    assert_int_equal(x->bytes, 1000);
    assert_int_equal(x->object, add->object);
    assert_int_equal(x->flags, 0);
    assert_true(mr_object_id_eq(x->id, id_of(1, 1)));
}

static void what_there_is_is_counted(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    uint32_t segment = grant(w, 1, 8 * MIB), mine = grant(w, 9, 16 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    get(w, 1, 1, id_of(50, 1), MR_SECOND, 3);
    assert_int_equal(effect(w, MR_OX_PULL)->object, 2);
    seal(w, 9, id_of(50, 1), mine, 0, 5000, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->flags, MR_OSTORE_PULLED);
    act(w, (struct mr_ostore_event){.type = MR_OE_RECOVERED, .id = id_of(7, 7), .bytes = 300});
    struct mr_store_stats stats = stats_of(w);
    assert_int_equal(stats.memory_bytes_max, 64 * MIB);
    assert_int_equal(stats.memory_bytes, 24 * MIB);
    assert_int_equal(stats.object_bytes, 6000);
    assert_int_equal(stats.objects, 3);
    assert_int_equal(stats.objects_max, config.objects_max);
    assert_int_equal(stats.clients, 2);
    assert_int_equal(stats.segments, 2);
    assert_int_equal(stats.pulls, 1);
    assert_int_equal(stats.pulled_bytes, 5000);
    assert_int_equal(stats.objects_spilled, 1);
    assert_int_equal(stats.spilled_bytes, 300);
    assert_int_equal(stats.persisted_bytes, 300);
    assert_int_equal(mr_ostore_objects_away(w->s), 1);
    assert_false(mr_ostore_is_writing(w->s));
    persist(w, 4, id_of(1, 1));
    assert_true(mr_ostore_is_writing(w->s));
    act(w, (struct mr_ostore_event){
               .type = MR_OE_WRITTEN, .id = id_of(1, 1), .flags = MR_OSTORE_PERSISTED});
    assert_int_equal(stats_of(w).written_bytes, 1000);
    assert_int_equal(stats_of(w).persisted_bytes, 1300);
    get(w, 1, 5, id_of(7, 7), MR_SECOND, 0);
    const struct mr_ostore_effect *x = effect(w, MR_OX_RESTORE);
    assert_int_equal(x->bytes, 300);
    assert_true(mr_object_id_eq(x->id, id_of(7, 7)));
    seal(w, 9, id_of(7, 7), mine, MIB, 300, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->flags, 0); /* its own, from its disk */
    stats = stats_of(w);
    assert_int_equal(stats.restores, 1);
    assert_int_equal(stats.read_bytes, 300);
    assert_int_equal(stats.spilled_bytes, 0);
    assert_int_equal(mr_ostore_objects_away(w->s), 0);
}

static void objects_are_listed_in_the_order_in_which_they_came(void **state)
{
    struct world *w = *state;
    struct mr_ostore_info page[4];
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    for (uint64_t n = 1; n <= 6; n++)
        seal(w, 1, id_of(1, n), segment, n * 4096, 100, 5);
    for (uint64_t n = 2; n <= 3; n++) { /* their places are used again */
        unhold(w, 1, id_of(1, n), 5);
        evicted(w, MR_OK);
    }
    for (uint64_t n = 7; n <= 8; n++)
        seal(w, 1, id_of(1, n), segment, n * 4096, 100, 5);
    get(w, 1, 1, id_of(1, 99), MR_SECOND, 0); /* only waited for */
    static const uint64_t expected[] = {1, 4, 5, 6, 7, 8};
    uint64_t after = 0;
    size_t seen = 0;
    for (size_t n; (n = mr_ostore_page(w->s, after, page, 4)); after = page[n - 1].sequence)
        for (size_t i = 0; i < n; i++) {
            assert_true(seen < MR_ARRAY_LEN(expected));
            assert_int_equal(page[i].id.number, expected[seen++]);
        }
    assert_int_equal(seen, MR_ARRAY_LEN(expected));
    assert_int_equal(mr_ostore_page(w->s, 0, page, 0), 0);
}

static void some_holders_are_shown_and_all_counted(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 5);
    get(w, 1, 2, id_of(1, 1), 0, 0); /* a pin is no holder */
    for (uint64_t job = 6; job <= 15; job++)
        hold(w, MR_OE_HOLD, 1, id_of(1, 1), MR_HOLD_JOB, job);
    hold(w, MR_OE_HOLD, 1, id_of(1, 1), MR_HOLD_JOB, 6); /* once more is no second holder */
    struct mr_ostore_info info = info_of(w, id_of(1, 1));
    assert_int_equal(info.holders_count, 11);
    for (uint32_t i = 0; i < MR_OSTORE_HOLDERS_SHOWN; i++)
        assert_int_equal(info.holders[i].kind, MR_HOLD_JOB);
    unhold(w, 1, id_of(1, 1), 6);
    assert_int_equal(info_of(w, id_of(1, 1)).holders_count, 10);
    unhold(w, 1, id_of(1, 1), 0); /* all jobs */
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_ENOENT);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void rows_are_used_again(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t client = 100 + i;
        join(w, client);
        uint32_t segment = grant(w, client, 8 * MIB);
        assert_int_equal(segment, i + 1);
        seal(w, client, id_of(client, 1), segment, 0, 1000, 5);
        hold(w, MR_OE_HOLD, 2, id_of(client, 1), MR_HOLD_CLIENT, 0);
        get(w, 1, 2 * i, id_of(client, 1), 0, 0);
        assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
        get(w, 2, 2 * i + 1, id_of(client, 2), MR_SECOND, 0); /* of what never comes */
        act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(client, 1)});
        unhold(w, 1, id_of(client, 1), 5);
        hold(w, MR_OE_UNHOLD, 2, id_of(client, 1), MR_HOLD_CLIENT, 0);
        evicted(w, MR_OK);
        act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = client});
        assert_int_equal(effect(w, MR_OX_CLOSE)->segment, segment);
        for (uint32_t ticks = 0; objects_left(w, &ticks);)
            tick(w);
    }
    assert_int_equal(stats_of(w).segments, 0);
    assert_int_equal(stats_of(w).memory_bytes, 0);
}

static void too_many_gets_that_wait_are_refused(void **state)
{
    struct world *w = *state;
    join(w, 1);
    for (uint32_t i = 1; i < config.waiters_max; i++) {
        get(w, 1, i, id_of(1, 1 + i % 7), MR_SECOND + i, 0);
        assert_null(effect(w, MR_OX_GOT));
    }
    get(w, 1, 1000, id_of(1, 1), MR_SECOND, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELIMIT);
    get(w, 1, 1001, id_of(1, 50), MR_SECOND, 0); /* of what nobody waits for: it leaves no trace */
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELIMIT);
    assert_non_null(effect(w, MR_OX_REMOVE));
    size_t answers = 0;
    for (uint32_t ticks = 0; objects_left(w, &ticks);) {
        tick(w);
        answers += count(w, MR_OX_GOT);
    }
    assert_int_equal(answers, config.waiters_max - 1);
}

static void too_many_holders_and_pins_are_refused(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 1);
    for (uint64_t job = 2; job < config.links_max; job++)
        hold(w, MR_OE_HOLD, 1, id_of(1, 1), MR_HOLD_JOB, job);
    assert_int_equal(info_of(w, id_of(1, 1)).holders_count, config.links_max - 1);
    hold(w, MR_OE_HOLD, 1, id_of(1, 1), MR_HOLD_JOB, 99999);
    assert_int_equal(info_of(w, id_of(1, 1)).holders_count, config.links_max - 1);
    get(w, 1, 4, id_of(1, 1), 0, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELIMIT);
    unhold(w, 1, id_of(1, 1), 7);
    get(w, 1, 5, id_of(1, 1), 0, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
}

static void too_many_segments_are_refused(void **state)
{
    struct world *w = *state;
    join(w, 1);
    for (uint32_t i = 1; i < config.segments_max; i++)
        assert_int_equal(grant(w, 1, 4096), i);
    assert_int_equal(grant(w, 1, 4096), 0);
    assert_int_equal(effect(w, MR_OX_GRANTED)->err, MR_ELIMIT);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = 3});
    assert_int_equal(grant(w, 1, 4096), config.segments_max); /* a number is not used twice */
}

/* ---- grants ---------------------------------------------------------------------------------- */

static const struct mr_ostore_effect *ask(
    struct world *w, uint32_t client, uint64_t bytes, uint64_t least, mr_duration timeout)
{
    static uint64_t request = 1000;
    act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
               .client = client,
               .request = ++request,
               .bytes = bytes,
               .room = least,
               .timeout = timeout});
    const struct mr_ostore_effect *x = effect(w, MR_OX_GRANTED);
    if (x && x->request == request) assert_int_equal(x->client, client);
    return x && x->request == request ? x : NULL;
}

static void a_grant_is_of_whole_pages_and_at_most_what_there_is(void **state)
{
    struct world *w = *state;
    join(w, 1);
    assert_int_equal(ask(w, 1, 5000, 5000, 0)->bytes, 8192); /* at once, though it does not wait */
    assert_int_equal(ask(w, 1, 128 * MIB, 100, 0)->bytes, 64 * MIB - 8192);
    assert_int_equal(ask(w, 1, 4096, 4096, 0)->err, MR_ELIMIT);
    assert_null(ask(w, 1, 4096, 4096, MR_SECOND));
    assert_int_equal(ask(w, 1, 4096, 0, MR_SECOND)->err, MR_ETOOBIG);
    assert_int_equal(ask(w, 1, 4096, 4097, MR_SECOND)->err, MR_ETOOBIG);
    assert_int_equal(ask(w, 1, 65 * MIB, 65 * MIB, MR_SECOND)->err, MR_ETOOBIG);
    assert_null(ask(w, 4, 4096, 4096, MR_SECOND)); /* nobody */
}

static void a_grant_that_waits_too_long_is_refused(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    seal(w, 2, id_of(2, 1), ask(w, 2, 64 * MIB, 64 * MIB, 0)->segment, 0, 60 * MIB, 5);
    get(w, 2, 3, id_of(2, 1), 0, 0);
    assert_null(ask(w, 1, 4096, 4096, 100 * MR_MS));
    assert_null(ask(w, 1, 8192, 8192, 300 * MR_MS));
    mr_time begin = w->now;
    for (uint32_t refused = 0, ticks = 0; refused < 2;) {
        assert_true(++ticks < 1000);
        tick(w);
        const struct mr_ostore_effect *x = effect(w, MR_OX_GRANTED);
        if (!x) continue;
        assert_int_equal(x->err, MR_ELIMIT);
        assert_int_equal(x->bytes, refused ? 8192 : 4096);
        assert_int_equal(w->now, begin + (refused ? 300 : 100) * MR_MS);
        refused++;
    }
}

static void a_cancelled_grant_is_not_answered(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = ask(w, 1, 64 * MIB, 64 * MIB, 0)->segment;
    for (uint64_t request = 1; request <= 3; request++)
        act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
                   .client = 1,
                   .request = request,
                   .bytes = 4096,
                   .room = 4096,
                   .timeout = MR_SECOND});
    act(w, (struct mr_ostore_event){.type = MR_OE_CANCEL, .client = 2, .request = 1});
    act(w, (struct mr_ostore_event){.type = MR_OE_CANCEL, .client = 1, .request = 2});
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = segment});
    assert_int_equal(count(w, MR_OX_GRANTED), 2);
    for (size_t i = 0; i < w->fx.n; i++)
        if (w->fx.items[i].type == MR_OX_GRANTED) assert_int_not_equal(w->fx.items[i].request, 2);
}

static void so_many_grants_wait_and_no_more(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    (void)ask(w, 1, 64 * MIB, 64 * MIB, 0);
    for (uint32_t i = 0; i < 1024; i++)
        assert_null(ask(w, 1 + i % 2, 4096, 4096, MR_SECOND));
    assert_int_equal(ask(w, 1, 4096, 4096, MR_SECOND)->err, MR_ELIMIT);
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 2});
    assert_null(ask(w, 1, 4096, 4096, MR_SECOND));
}

/* ---- persist --------------------------------------------------------------------------------- */

static int done(struct world *w)
{
    const struct mr_ostore_effect *x = effect(w, MR_OX_DONE);
    return x ? x->err : 1;
}

static void what_cannot_be_persisted_is_said_at_once(void **state)
{
    struct world *w = *state;
    join(w, 1);
    persist(w, 1, id_of(1, 1));
    assert_int_equal(done(w), MR_ENOENT);
    get(w, 1, 2, id_of(1, 1), MR_SECOND, 0);
    persist(w, 3, id_of(1, 1)); /* only waited for */
    assert_int_equal(done(w), MR_ENOENT);
    assert_int_equal(effect(w, MR_OX_DONE)->request, 3);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 100, 5);
    unhold(w, 1, id_of(1, 1), 5); /* pinned by who got it: deleted, not gone */
    persist(w, 4, id_of(1, 1));
    assert_int_equal(done(w), MR_ELOST);
}

/* Whether it stays in memory is known in a moment. */
static void what_is_about_to_leave_memory_is_persisted_a_moment_later(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), ask(w, 1, 64 * MIB, 64 * MIB, 0)->segment, 0, 50 * MIB, 5);
    assert_null(ask(w, 1, 4096, 4096, MR_SECOND));
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1});
    assert_non_null(effect(w, MR_OX_WRITE));
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id_of(1, 1)});
    uint32_t object = effect(w, MR_OX_EVICT)->object;
    persist(w, 1, id_of(1, 1));
    assert_int_equal(done(w), MR_EAGAIN);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_EVICT_DONE, .object = object, .err = MR_EAGAIN}); /* it is pinned */
    persist(w, 2, id_of(1, 1));
    assert_non_null(effect(w, MR_OX_WRITE)); /* the file becomes one that stays */
}

/* No store has the object that was to be pulled. A client that gets the object may wait until a
 * task makes it. A persist has nothing to write and is answered. */
static void a_persist_of_what_no_store_has_is_answered(void **state)
{
    struct world *w = *state;
    join(w, 1);
    get(w, 1, 1, id_of(50, 1), MR_SECOND, MR_OSTORE_SEEK);
    persist(w, 2, id_of(50, 1));
    assert_int_equal(done(w), 1);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(50, 1), .err = MR_EAGAIN});
    assert_int_equal(done(w), MR_ENOENT);
    assert_int_equal(effect(w, MR_OX_DONE)->request, 2);
    assert_null(effect(w, MR_OX_GOT));
    tick(w);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ETIMEOUT);
    assert_int_equal(stats_of(w).objects, 0);
    get(w, 1, 3, id_of(50, 1), 0, MR_OSTORE_SEEK);
    assert_int_equal(stats_of(w).objects, 0);
}

static void a_persist_during_a_pull_is_answered_with_it(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    uint32_t segment = grant(w, 9, 8 * MIB);
    for (uint64_t n = 1; n <= 2; n++) {
        get(w, 1, n, id_of(50, n), MR_SECOND, 3);
        persist(w, 10 + n, id_of(50, n));
        assert_null(effect(w, MR_OX_WRITE));
    }
    seal(w, 9, id_of(50, 1), segment, 0, 1000, 0);
    assert_int_equal(effect(w, MR_OX_WRITE)->flags, MR_OSTORE_PERSISTED);
    assert_int_equal(effect(w, MR_OX_WRITE)->bytes, 1000);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_WRITTEN, .id = id_of(50, 1), .flags = MR_OSTORE_PERSISTED});
    assert_int_equal(done(w), MR_OK);
    assert_int_equal(effect(w, MR_OX_DONE)->request, 11);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(50, 2), .err = MR_EAWAY});
    assert_int_equal(done(w), MR_EAWAY);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_EAWAY);
}

/* Who asked for it has gone: somebody else may ask for a while. */
static void a_copy_that_comes_too_late_stays_for_a_while(void **state)
{
    struct world *w = *state;
    uint32_t ticks = 0;
    join(w, 1);
    join(w, 9);
    uint32_t segment = grant(w, 9, 8 * MIB);
    w->now += 2 * config.orphan_ns;
    get(w, 1, 1, id_of(50, 1), MR_SECOND, 3);
    while (!count(w, MR_OX_GOT)) {
        assert_int_equal(objects_left(w, &ticks), 1);
        tick(w);
    }
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ETIMEOUT);
    seal(w, 9, id_of(50, 1), segment, 0, 1000, 0);
    mr_time came = w->now;
    assert_true(info_of(w, id_of(50, 1)).in_memory);
    while (!count(w, MR_OX_EVICT)) {
        assert_int_equal(objects_left(w, &ticks), 1);
        tick(w);
    }
    assert_true(w->now >= came + config.orphan_ns);
    evicted(w, MR_OK);
    assert_int_equal(stats_of(w).objects, 0);
}

static void a_failed_write_is_the_answer_and_the_next_persist_tries_again(void **state)
{
    struct world *w = *state;
    join(w, 1);
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 5);
    persist(w, 1, id_of(1, 1));
    persist(w, 2, id_of(1, 1)); /* one write for both */
    assert_null(effect(w, MR_OX_WRITE));
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id_of(1, 1), .err = MR_EIO});
    assert_int_equal(count(w, MR_OX_DONE), 2);
    assert_int_equal(done(w), MR_EIO);
    assert_int_equal(mr_ostore_disk(w->s).write_failures, 1);
    assert_false(mr_ostore_disk(w->s).is_full);
    assert_false(info_of(w, id_of(1, 1)).on_disk);
    persist(w, 3, id_of(1, 1));
    assert_non_null(effect(w, MR_OX_WRITE));
    act(w, (struct mr_ostore_event){
               .type = MR_OE_WRITTEN, .id = id_of(1, 1), .flags = MR_OSTORE_PERSISTED});
    assert_int_equal(done(w), MR_OK);
    assert_true(info_of(w, id_of(1, 1)).on_disk && info_of(w, id_of(1, 1)).persisted);
    persist(w, 4, id_of(1, 1)); /* it is there */
    assert_int_equal(done(w), MR_OK);
    assert_null(effect(w, MR_OX_WRITE));
}

/* ---- death ----------------------------------------------------------------------------------- */

/* A job hears once that an object of it is gone, whether it was in memory or on disk. */
static void a_loss_is_told_once(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    struct mr_ostore_event kill = {
        .type = MR_OE_DELETE, .client = 1, .id = id_of(1, 1), .flags = MR_OSTORE_FORCE};
    seal(w, 1, id_of(1, 1), segment, 0, 100, 5);
    act(w, kill);
    assert_int_equal(count(w, MR_OX_LOST), 1);
    evicted(w, MR_OK);
    assert_int_equal(count(w, MR_OX_LOST), 0);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_RECOVERED, .id = id_of(7, 7), .bytes = 9, .flags = 2});
    hold(w, MR_OE_HOLD, 1, id_of(7, 7), MR_HOLD_JOB, 5);
    get(w, 1, 1, id_of(7, 7), MR_SECOND, 0);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(7, 7), .err = MR_ELOST});
    assert_int_equal(count(w, MR_OX_LOST), 1);
    assert_true(mr_object_id_eq(effect(w, MR_OX_LOST)->id, id_of(7, 7)));
    assert_true(mr_object_id_eq(effect(w, MR_OX_ERASE)->id, id_of(7, 7)));
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELOST);
    assert_int_equal(stats_of(w).persisted_bytes, 0);
}

/* Only what the scheduler itself held is in doubt when another one comes. */
static void what_workers_hold_is_not_asked_for_again(void **state)
{
    struct world *w = *state;
    mr_object_id ids[8];
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    for (uint64_t n = 1; n <= 3; n++)
        seal(w, 1, id_of(1, n), segment, n * 4096, 100, 5);
    hold(w, MR_OE_HOLD, 1, id_of(1, 2), MR_HOLD_JOB, 0);
    hold(w, MR_OE_HOLD, 1, id_of(1, 3), MR_HOLD_NAME, 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_ASK_AGAIN});
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 8), 1);
    assert_true(mr_object_id_eq(ids[0], id_of(1, 2)));
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 0), 0);
}

/* What a client read lately stays when something has to leave. */
static void what_was_used_lately_leaves_last(void **state)
{
    struct world *w = *state;
    uint32_t objects[5];
    join(w, 1);
    for (uint64_t n = 1; n <= 4; n++) {
        seal(w, 1, id_of(1, n), ask(w, 1, 16 * MIB, 16 * MIB, 0)->segment, 0, 13 * MIB, 5);
        objects[n] = effect(w, MR_OX_PUBLISH)->object;
    }
    for (uint32_t n = 1; n <= 2; n++)
        act(w, (struct mr_ostore_event){.type = MR_OE_USED, .object = objects[n]});
    act(w, (struct mr_ostore_event){.type = MR_OE_USED, .object = 0});
    act(w, (struct mr_ostore_event){.type = MR_OE_USED, .object = 77});
    assert_null(ask(w, 1, 8 * MIB, 8 * MIB, MR_SECOND));
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1}); /* it has none */
    assert_true(mr_object_id_eq(effect(w, MR_OX_WRITE)->id, id_of(1, 3)));
}

/* Several wait for several things; the deadline is always that of the first. */
static void each_waits_as_long_as_it_said(void **state)
{
    struct world *w = *state;
    join(w, 1);
    mr_time begin = w->now;
    static const uint32_t waits[] = {500, 100, 300, 200, 400};
    for (uint32_t i = 0; i < 5; i++)
        get(w, 1, 100 + i, id_of(1, 1 + i % 2), waits[i] * MR_MS, 0);
    for (uint32_t i = 1; i <= 5; i++) {
        assert_int_equal(mr_ostore_deadline(w->s), begin + i * 100 * MR_MS);
        tick(w);
        assert_int_equal(count(w, MR_OX_GOT), 1);
        assert_int_equal(waits[effect(w, MR_OX_GOT)->request - 100], i * 100);
    }
    assert_true(mr_ostore_deadline(w->s) == MR_NEVER);
    get(w, 1, 1, id_of(1, 9), 0, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_EAGAIN);
    get(w, 1, 1, (mr_object_id){0, 0}, MR_SECOND, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_EINVAL);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_seal_is_told_where_and_how_large),
        T(what_there_is_is_counted),
        T(objects_are_listed_in_the_order_in_which_they_came),
        T(some_holders_are_shown_and_all_counted),
        T(rows_are_used_again),
        T(too_many_gets_that_wait_are_refused),
        T(too_many_holders_and_pins_are_refused),
        T(too_many_segments_are_refused),
        T(a_grant_is_of_whole_pages_and_at_most_what_there_is),
        T(a_grant_that_waits_too_long_is_refused),
        T(a_cancelled_grant_is_not_answered),
        T(so_many_grants_wait_and_no_more),
        T(what_cannot_be_persisted_is_said_at_once),
        T(a_persist_of_what_no_store_has_is_answered),
        T(what_is_about_to_leave_memory_is_persisted_a_moment_later),
        T(a_persist_during_a_pull_is_answered_with_it),
        T(a_copy_that_comes_too_late_stays_for_a_while),
        T(a_failed_write_is_the_answer_and_the_next_persist_tries_again),
        T(a_loss_is_told_once),
        T(what_workers_hold_is_not_asked_for_again),
        T(what_was_used_lately_leaves_last),
        T(each_waits_as_long_as_it_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
