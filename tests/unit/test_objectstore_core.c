/* The object store's core: single acts, and a random simulation with a small world around it. */
#include "base/rng.h"
#include "tests/unit/objectstore_rig.h"

static void a_get_before_the_seal_is_answered_by_the_seal(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    get(w, 2, 77, id_of(1, 1), MR_SECOND, 0);
    assert_null(effect(w, MR_OX_GOT));
    uint32_t segment = grant(w, 1, 8 * MIB);
    assert_true(segment);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    assert_non_null(effect(w, MR_OX_PUBLISH));
    const struct mr_ostore_effect *got = effect(w, MR_OX_GOT);
    assert_non_null(got);
    assert_int_equal(got->request, 77);
    assert_int_equal(got->err, MR_OK);
    assert_int_equal(got->bytes, 1000);
}

static void a_get_of_what_never_comes_times_out(void **state)
{
    struct world *w = *state;
    join(w, 1);
    get(w, 1, 5, id_of(1, 1), MR_SECOND, 0);
    assert_int_equal(mr_ostore_deadline(w->s), w->now + MR_SECOND);
    w->now += MR_SECOND;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ETIMEOUT);
    assert_non_null(effect(w, MR_OX_REMOVE));
}

static void one_pull_is_under_way_however_many_ask(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    get(w, 1, 1, id_of(50, 1), MR_SECOND, 3);
    assert_int_equal(effect(w, MR_OX_PULL)->source, 3);
    get(w, 1, 2, id_of(50, 1), MR_SECOND, 3);
    assert_null(effect(w, MR_OX_PULL));
    uint32_t segment = grant(w, 9, 8 * MIB);
    seal(w, 9, id_of(50, 1), segment, 0, 5000, 0);
    size_t answers = 0;
    for (size_t i = 0; i < w->fx.n; i++)
        answers += w->fx.items[i].type == MR_OX_GOT && !w->fx.items[i].err;
    assert_int_equal(answers, 2);
}

static void what_nobody_has_yet_is_waited_for_after_the_search(void **state)
{
    struct world *w = *state;
    join(w, 1);
    get(w, 1, 1, id_of(1, 1), 10 * MR_SECOND, MR_OSTORE_SEEK);
    assert_int_equal(effect(w, MR_OX_PULL)->source, MR_OSTORE_SEEK);
    struct mr_ostore_event unknown = {
        .type = MR_OE_FETCH_FAILED, .id = id_of(1, 1), .err = MR_EAGAIN};
    act(w, unknown);
    assert_null(effect(w, MR_OX_GOT));
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 5000, 5);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
}

static void a_second_source_is_tried_when_the_first_fails(void **state)
{
    struct world *w = *state;
    join(w, 1);
    get(w, 1, 1, id_of(1, 1), 10 * MR_SECOND, MR_OSTORE_SEEK);
    get(w, 1, 2, id_of(1, 1), 10 * MR_SECOND, 4);
    assert_null(effect(w, MR_OX_PULL)); /* one at a time */
    struct mr_ostore_event unknown = {
        .type = MR_OE_FETCH_FAILED, .id = id_of(1, 1), .err = MR_EAGAIN};
    act(w, unknown);
    assert_int_equal(effect(w, MR_OX_PULL)->source, 4);
    unknown.err = MR_EAWAY;
    act(w, unknown);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_EAWAY);
    assert_null(effect(w, MR_OX_PULL));
}

static void the_last_holder_frees_the_object_unless_it_is_pinned(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    get(w, 1, 2, id_of(1, 1), 0, 0); /* the store pins it for the client */
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
    unhold(w, 1, id_of(1, 1), 5);
    assert_null(effect(w, MR_OX_EVICT));
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(1, 1)});
    assert_int_equal(effect(w, MR_OX_EVICT)->flags, 1);
    evicted(w, MR_EAGAIN); /* some page still names it */
    w->now = mr_ostore_deadline(w->s);
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    evicted(w, MR_OK);
    assert_non_null(effect(w, MR_OX_FREED));
    assert_non_null(effect(w, MR_OX_REMOVE));
}

static void a_held_object_is_deleted_only_by_force(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    struct mr_ostore_event ev = {.type = MR_OE_DELETE, .client = 1, .id = id_of(1, 1)};
    act(w, ev);
    assert_int_equal(effect(w, MR_OX_DONE)->err, MR_ESTATE);
    assert_int_equal(effect(w, MR_OX_DONE)->holder.kind, MR_HOLD_JOB);
    assert_int_equal(effect(w, MR_OX_DONE)->holder.key, 5);
    ev.flags = MR_OSTORE_FORCE;
    act(w, ev);
    assert_int_equal(effect(w, MR_OX_DONE)->err, MR_OK);
    assert_non_null(effect(w, MR_OX_EVICT));
}

static void a_dead_client_takes_only_what_it_held_alone(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 0);    /* its own */
    seal(w, 1, id_of(1, 2), segment, 8192, 1000, 5); /* a job's */
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 1});
    evicted(w, MR_OK);
    struct mr_ostore_info info;
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_ENOENT);
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 2), &info), MR_OK);
    unhold(w, 2, id_of(1, 2), 5);
    evicted(w, MR_OK);
    assert_int_equal(effect(w, MR_OX_CLOSE)->segment, segment); /* empty and without a writer */
}

static void what_only_a_dead_client_vouches_for_is_offered_then_freed(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    seal(w, 1, id_of(1, 2), segment, 8192, 1000, 5);
    mr_object_id ids[4];
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 4), 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 1});
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 4), 2);
    for (uint64_t n = 1; n <= 2; n++)
        act(w, (struct mr_ostore_event){.type = MR_OE_OFFERED, .id = id_of(1, n)});
    act(w, (struct mr_ostore_event){
               .type = MR_OE_HOLD, .id = id_of(1, 2), .holder = {MR_HOLD_JOB, 0}}); /* claimed */
    w->now += config.orphan_ns + 2 * MR_SECOND;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    evicted(w, MR_OK);
    struct mr_ostore_info info;
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_ENOENT);
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 2), &info), MR_OK);
}

static void writers_are_held_back_before_the_places_are_gone(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    uint32_t made = 0;
    while (mr_ostore_objects_left(w->s)) {
        made++;
        seal(w, 1, id_of(1, made), segment, made * 1024, 100, 5);
    }
    assert_int_equal(made, config.objects_max - 1 - config.objects_max / 8);
    for (; made < config.objects_max - 1; made++) /* these were on their way */
        seal(w, 1, id_of(1, made + 1), segment, (made + 1) * 1024, 100, 5);
    assert_null(effect(w, MR_OX_REFUSED));
    seal(w, 1, id_of(1, 9999), segment, 4 * MIB, 100, 5);
    assert_true(mr_object_id_eq(effect(w, MR_OX_REFUSED)->id, id_of(1, 9999)));
    assert_true(mr_object_id_eq(effect(w, MR_OX_LOST)->id, id_of(1, 9999)));
    assert_non_null(effect(w, MR_OX_FREED));
    struct mr_store_stats stats;
    mr_ostore_stats(w->s, &stats);
    assert_int_equal(stats.seals_refused, 1);
    for (uint64_t n = 1; n <= 60; n++) {
        unhold(w, 1, id_of(1, n), 5);
        evicted(w, MR_OK);
    }
    assert_true(mr_ostore_objects_left(w->s) > 0);
}

static void pinned_bytes_are_those_of_pinned_objects(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    struct mr_store_stats stats;
    for (uint64_t request = 1; request <= 2; request++) {
        get(w, 1, request, id_of(1, 1), 0, 0);
        mr_ostore_stats(w->s, &stats);
        assert_int_equal(stats.pinned_bytes, 1000);
    }
    for (int left = 1; left >= 0; left--) {
        act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(1, 1)});
        mr_ostore_stats(w->s, &stats);
        assert_int_equal(stats.pinned_bytes, left * 1000);
    }
}

static void a_scheduler_hears_of_what_jobs_lose(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    seal(w, 1, id_of(1, 2), segment, 8192, 1000, 5);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_DELETE, .client = 1, .id = id_of(1, 1), .flags = MR_OSTORE_FORCE});
    assert_true(mr_object_id_eq(effect(w, MR_OX_LOST)->id, id_of(1, 1)));
    unhold(w, 1, id_of(1, 2), 0); /* every job lets go: nothing is lost */
    assert_null(effect(w, MR_OX_LOST));
    assert_non_null(effect(w, MR_OX_EVICT));
}

/* Two have pinned half of the memory each, and want more. */
static void when_nothing_can_leave_the_youngest_lets_go(void **state)
{
    struct world *w = *state;
    for (uint32_t c = 1; c <= 2; c++) {
        join(w, c);
        uint32_t segment = grant(w, c, 32 * MIB);
        seal(w, c, id_of(c, 1), segment, 0, 28 * MIB, 5);
        get(w, c, 7, id_of(c, 1), 0, 0); /* the store pins it for the client */
    }
    for (uint32_t c = 1; c <= 2; c++)
        act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
                   .client = c,
                   .request = 70 + c,
                   .bytes = 8 * MIB,
                   .room = 8 * MIB,
                   .timeout = 60 * MR_SECOND});
    mr_time start = w->now;
    const struct mr_ostore_effect *x = NULL;
    while (!(x = effect(w, MR_OX_GRANTED)) && w->now < start + 10 * MR_SECOND) {
        w->now = mr_ostore_deadline(w->s);
        act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    }
    assert_non_null(x);
    assert_int_equal(x->err, MR_ELIMIT);
    assert_int_equal(x->client, 2);
    assert_true(w->now >= start + MR_SECOND && w->now <= start + 5 * MR_SECOND);
}

static void a_full_store_spills_the_least_used_and_restores_it(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    for (uint64_t n = 1; n <= 8; n++) {
        uint32_t segment = grant(w, 1, 8 * MIB);
        assert_true(segment);
        seal(w, 1, id_of(1, n), segment, 0, 6 * MIB, 5);
    }
    get(w, 1, 3, id_of(1, 1), 0, 0); /* pinned: must stay */
    assert_false(grant(w, 9, 8 * MIB));
    /* First everybody is asked for empty segments. */
    assert_int_equal(effect(w, MR_OX_RECLAIM)->client, 1);
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1});
    assert_null(effect(w, MR_OX_WRITE));
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 9});
    const struct mr_ostore_effect *x = effect(w, MR_OX_WRITE);
    assert_true(mr_object_id_eq(x->id, id_of(1, 2)));
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id_of(1, 2)});
    evicted(w, MR_OK);
    assert_non_null(effect(w, MR_OX_FREED));
    assert_non_null(effect(w, MR_OX_RECLAIM));
    uint32_t segment = effect(w, MR_OX_FREED)->segment;
    act(w, (struct mr_ostore_event){.type = MR_OE_RETURN, .client = 1, .segment = segment});
    assert_int_equal(effect(w, MR_OX_GRANTED)->client, 9);
    uint32_t mine = effect(w, MR_OX_GRANTED)->segment;
    get(w, 1, 4, id_of(1, 2), MR_SECOND, 0);
    assert_true(mr_object_id_eq(effect(w, MR_OX_RESTORE)->id, id_of(1, 2)));
    seal(w, 9, id_of(1, 2), mine, 0, 6 * MIB, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
}

static void nonsense_in_a_seal_changes_nothing(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    uint32_t segment = grant(w, 1, 8 * MIB);
    struct mr_ostore_event good = {.type = MR_OE_SEAL,
        .client = 1,
        .id = id_of(1, 1),
        .segment = segment,
        .offset = 64,
        .bytes = 1000,
        .room = 1064};
    struct mr_ostore_event bad[8];
    for (size_t i = 0; i < 8; i++)
        bad[i] = good;
    bad[0].offset = 63;
    bad[1].offset = UINT64_MAX;
    bad[2].bytes = UINT64_MAX;
    bad[3].room = UINT64_MAX;
    bad[4].room = 8 * MIB + 1;
    bad[5].segment = segment + 1;
    bad[6].client = 2;       /* not its segment */
    bad[7].id = id_of(2, 1); /* not its maker */
    for (size_t i = 0; i < 8; i++) {
        act(w, bad[i]);
        assert_null(effect(w, MR_OX_PUBLISH));
    }
    act(w, good);
    assert_non_null(effect(w, MR_OX_PUBLISH));
}

static void what_is_persisted_outlives_its_holders(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_PERSIST, .client = 1, .request = 3, .id = id_of(1, 1)});
    assert_null(effect(w, MR_OX_DONE));
    assert_int_equal(effect(w, MR_OX_WRITE)->flags, MR_OSTORE_PERSISTED);
    act(w, (struct mr_ostore_event){
               .type = MR_OE_WRITTEN, .id = id_of(1, 1), .flags = MR_OSTORE_PERSISTED});
    assert_int_equal(effect(w, MR_OX_DONE)->err, MR_OK);
    unhold(w, 1, id_of(1, 1), 5);
    struct mr_ostore_info info;
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_OK);
    assert_true(info.persisted);
    /* Once it has had a name it lives by its holders like any other. */
    struct mr_ostore_event name = {
        .type = MR_OE_HOLD, .id = id_of(1, 1), .holder = {MR_HOLD_NAME, 77}};
    act(w, name);
    name.type = MR_OE_UNHOLD;
    act(w, name);
    evicted(w, MR_OK);
    assert_non_null(effect(w, MR_OX_ERASE));
    assert_int_equal(mr_ostore_stat(w->s, id_of(1, 1), &info), MR_ENOENT);
}

/* ---- a random world ---------------------------------------------------------------------------*/

#define IDS 60
#define PENDING_MAX 4000

struct pending { /* what the world owes the core */
    struct mr_ostore_event ev;
};

struct sim {
    struct world *w;
    struct mr_rng rng;
    struct pending pending[PENDING_MAX];
    size_t pending_count;
    uint32_t segment_of[64]; /* by client slot: one segment each, 0 none */
    uint32_t owner[4096];    /* of segments */
    uint64_t bytes[4096];
    uint32_t cursor[4096]; /* next free offset; rooms are not reused in this world */
    uint64_t number[16];
    uint64_t requests;
    uint64_t answered; /* of GET, GRANT, DELETE and PERSIST */
    uint64_t cancelled;
    uint32_t clients[6];
    uint32_t next_client;
};

static void owe(struct sim *m, struct mr_ostore_event ev)
{
    if (m->pending_count < PENDING_MAX) m->pending[m->pending_count++].ev = ev;
}

static uint64_t below(struct sim *m, uint64_t n)
{
    return mr_rng_below(&m->rng, n);
}

static void sim_step(struct sim *m, struct mr_ostore_event ev);

static void sim_granted(struct sim *m, const struct mr_ostore_effect *x)
{
    m->answered++;
    if (x->err) return;
    assert_true(x->segment < 4096);
    m->owner[x->segment] = x->client;
    m->bytes[x->segment] = x->bytes;
    m->segment_of[x->client % 64] = x->segment;
}

/* Answers to what the core wants done, at once or some time later, well or badly. */
static void sim_effect(struct sim *m, const struct mr_ostore_effect *x)
{
    bool bad = mr_rng_below(&m->rng, 8) == 0;
    struct mr_ostore_event ev = {.client = x->client, .id = x->id, .object = x->object};
    switch (x->type) {
    case MR_OX_GRANTED: sim_granted(m, x); break;
    case MR_OX_GOT:
        m->answered++;
        ev.type = MR_OE_UNPIN;
        if (!x->err) owe(m, ev);
        break;
    case MR_OX_DONE: m->answered++; break;
    case MR_OX_RECLAIM:
        ev.type = MR_OE_RETURN;
        if (mr_rng_below(&m->rng, 2)) ev.segment = m->segment_of[x->client % 64];
        if (ev.segment) {
            owe(m, ev);
            m->segment_of[x->client % 64] = 0;
        }
        ev.segment = 0;
        owe(m, ev);
        break;
    case MR_OX_WRITE:
        ev.type = MR_OE_WRITTEN;
        ev.flags = x->flags;
        ev.err = bad ? MR_EIO : MR_OK;
        owe(m, ev);
        break;
    case MR_OX_RESTORE:
    case MR_OX_PULL:
        ev.type = MR_OE_FETCH_FAILED;
        ev.err = bad ? MR_ELOST : below(m, 2) ? MR_ELIMIT : MR_EAGAIN;
        ev.bytes = x->bytes ? x->bytes : 100000;
        owe(m, ev);
        break;
    case MR_OX_EVICT: /* within the step, as the shell does it */
    case MR_OX_ADD:
    case MR_OX_PUBLISH:
    case MR_OX_REMOVE:
    case MR_OX_FREED:
    case MR_OX_CLOSE:
    case MR_OX_MOVE:
    case MR_OX_ERASE:
    case MR_OX_REFUSED:
    case MR_OX_LOST: break;
    }
}

static void sim_step(struct sim *m, struct mr_ostore_event ev)
{
    struct mr_ostore_event queue[64];
    size_t n = 0;
    queue[n++] = ev;
    for (size_t i = 0; i < n; i++) {
        struct world *w = m->w;
        act(w, queue[i]);
        for (size_t k = 0; k < w->fx.n; k++) {
            sim_effect(m, &w->fx.items[k]);
            if (w->fx.items[k].type != MR_OX_EVICT) continue;
            assert_true(n < 64);
            queue[n++] = (struct mr_ostore_event){.type = MR_OE_EVICT_DONE,
                .object = w->fx.items[k].object,
                .err = mr_rng_below(&m->rng, 4) ? MR_OK : MR_EAGAIN};
        }
    }
}

static mr_object_id some_id(struct sim *m)
{
    uint64_t maker = m->clients[below(m, 6)];
    return id_of(maker, 1 + below(m, m->number[maker % 16] + 2));
}

static uint64_t some_bytes(struct sim *m)
{
    return 1 + below(m, below(m, 2) ? 3000000 : 100000);
}

static void sim_seal(
    struct sim *m, uint32_t client, mr_object_id id, uint32_t flags, uint64_t bytes)
{
    uint32_t segment = m->segment_of[client % 64];
    if (!segment || m->cursor[segment] + bytes + 64 > m->bytes[segment]) {
        m->requests++;
        sim_step(m, (struct mr_ostore_event){.type = MR_OE_GRANT,
                        .client = client,
                        .request = m->requests,
                        .bytes = 8 * MIB,
                        .room = 4 * MIB,
                        .timeout = below(m, 3) * MR_SECOND});
        return;
    }
    struct mr_ostore_event ev = {.type = MR_OE_SEAL,
        .client = client,
        .id = id,
        .segment = segment,
        .offset = m->cursor[segment] + 64,
        .bytes = bytes,
        .room = bytes + 64,
        .flags = flags,
        .owner = {.job = {below(m, 3)}}};
    m->cursor[segment] += (uint32_t)bytes + 64;
    sim_step(m, ev);
    if (flags & MR_SEAL_KEEP) {
        ev.type = MR_OE_UNPIN;
        owe(m, ev);
    }
}

static void sim_pay(struct sim *m)
{
    if (!m->pending_count) return;
    size_t at = below(m, m->pending_count);
    struct mr_ostore_event ev = m->pending[at].ev;
    m->pending_count--;
    memmove(&m->pending[at], &m->pending[at + 1], (m->pending_count - at) * sizeof m->pending[0]);
    if (ev.type == MR_OE_FETCH_FAILED && below(m, 3)) { /* it went well, then */
        sim_seal(m, 9, ev.id, MR_SEAL_ADOPT, ev.bytes);
        owe(m, ev);
        return;
    }
    sim_step(m, ev);
}

static void sim_client_dies(struct sim *m)
{
    size_t i = 1 + below(m, 5);
    sim_step(m, (struct mr_ostore_event){.type = MR_OE_GONE, .client = m->clients[i]});
    m->clients[i] = m->next_client++;
    join(m->w, m->clients[i]);
}

static void sim_ask(struct sim *m)
{
    struct mr_ostore_event ev = {.client = m->clients[below(m, 6)],
        .request = ++m->requests,
        .id = some_id(m),
        .flags = (uint32_t)below(m, 2),
        .timeout = below(m, 3) * 100 * MR_MS,
        .source = (uint32_t)below(m, 4)};
    static const enum mr_ostore_event_type types[] = {MR_OE_GET, MR_OE_GET, MR_OE_GET, MR_OE_DELETE,
        MR_OE_PERSIST, MR_OE_OFFERED, MR_OE_ASK_AGAIN, MR_OE_DRAIN};
    ev.type = types[below(m, 6) ? below(m, 6) : below(m, 8)];
    sim_step(m, ev);
}

static void sim_hold(struct sim *m)
{
    sim_step(m, (struct mr_ostore_event){.type = below(m, 4) ? MR_OE_UNHOLD : MR_OE_HOLD,
                    .client = m->clients[below(m, 6)],
                    .id = some_id(m),
                    .holder = {(enum mr_store_holder_kind)(1 + below(m, 3)), below(m, 3)}});
}

static void sim_turn(struct sim *m)
{
    uint32_t client = m->clients[1 + below(m, 5)];
    uint64_t dice = below(m, 100);
    if (dice < 35)
        sim_seal(m, client, id_of(client, ++m->number[client % 16]), below(m, 3) ? 0 : MR_SEAL_KEEP,
            some_bytes(m));
    else if (dice < 55)
        sim_ask(m);
    else if (dice < 65)
        sim_hold(m);
    else if (dice < 95)
        sim_pay(m);
    else if (dice < 96)
        sim_client_dies(m);
    if (below(m, 4) == 0) m->w->now += below(m, 50) * MR_MS;
    if (mr_ostore_deadline(m->w->s) <= m->w->now)
        sim_step(m, (struct mr_ostore_event){.type = MR_OE_TICK});
}

static void every_invariant_holds_in_a_random_world(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        void *world = NULL;
        setup(&world);
        struct sim *m = mr_alloc(sizeof *m);
        m->w = world;
        mr_rng_init(&m->rng, seed);
        for (uint32_t i = 0; i < 6; i++) {
            m->clients[i] = i ? 100 + i : 9;
            join(m->w, m->clients[i]);
        }
        m->next_client = 110;
        for (int i = 0; i < 1500; i++)
            sim_turn(m);
        /* The faults stop: all that is owed is paid, and time passes. Then nothing waits. */
        for (int i = 0; i < 20000 && m->pending_count; i++)
            sim_pay(m);
        for (int i = 0; i < 200; i++) {
            m->w->now += 50 * MR_MS;
            sim_step(m, (struct mr_ostore_event){.type = MR_OE_TICK});
            while (m->pending_count)
                sim_pay(m);
        }
        mr_release(m);
        teardown(&world);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_get_before_the_seal_is_answered_by_the_seal),
        T(a_get_of_what_never_comes_times_out),
        T(one_pull_is_under_way_however_many_ask),
        T(what_nobody_has_yet_is_waited_for_after_the_search),
        T(a_second_source_is_tried_when_the_first_fails),
        T(the_last_holder_frees_the_object_unless_it_is_pinned),
        T(a_held_object_is_deleted_only_by_force),
        T(a_dead_client_takes_only_what_it_held_alone),
        T(what_only_a_dead_client_vouches_for_is_offered_then_freed),
        T(a_scheduler_hears_of_what_jobs_lose),
        T(writers_are_held_back_before_the_places_are_gone),
        T(pinned_bytes_are_those_of_pinned_objects),
        T(a_full_store_spills_the_least_used_and_restores_it),
        T(when_nothing_can_leave_the_youngest_lets_go),
        T(nonsense_in_a_seal_changes_nothing),
        T(what_is_persisted_outlives_its_holders),
        cmocka_unit_test(every_invariant_holds_in_a_random_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
