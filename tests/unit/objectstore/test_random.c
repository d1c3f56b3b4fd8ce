/* The object store's core in a random simulation. The simulated clients and the simulated disk
 * answer the core late, in any order, or not at all. After every step the core checks its
 * invariants. */
#include "base/rng.h"
#include "tests/unit/objectstore/rig.h"

#define IDS 60
#define PENDING_MAX 4000
#define GROUP_LIMIT (40 * MIB)
#define GROUP_OWN (4 * MIB)

#define REQUESTS_MAX 4096
#define ROOMS_MAX 4096

struct room { /* the place of an object that a client has sealed */
    uint32_t segment;
    uint64_t offset, bytes, room;
    bool is_freed;
};

struct request {
    uint32_t client;
    bool is_answered;
};

struct pending { /* an answer that the simulation still has to give to the core */
    struct mr_ostore_event ev;
};

struct sim {
    struct world *w;
    struct mr_rng rng;
    struct pending pending[PENDING_MAX];
    size_t pending_count;
    uint32_t segment_of[64]; /* by client number modulo 64: the client's one segment; 0: none */
    uint32_t owner[4096];    /* client that owns a segment, by segment */
    uint64_t bytes[4096];
    bool granted[4096]; /* by segment: granted and not closed yet */
    /* By segment: the next free offset. The simulation does not reuse the places of freed
     * objects. */
    uint32_t cursor[4096];
    uint64_t number[16];
    uint64_t requests;
    struct request asked[REQUESTS_MAX]; /* by request number */
    struct room rooms[ROOMS_MAX];
    uint32_t rooms_count;
    uint32_t clients[6];
    /* The control group of each dead client, at the client's number modulo 4096. 0: no limit. */
    uint64_t group_of_dead[4096];
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

static uint64_t ask(struct sim *m, uint32_t client)
{
    assert_true(++m->requests < REQUESTS_MAX);
    m->asked[m->requests].client = client;
    return m->requests;
}

/* Checks that a request is answered once and that the answer goes to the client that asked. */
static void answered(struct sim *m, const struct mr_ostore_effect *x)
{
    struct request *q = &m->asked[x->request];
    assert_true(x->request && x->request <= m->requests);
    assert_int_equal(q->client, x->client);
    assert_false(q->is_answered);
    q->is_answered = true;
}

static struct room *room_at(struct sim *m, uint32_t segment, uint64_t offset)
{
    for (uint32_t i = 0; i < m->rooms_count; i++)
        if (m->rooms[i].segment == segment && m->rooms[i].offset == offset) return &m->rooms[i];
    fail_msg("no room at %llu of segment %u", (unsigned long long)offset, segment);
    return NULL;
}

/* Checks that the place that the core gives to a client holds an object of the right size, which
 * has not been freed. */
static void check_place(struct sim *m, const struct mr_ostore_effect *x)
{
    const struct room *r = room_at(m, x->segment, x->offset);
    assert_int_equal(r->bytes, x->bytes);
    assert_false(r->is_freed);
    assert_true(m->granted[x->segment]);
}

static void freed(struct sim *m, const struct mr_ostore_effect *x)
{
    /* The place of an object begins with its header. */
    struct room *r = room_at(m, x->segment, x->offset + MR_EXTENT_HEAD);
    assert_int_equal(r->room, x->room);
    assert_false(r->is_freed);
    r->is_freed = true;
}

static void sim_granted(struct sim *m, const struct mr_ostore_effect *x)
{
    answered(m, x);
    if (x->err) return;
    assert_true(x->segment < 4096);
    m->owner[x->segment] = x->client;
    m->bytes[x->segment] = x->bytes;
    m->granted[x->segment] = true;
    m->segment_of[x->client % 64] = x->segment;
}

/* Answers an effect of the core, at once or later, with success or with an error. */
static void sim_effect(struct sim *m, const struct mr_ostore_effect *x)
{
    bool bad = mr_rng_below(&m->rng, 8) == 0;
    struct mr_ostore_event ev = {.client = x->client, .id = x->id, .object = x->object};
    switch (x->type) {
    case MR_OX_GRANTED: sim_granted(m, x); break;
    case MR_OX_GOT:
        answered(m, x);
        ev.type = MR_OE_UNPIN;
        if (x->err) break;
        check_place(m, x);
        owe(m, ev);
        break;
    case MR_OX_DONE: answered(m, x); break;
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
    case MR_OX_PUBLISH: check_place(m, x); break;
    case MR_OX_FREED: freed(m, x); break;
    case MR_OX_CLOSE: m->granted[x->segment] = false; break;
    case MR_OX_EVICT: /* sim_step answers EVICT within the step, as the shell does */
    case MR_OX_ADD:
    case MR_OX_REMOVE:
    case MR_OX_MOVE:
    case MR_OX_ERASE:
    case MR_OX_REFUSED:
    case MR_OX_UNPLACE:
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
        sim_step(m, (struct mr_ostore_event){.type = MR_OE_GRANT,
                        .client = client,
                        .request = ask(m, client),
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
    assert_true(m->rooms_count < ROOMS_MAX);
    m->rooms[m->rooms_count++] =
        (struct room){.segment = segment, .offset = ev.offset, .bytes = bytes, .room = ev.room};
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
    if (ev.type == MR_OE_FETCH_FAILED && below(m, 3)) { /* the fetch succeeds */
        sim_seal(m, 9, ev.id, MR_SEAL_ADOPT, ev.bytes);
        owe(m, ev);
        return;
    }
    sim_step(m, ev);
}

/* The control group of client `i`; 0: no limit. Clients 1 and 2 share a group, and client 3 has its
 * own. A client that takes a dead client's place joins the dead client's group. */
static uint64_t group_of(size_t i)
{
    return i < 3 ? 70 : i == 3 ? 71 : 0;
}

static void sim_join(struct sim *m, size_t i)
{
    join(m->w, m->clients[i]);
    if (!i || !group_of(i)) return;
    act(m->w, (struct mr_ostore_event){.type = MR_OE_LIMIT,
                  .client = m->clients[i],
                  .group = group_of(i),
                  .bytes = GROUP_LIMIT,
                  .room = GROUP_OWN});
}

static void sim_client_dies(struct sim *m)
{
    size_t i = 1 + below(m, 5);
    m->group_of_dead[m->clients[i] % 4096] = group_of(i);
    sim_step(m, (struct mr_ostore_event){.type = MR_OE_GONE, .client = m->clients[i]});
    m->clients[i] = m->next_client++;
    sim_join(m, i);
}

/* Checks that the segments of a group's clients, dead clients included, never exceed the limit of
 * the group. */
static void sim_check_groups(struct sim *m)
{
    uint64_t bytes[2] = {0};
    for (uint32_t n = 1; n < 4096; n++) {
        uint64_t group = m->granted[n] ? m->group_of_dead[m->owner[n] % 4096] : 0;
        for (size_t i = 1; i < 6 && m->granted[n]; i++)
            if (m->clients[i] == m->owner[n]) group = group_of(i);
        if (group) bytes[group - 70] += m->bytes[n];
    }
    /* GROUP_OWN is the memory that each process of a group uses without the store. Group 70 may
     * have two processes. But the check subtracts GROUP_OWN only once, because the segments may
     * have been granted before the second process joined. */
    assert_true(bytes[0] <= GROUP_LIMIT / 10 * 8 - GROUP_OWN);
    assert_true(bytes[1] <= GROUP_LIMIT / 10 * 8 - GROUP_OWN);
}

static void sim_ask(struct sim *m)
{
    struct mr_ostore_event ev = {.client = m->clients[below(m, 6)],
        .id = some_id(m),
        .flags = (uint32_t)below(m, 2),
        .timeout = below(m, 3) * 100 * MR_MS,
        .source = (uint32_t)below(m, 4)};
    static const enum mr_ostore_event_type types[] = {MR_OE_GET, MR_OE_GET, MR_OE_GET, MR_OE_DELETE,
        MR_OE_PERSIST, MR_OE_OFFERED, MR_OE_ASK_AGAIN, MR_OE_DRAIN, MR_OE_PLACED};
    ev.type = types[below(m, 6) ? below(m, 6) : below(m, 9)];
    bool has_answer = ev.type == MR_OE_GET || ev.type == MR_OE_DELETE || ev.type == MR_OE_PERSIST;
    ev.request = ask(m, has_answer ? ev.client : 0);
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

/* Checks that every request of a client that is alive has been answered. */
static void sim_check_answers(struct sim *m)
{
    for (uint64_t q = 1; q <= m->requests; q++)
        for (size_t i = 0; i < 6; i++)
            if (m->asked[q].client == m->clients[i]) assert_true(m->asked[q].is_answered);
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
            sim_join(m, i);
        }
        m->next_client = 110;
        for (int i = 0; i < 1500; i++) {
            sim_turn(m);
            sim_check_groups(m);
        }
        /* The faults end: all answers are given and time passes. Then no request may be left
         * waiting. */
        for (int i = 0; i < 20000 && m->pending_count; i++)
            sim_pay(m);
        for (int i = 0; i < 200; i++) {
            m->w->now += 50 * MR_MS;
            sim_step(m, (struct mr_ostore_event){.type = MR_OE_TICK});
            while (m->pending_count)
                sim_pay(m);
        }
        sim_check_answers(m);
        mr_release(m);
        teardown(&world);
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_invariant_holds_in_a_random_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
