/* The object store's core: the holders of an object, the clients that may delete it, and the jobs
 * that are told of its loss. */
#include "tests/unit/objectstore/rig.h"

/* The core reports the loss of an object to its job once, whether the object was in memory or on
 * disk. */
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
    hold(w, MR_OE_HOLD, 1, id_of(7, 7), (struct mr_store_holder){MR_HOLD_JOB, 5});
    get(w, 1, 1, id_of(7, 7), MR_SECOND, 0);
    act(w,
        (struct mr_ostore_event){.type = MR_OE_FETCH_FAILED, .id = id_of(7, 7), .err = MR_ELOST});
    assert_int_equal(count(w, MR_OX_LOST), 1);
    assert_true(mr_object_id_eq(effect(w, MR_OX_LOST)->id, id_of(7, 7)));
    assert_true(mr_object_id_eq(effect(w, MR_OX_ERASE)->id, id_of(7, 7)));
    assert_int_equal(effect(w, MR_OX_GOT)->err, MR_ELOST);
    assert_int_equal(stats_of(w).persisted_bytes, 0);
}

/* When another scheduler connects, the holds that the old scheduler has set are in doubt, so the
 * store asks the new scheduler about these objects. The store does not ask about objects that only
 * workers and names hold. */
static void what_workers_hold_is_not_asked_for_again(void **state)
{
    struct world *w = *state;
    mr_object_id ids[8];
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    for (uint64_t n = 1; n <= 3; n++)
        seal(w, 1, id_of(1, n), segment, n * 4096, 100, 5);
    hold(w, MR_OE_HOLD, 1, id_of(1, 3), (struct mr_store_holder){MR_HOLD_JOB, 0});
    hold(w, MR_OE_HOLD, 1, id_of(1, 2), (struct mr_store_holder){MR_HOLD_NAME, 0});
    act(w, (struct mr_ostore_event){.type = MR_OE_ASK_AGAIN});
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 8), 1);
    assert_true(mr_object_id_eq(ids[0], id_of(1, 3)));
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 0), 0);
}

/* Lets `client` delete the object. Returns the holder that the refusal names; kind 0: the object
 * was deleted. */
static struct mr_store_holder deleted_by(struct world *w, uint32_t client, mr_object_id id)
{
    act(w, (struct mr_ostore_event){
               .type = MR_OE_DELETE, .client = client, .request = 70 + client, .id = id});
    const struct mr_ostore_effect *x = effect(w, MR_OX_DONE);
    assert_int_equal(x->client, client);
    assert_int_equal(x->request, 70 + client);
    assert_true(mr_object_id_eq(x->id, id));
    assert_int_equal(x->err, x->holder.kind ? MR_ESTATE : MR_OK);
    return x->holder;
}

static void what_another_client_holds_is_deleted_by_that_client_only(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    seal(w, 2, id_of(2, 1), grant(w, 2, 8 * MIB), 0, 100, 0);
    get(w, 1, 3, id_of(2, 1), 0, 0);
    assert_int_equal(deleted_by(w, 1, id_of(2, 1)).kind, MR_HOLD_CLIENT);
    assert_int_equal(effect(w, MR_OX_DONE)->holder.key, 2);
    hold(w, MR_OE_HOLD, 1, id_of(2, 1), (struct mr_store_holder){MR_HOLD_CLIENT, 0});
    assert_int_equal(deleted_by(w, 2, id_of(2, 1)).key, 1);
    hold(w, MR_OE_UNHOLD, 1, id_of(2, 1), (struct mr_store_holder){MR_HOLD_CLIENT, 0});
    assert_int_equal(deleted_by(w, 2, id_of(2, 1)).kind, 0); /* the pin of client 1 is no holder */
    assert_int_equal(there(w, id_of(2, 1)), MR_ENOENT);
    /* the object does not exist any more */
    assert_int_equal(deleted_by(w, 2, id_of(2, 1)).kind, 0);
}

/* The store's own client holds an upload until the upload has another holder. */
static void an_upload_without_another_holder_is_deleted_by_anybody(void **state)
{
    struct world *w = *state;
    join(w, 9);
    join(w, 1);
    uint32_t segment = grant(w, 9, 8 * MIB);
    struct mr_ostore_event upload = {.type = MR_OE_SEAL,
        .client = 9,
        .id = id_of(9, 1),
        .segment = segment,
        .offset = MR_EXTENT_HEAD,
        .bytes = 100,
        .room = 100 + MR_EXTENT_HEAD};
    get(w, 1, 5, id_of(9, 1), MR_SECOND, 0);
    act(w, upload);
    /* PULLED is not set, because the object was made here */
    assert_int_equal(effect(w, MR_OX_GOT)->flags, 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(9, 1)});
    assert_int_equal(info_of(w, id_of(9, 1)).holders[0].kind, MR_HOLD_CLIENT);
    assert_int_equal(deleted_by(w, 1, id_of(9, 1)).kind, 0);
    assert_int_equal(there(w, id_of(9, 1)), MR_ENOENT);
    upload.id = id_of(9, 2);
    upload.offset += 4096;
    act(w, upload);
    hold(w, MR_OE_HOLD, 0, id_of(9, 2), (struct mr_store_holder){MR_HOLD_NAME, 77});
    assert_int_equal(deleted_by(w, 1, id_of(9, 2)).kind, MR_HOLD_NAME);
    assert_int_equal(effect(w, MR_OX_DONE)->holder.key, 77);
}

static void only_what_a_job_holds_is_told_as_lost(void **state)
{
    struct world *w = *state;
    join(w, 1);
    uint32_t segment = grant(w, 1, 8 * MIB);
    for (uint64_t n = 1; n <= 2; n++)
        seal(w, 1, id_of(1, n), segment, n * 4096, 100, n == 1 ? 0 : 5);
    for (uint64_t n = 1; n <= 2; n++) {
        act(w, (struct mr_ostore_event){
                   .type = MR_OE_DELETE, .client = 1, .id = id_of(1, n), .flags = MR_OSTORE_FORCE});
        assert_int_equal(count(w, MR_OX_LOST), n == 2);
    }
}

static void a_client_that_goes_takes_all_its_pins_with_it(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 2);
    seal(w, 1, id_of(1, 1), grant(w, 1, 8 * MIB), 0, 100, 5);
    for (uint64_t request = 1; request <= 3; request++)
        get(w, 2, request, id_of(1, 1), 0, 0);
    get(w, 1, 9, id_of(1, 1), 0, 0);
    assert_int_equal(info_of(w, id_of(1, 1)).pins, 4);
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 2});
    assert_int_equal(info_of(w, id_of(1, 1)).pins, 1);
}

/* When client 2 goes, the other clients keep their grants, requests and objects. */
static void a_client_that_goes_takes_nothing_of_others(void **state)
{
    struct world *w = *state;
    for (uint32_t c = 1; c <= 3; c++) {
        join(w, c);
        seal(w, c, id_of(c, 1), grant(w, c, 8 * MIB), 0, 100, c == 2 ? 0 : 5);
        get(w, c, 40 + c, id_of(50, 1), MR_SECOND, 0);
    }
    for (uint32_t c = 1; c <= 3; c++)
        assert_int_equal(grant(w, c, 60 * MIB), 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_GONE, .client = 2});
    assert_int_equal(stats_of(w).clients, 2);
    evicted(w, MR_OK);
    assert_int_equal(there(w, id_of(2, 1)), MR_ENOENT);
    mr_object_id ids[4];
    assert_int_equal(mr_ostore_unvouched(w->s, ids, 4), 0);
    for (uint32_t c = 1; c <= 3; c += 2)
        assert_int_equal(there(w, id_of(c, 1)), MR_OK);
    w->now += MR_SECOND;
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
    assert_int_equal(count(w, MR_OX_GOT), 2);
    assert_int_equal(count(w, MR_OX_GRANTED), 2);
    for (size_t i = 0; i < w->fx.n; i++)
        assert_int_not_equal(w->fx.items[i].client, 2);
}

/* A copy of another store's object has no holder. So the end of a job does not free the copy. */
static void the_end_of_a_job_takes_only_what_the_job_held(void **state)
{
    struct world *w = *state;
    join(w, 1);
    join(w, 9);
    get(w, 1, 1, id_of(50, 1), MR_SECOND, 3);
    seal(w, 9, id_of(50, 1), grant(w, 9, 8 * MIB), 0, 5000, 0);
    act(w, (struct mr_ostore_event){.type = MR_OE_UNPIN, .client = 1, .id = id_of(50, 1)});
    unhold(w, 1, id_of(50, 1), 0);
    assert_null(effect(w, MR_OX_EVICT));
    assert_int_equal(there(w, id_of(50, 1)), MR_OK);
}

/* Only the store itself may seal a copy of an object of another store. The flag MR_SEAL_ADOPT of
 * any other client is ignored. */
static void what_a_client_seals_is_its_own_whatever_it_says(void **state)
{
    struct world *w = *state;
    join(w, 1);
    act(w, (struct mr_ostore_event){.type = MR_OE_SEAL,
               .client = 1,
               .id = id_of(1, 1),
               .segment = grant(w, 1, 8 * MIB),
               .offset = MR_EXTENT_HEAD,
               .bytes = 100,
               .room = 100 + MR_EXTENT_HEAD,
               .flags = MR_SEAL_ADOPT});
    assert_int_equal(info_of(w, id_of(1, 1)).holders[0].kind, MR_HOLD_CLIENT);
    assert_int_equal(stats_of(w).pulls, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_loss_is_told_once),
        T(what_workers_hold_is_not_asked_for_again),
        T(what_another_client_holds_is_deleted_by_that_client_only),
        T(an_upload_without_another_holder_is_deleted_by_anybody),
        T(only_what_a_job_holds_is_told_as_lost),
        T(a_client_that_goes_takes_all_its_pins_with_it),
        T(a_client_that_goes_takes_nothing_of_others),
        T(the_end_of_a_job_takes_only_what_the_job_held),
        T(what_a_client_seals_is_its_own_whatever_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
