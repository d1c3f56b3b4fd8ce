/* The object store's core: which objects stay on disk, and for how long; and which objects the
 * store offers to the scheduler before it removes them. */
#include "tests/unit/objectstore/rig.h"

static void name(struct world *w, enum mr_ostore_event_type type, mr_object_id id)
{
    act(w, (struct mr_ostore_event){.type = type, .id = id, .holder = {MR_HOLD_NAME, 77}});
}

/* Answers the WRITE of the last step: the write has succeeded. */
static void write_ends(struct world *w)
{
    const struct mr_ostore_effect *x = effect(w, MR_OX_WRITE);
    assert_non_null(x);
    written(w, x->id, x->flags, MR_OK);
}

static void recovered(struct world *w, mr_object_id id, uint32_t flags)
{
    act(w,
        (struct mr_ostore_event){.type = MR_OE_RECOVERED, .id = id, .bytes = 1000, .flags = flags});
}

static void wait_for_claims(struct world *w)
{
    w->now += config.orphan_ns + 2 * MR_SECOND;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
}

static mr_object_id made_for_a_job(struct world *w)
{
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    seal(w, 1, id_of(1, 1), segment, 0, 1000, 5);
    return id_of(1, 1);
}

static void what_a_drain_wrote_goes_with_its_job(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    act(w, (struct mr_ostore_event){.type = MR_OE_DRAIN});
    assert_int_equal(effect(w, MR_OX_WRITE)->flags, MR_OSTORE_PERSISTED | MR_OSTORE_BY_HOLDERS);
    write_ends(w);
    unhold(w, 1, id, 5);
    evicted(w, MR_OK);
    assert_true(mr_object_id_eq(effect(w, MR_OX_ERASE)->id, id));
    assert_int_equal(there(w, id), MR_ENOENT);
}

static void what_was_persisted_without_a_name_stays_when_its_job_goes(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    persist(w, 9, id);
    assert_int_equal(effect(w, MR_OX_WRITE)->flags, MR_OSTORE_PERSISTED);
    write_ends(w);
    act(w, (struct mr_ostore_event){.type = MR_OE_HOLD, .id = id, .holder = {MR_HOLD_JOB, 6}});
    assert_null(effect(w, MR_OX_MOVE));
    unhold(w, 1, id, 5);
    unhold(w, 1, id, 6);
    assert_null(effect(w, MR_OX_EVICT));
    assert_int_equal(there(w, id), MR_OK);
}

static void what_only_a_client_holds_is_not_drained(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    for (uint64_t n = 1; n <= 3; n++)
        seal(w, 1, id_of(1, n), segment, n * 4096, 1000, n == 2 ? 0 : 5);
    act(w, (struct mr_ostore_event){.type = MR_OE_DRAIN});
    assert_int_equal(count(w, MR_OX_WRITE), 2);
    for (size_t i = 0; i < w->fx.n; i++)
        assert_int_not_equal(w->fx.items[i].id.number, 2);
    act(w, (struct mr_ostore_event){.type = MR_OE_DRAIN}); /* each object is written once */
    assert_null(effect(w, MR_OX_WRITE));
}

static void what_has_a_name_is_persisted_for_as_long_as_it_is_held(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    name(w, MR_OE_HOLD, id);
    persist(w, 9, id);
    assert_int_equal(effect(w, MR_OX_WRITE)->flags, MR_OSTORE_PERSISTED | MR_OSTORE_BY_HOLDERS);
}

static void a_file_moves_to_those_that_live_by_holders_when_it_gets_a_name(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    persist(w, 9, id);
    write_ends(w);
    name(w, MR_OE_HOLD, id);
    assert_int_equal(effect(w, MR_OX_MOVE)->flags, MR_OSTORE_BY_HOLDERS);
    assert_true(mr_object_id_eq(effect(w, MR_OX_MOVE)->id, id));
    name(w, MR_OE_HOLD, id);
    assert_null(effect(w, MR_OX_MOVE));
    unhold(w, 1, id, 5);
    assert_int_equal(there(w, id), MR_OK);
    name(w, MR_OE_UNHOLD, id);
    evicted(w, MR_OK);
    assert_non_null(effect(w, MR_OX_ERASE));
}

static void a_name_given_during_the_write_moves_the_file_after_it(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    persist(w, 9, id);
    const struct mr_ostore_effect write = *effect(w, MR_OX_WRITE);
    name(w, MR_OE_HOLD, id);
    assert_null(effect(w, MR_OX_MOVE));
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id, .flags = write.flags});
    assert_int_equal(effect(w, MR_OX_MOVE)->flags, MR_OSTORE_BY_HOLDERS);
}

static void what_a_drain_wrote_stays_once_somebody_persists_it(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    act(w, (struct mr_ostore_event){.type = MR_OE_DRAIN});
    write_ends(w);
    persist(w, 9, id);
    assert_int_equal(effect(w, MR_OX_MOVE)->flags, 0);
    unhold(w, 1, id, 5);
    assert_int_equal(there(w, id), MR_OK);
}

static void after_a_restart_files_that_nobody_claims_are_removed_and_counted(void **state)
{
    struct world *w = *state;
    enum { ORPHAN = 1, NAMED, CLAIMED, KEPT };
    for (uint64_t n = ORPHAN; n <= CLAIMED; n++)
        recovered(w, id_of(1, n), MR_OSTORE_BY_HOLDERS);
    recovered(w, id_of(1, KEPT), 0);
    name(w, MR_OE_HOLD, id_of(1, NAMED));
    mr_object_id ids[8];
    /* An object with a name is in doubt, too, because no job vouches for it. */
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 8), 3);
    /* Nothing is removed, because the store has offered no object to the scheduler yet. */
    wait_for_claims(w);
    assert_int_equal(there(w, id_of(1, ORPHAN)), MR_OK);
    act(w, (struct mr_ostore_event){.type = MR_OE_OFFERED});
    act(w, (struct mr_ostore_event){
               .type = MR_OE_HOLD, .id = id_of(1, CLAIMED), .holder = {MR_HOLD_JOB, 0}});
    wait_for_claims(w);
    assert_true(mr_object_id_eq(effect(w, MR_OX_ERASE)->id, id_of(1, ORPHAN)));
    assert_int_equal(there(w, id_of(1, ORPHAN)), MR_ENOENT);
    for (uint64_t n = NAMED; n <= KEPT; n++)
        assert_int_equal(there(w, id_of(1, n)), MR_OK);
    struct mr_store_stats stats;
    mr_ostore_stats(w->s, &stats);
    assert_int_equal(stats.orphans_freed, 1);
    unhold(w, 1, id_of(1, CLAIMED), 0);
    assert_true(mr_object_id_eq(effect(w, MR_OX_ERASE)->id, id_of(1, CLAIMED)));
}

static void another_scheduler_has_to_claim_what_the_last_one_held(void **state)
{
    struct world *w = *state;
    mr_object_id mine = made_for_a_job(w);
    join(w, 2);
    uint32_t segment = grant(w, 2, 8 * MIB);
    seal(w, 2, id_of(2, 1), segment, 0, 1000, 5);
    seal(w, 2, id_of(2, 2), segment, 8192, 1000, 5);
    for (uint64_t n = 1; n <= 2; n++)
        act(w, (struct mr_ostore_event){
                   .type = MR_OE_HOLD, .id = id_of(2, n), .holder = {MR_HOLD_JOB, 0}});
    act(w, (struct mr_ostore_event){.type = MR_OE_HOLD, .id = mine, .holder = {MR_HOLD_JOB, 0}});
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 2});
    /* The new scheduler knows object (2, 2) and claims it. */
    act(w, (struct mr_ostore_event){.type = MR_OE_ASK_AGAIN});
    act(w, (struct mr_ostore_event){
               .type = MR_OE_HOLD, .id = id_of(2, 2), .holder = {MR_HOLD_JOB, 0}});
    act(w, (struct mr_ostore_event){.type = MR_OE_OFFERED});
    wait_for_claims(w);
    evicted(w, MR_OK);
    assert_int_equal(there(w, id_of(2, 1)), MR_ENOENT);
    assert_int_equal(there(w, id_of(2, 2)), MR_OK);
    /* The client that made `mine` still lives and holds the object for its job. */
    assert_int_equal(info_of(w, mine).holders_count, 1);
    assert_int_equal(info_of(w, mine).holders[0].key, 5);
}

static bool unplaced(const struct world *w, mr_object_id id)
{
    const struct mr_ostore_effect *x = effect(w, MR_OX_UNPLACE);
    return x && mr_object_id_eq(x->id, id);
}

/* When the object loses its last name, the core removes the object's entry from the cluster's
 * directory, and only once. */
static void an_entry_in_the_directory_goes_with_its_object(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    act(w, (struct mr_ostore_event){.type = MR_OE_PLACED, .id = id});
    name(w, MR_OE_HOLD, id);
    unhold(w, 1, id, 5);
    assert_null(effect(w, MR_OX_UNPLACE));
    name(w, MR_OE_UNHOLD, id);
    assert_true(unplaced(w, id));
    evicted(w, MR_OK);
    assert_null(effect(w, MR_OX_UNPLACE)); /* the entry is removed once */
}

/* The core removes an entry of the cluster's directory if the entry arrives after the object died,
 * or if the object never was in this store. */
static void an_entry_of_what_is_not_here_is_taken_away(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    unhold(w, 1, id, 5);
    /* The object has no holder any more, but it is still in memory. */
    act(w, (struct mr_ostore_event){.type = MR_OE_PLACED, .id = id});
    assert_true(unplaced(w, id));
    recovered(w, id_of(7, 7), MR_OSTORE_BY_HOLDERS);
    act(w, (struct mr_ostore_event){.type = MR_OE_PLACED, .id = id_of(7, 7)});
    assert_null(effect(w, MR_OX_UNPLACE));
    act(w, (struct mr_ostore_event){.type = MR_OE_PLACED, .id = id_of(7, 8)});
    assert_true(unplaced(w, id_of(7, 8)));
    act(w, (struct mr_ostore_event){.type = MR_OE_OFFERED});
    wait_for_claims(w);
    assert_true(unplaced(w, id_of(7, 7)));
}

static void a_write_of_a_deleted_object_that_failed_has_no_file(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    persist(w, 9, id);
    for (int i = 0; i < 2; i++) { /* in the second round the object is deleted already */
        act(w, (struct mr_ostore_event){
                   .type = MR_OE_DELETE, .client = 1, .id = id, .flags = MR_OSTORE_FORCE});
        /* In the first round the persist is answered, too. */
        assert_int_equal(count(w, MR_OX_DONE), i ? 1 : 2);
    }
    act(w, (struct mr_ostore_event){.type = MR_OE_EVICT_DONE, .object = 1});
    assert_int_equal(stats_of(w).objects, 0);
    written(w, id, MR_OSTORE_PERSISTED, MR_EIO);
    assert_int_equal(w->fx.n, 0);
    assert_false(mr_ostore_is_writing(w->s));
}

/* An object is deleted while the store writes it to disk, and is pulled again before the write
 * ends. The file belongs to the deleted object, so the core erases the file. */
static void a_write_that_ends_late_is_not_the_next_lifes(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    join(w, 2);
    persist(w, 9, id);
    uint32_t flags = effect(w, MR_OX_WRITE)->flags;
    act(w,
        (struct mr_ostore_event){
            .type = MR_OE_DELETE, .client = 1, .request = 3, .id = id, .flags = MR_OSTORE_FORCE});
    evicted(w, MR_OK);
    get(w, 2, 4, id, MR_SECOND, 1);
    assert_non_null(effect(w, MR_OX_PULL));
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id, .flags = flags});
    assert_true(mr_object_id_eq(effect(w, MR_OX_ERASE)->id, id));
    assert_int_equal(there(w, id), MR_ENOENT); /* the pull has not ended yet */
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A store pulls a copy of an object that a job holds in the store of another node. The copy is
 * freed when no client of this node has used it for a while. */
static void a_copy_goes_when_nobody_wants_it_for_a_while(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    get(w, 1, 1, id_of(50, 1), MR_SECOND, 3);
    uint32_t segment = grant(w, 9, 8 * MIB);
    seal(w, 9, id_of(50, 1), segment, 0, 5000, 0);
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_OK);
    get(w, 1, 2, id_of(50, 2), MR_SECOND, 3);
    seal(w, 9, id_of(50, 2), segment, 16384, 5000, 0); /* object (50, 2) stays pinned */
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(50, 1)});
    w->now += config.orphan_ns / 2;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    assert_null(effect(w, MR_OX_EVICT));
    bool went = false;
    for (uint32_t i = 0; i < 3 && !went; i++) {
        w->now += config.orphan_ns;
        act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
        went = effect(w, MR_OX_EVICT) != NULL;
    }
    assert_true(went);
    struct mr_store_stats stats;
    mr_ostore_stats(w->s, &stats);
    assert_int_equal(stats.orphans_freed, 1);
    assert_int_equal(stats.pulls, 2);
    assert_int_equal(stats.pulled_bytes, 10000);
    assert_int_equal(stats.objects, 2); /* the object is counted until it is evicted */
    assert_int_equal(stats.objects_max, config.objects_max);
    assert_int_equal(stats.clients, 2);
    assert_int_equal(stats.segments, 1);
    assert_int_equal(stats.memory_bytes, 8 * MIB);
    assert_int_equal(stats.memory_bytes_max, config.memory_bytes);
    evicted(w, MR_OK);
    mr_ostore_stats(w->s, &stats);
    assert_int_equal(stats.objects, 1);
    assert_int_equal(there(w, id_of(50, 1)), MR_ENOENT);
    assert_int_equal(there(w, id_of(50, 2)), MR_OK);
}

/* Lets time pass until the core evicts the object. Returns that time. */
static mr_time leaves_at(struct world *w, mr_object_id id)
{
    for (uint32_t ticks = 0; !effect(w, MR_OX_EVICT);) {
        assert_true(there(w, id) == MR_OK && objects_left(w, &ticks));
        tick(w);
    }
    return w->now;
}

static uint32_t pulled(struct world *w, mr_object_id id)
{
    join(w, 1);
    join(w, 9);
    get(w, 1, 1, id, MR_SECOND, 3);
    seal(w, 9, id, grant(w, 9, 8 * MIB), 0, 5000, 0);
    uint32_t object = effect(w, MR_OX_GOT)->object;
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id});
    return object;
}

static void a_copy_stays_for_a_while_after_its_last_use(void **state)
{
    struct world *w = *state;
    uint32_t object = pulled(w, id_of(50, 1));
    w->now += config.orphan_ns / 2;
    mr_time used = w->now;
    act(w, (struct mr_ostore_event){.type = MR_OE_USED, .object = object});
    assert_in_range(
        leaves_at(w, id_of(50, 1)), used + config.orphan_ns, used + config.orphan_ns + MR_SECOND);
}

static void a_copy_that_a_job_holds_or_that_is_persisted_stays(void **state)
{
    struct world *w = *state;
    (void)pulled(w, id_of(50, 1));
    act(w, (struct mr_ostore_event){
               .type = MR_OE_HOLD, .id = id_of(50, 1), .holder = {MR_HOLD_JOB, 5}});
    wait_for_claims(w);
    assert_null(effect(w, MR_OX_EVICT));
    persist(w, 9, id_of(50, 1));
    write_ends(w);
    unhold(w, 1, id_of(50, 1), 5);
    wait_for_claims(w);
    assert_null(effect(w, MR_OX_EVICT));
    assert_int_equal(there(w, id_of(50, 1)), MR_OK);
}

/* Neither a use nor a second offer gives the scheduler more time to claim an object. */
static void the_time_for_a_claim_begins_with_the_first_offer(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w);
    uint32_t object = 1;
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 1});
    w->now += MR_SECOND;
    mr_time first = w->now;
    act(w, (struct mr_ostore_event){.type = MR_OE_OFFERED, .id = id});
    w->now += config.orphan_ns / 2;
    act(w, (struct mr_ostore_event){.type = MR_OE_OFFERED, .id = id});
    act(w, (struct mr_ostore_event){.type = MR_OE_USED, .object = object});
    unhold(w, 2, id, 99); /* job 99 does not hold the object */
    assert_in_range(
        leaves_at(w, id), first + config.orphan_ns, first + config.orphan_ns + MR_SECOND);
}

static void the_next_scheduler_has_its_own_time_for_a_claim(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w), ids[4];
    act(w, (struct mr_ostore_event){.type = MR_OE_HOLD, .id = id, .holder = {MR_HOLD_JOB, 0}});
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 1});
    act(w, (struct mr_ostore_event){.type = MR_OE_OFFERED});
    w->now += config.orphan_ns / 2;
    act(w, (struct mr_ostore_event){.type = MR_OE_ASK_AGAIN});
    wait_for_claims(w);
    assert_null(effect(w, MR_OX_EVICT));
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 4), 1);
    act(w, (struct mr_ostore_event){.type = MR_OE_OFFERED});
    wait_for_claims(w);
    assert_non_null(effect(w, MR_OX_EVICT));
}

static void nobody_is_asked_about_a_deleted_object(void **state)
{
    struct world *w = *state;
    mr_object_id id = made_for_a_job(w), ids[4];
    persist(w, 9, id);
    write_ends(w);
    act(w, (struct mr_ostore_event){.type = MR_OE_HOLD, .id = id, .holder = {MR_HOLD_JOB, 0}});
    get(w, 1, 2, id, 0, 0);
    act(w,
        (struct mr_ostore_event){
            .type = MR_OE_DELETE, .client = 1, .request = 3, .id = id, .flags = MR_OSTORE_FORCE});
    act(w, (struct mr_ostore_event){.type = MR_OE_ASK_AGAIN});
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 4), 0);
    /* A new holder does not bring the object back. */
    act(w, (struct mr_ostore_event){.type = MR_OE_HOLD, .id = id, .holder = {MR_HOLD_NAME, 7}});
    assert_int_equal(w->fx.n, 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id});
    evicted(w, MR_OK);
    assert_int_equal(stats_of(w).objects, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_a_drain_wrote_goes_with_its_job),
        T(what_was_persisted_without_a_name_stays_when_its_job_goes),
        T(a_file_moves_to_those_that_live_by_holders_when_it_gets_a_name),
        T(a_name_given_during_the_write_moves_the_file_after_it),
        T(what_a_drain_wrote_stays_once_somebody_persists_it),
        T(after_a_restart_files_that_nobody_claims_are_removed_and_counted),
        T(another_scheduler_has_to_claim_what_the_last_one_held),
        T(a_write_that_ends_late_is_not_the_next_lifes),
        T(an_entry_in_the_directory_goes_with_its_object),
        T(an_entry_of_what_is_not_here_is_taken_away),
        T(a_copy_goes_when_nobody_wants_it_for_a_while),
        T(a_copy_stays_for_a_while_after_its_last_use),
        T(a_copy_that_a_job_holds_or_that_is_persisted_stays),
        T(the_time_for_a_claim_begins_with_the_first_offer),
        T(the_next_scheduler_has_its_own_time_for_a_claim),
        T(nobody_is_asked_about_a_deleted_object),
        T(what_only_a_client_holds_is_not_drained),
        T(what_has_a_name_is_persisted_for_as_long_as_it_is_held),
        T(a_write_of_a_deleted_object_that_failed_has_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
