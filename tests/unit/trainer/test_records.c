/* The trainer's core: a record holds all of a session. A trainer that reads the record goes on as
 * if there had been no restart. A record of an older release is read, too. */
#include "base/pack.h"
#include "tests/unit/trainer/rig.h"

#define DOCUMENT                                                                                   \
    "{" MODEL ",\"graph\":{\"tasks\":{}},\"name\":\"n\",\"channel\":\"c\","                        \
    "\"roles\":{\"ps\":2,\"worker\":2},\"checkpoint\":{\"every_steps\":10,\"keep\":3},"            \
    "\"stop\":{\"patience\":{\"field\":\"accuracy\",\"scores\":9,\"mode\":\"max\"},"               \
    "\"threshold\":{\"field\":\"v\",\"below\":-5,\"channel\":\"v\"}}}"

static void ps(struct rig *r, uint32_t shard, uint64_t incarnation, uint64_t version)
{
    const struct mr_training_report p = {.version = version,
        .checkpoint_version = version,
        .checkpoint_object = {shard + 1, version},
        .counters = {.gradients_applied = version, .gradients_stale = 2, .gradients_lost = 1}};
    assert_int_equal(report(r, MR_TRAINING_PS, shard, incarnation, p), MR_OK);
}

static void join_on(
    struct rig *r, enum mr_training_role role, uint32_t index, const char *task, const char *node)
{
    step(r, (struct mr_trainer_event){.type = MR_TE_JOIN,
                .ticket = ++r->ticket,
                .session = r->id,
                .role = role,
                .index = index,
                .wait = MR_SECOND,
                .join = {mr_str(task), MR_STR("h:1"), mr_str(node), MR_STR("/s")}});
}

static uint64_t incarnation(struct rig *r, uint32_t at)
{
    struct mr_training_member_info m;
    mr_trainer_member(r->t, r->id, at, &m);
    return m.incarnation;
}

static void work(struct rig *r, uint32_t index, uint64_t steps)
{
    const struct mr_training_report p = {.counters = {.steps = steps,
                                             .examples = 64 * steps,
                                             .epoch = steps / 10,
                                             .loss = 0.5,
                                             .accuracy = 0.25,
                                             .pull_s = 1,
                                             .push_s = 2,
                                             .wait_s = 3,
                                             .compute_s = 4,
                                             .feed_s = 5,
                                             .gradients_stale = 6,
                                             .gradients_lost = 7,
                                             .moved_parts = 8,
                                             .moved_bytes = 900}};
    assert_int_equal(report(r, MR_TRAINING_WORKER, index, incarnation(r, 2 + index), p), MR_OK);
}

static void said(struct rig *r, const char *channel, unsigned n, const char *json)
{
    char entry[32];
    (void)snprintf(entry, sizeof entry, "%u-%u", 7000 + n, n);
    step(r, (struct mr_trainer_event){.type = MR_TE_ENTRY,
                .channel = mr_str(channel),
                .entry = mr_str(entry),
                .text = mr_str(json)});
}

static void begin(struct rig *r)
{
    assert_int_equal(start(r, "request", DOCUMENT), MR_OK);
    step(r, (struct mr_trainer_event){
                .type = MR_TE_LOCATED, .channel = MR_STR("c"), .entry = MR_STR("6000-1")});
    step(r, (struct mr_trainer_event){
                .type = MR_TE_LOCATED, .channel = MR_STR("v"), .entry = MR_STR("6500-2")});
    r->now += MR_SECOND;
    job(r, false, MR_TRAINING_JOB_DONE, "");
    r->now += MR_SECOND;
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    join_on(r, MR_TRAINING_PS, 0, "j1-2/0/1", "n");
    join_on(r, MR_TRAINING_PS, 1, "j1-2/1/1", "m");
    join_on(r, MR_TRAINING_WORKER, 0, "j1-2/2/1", "n");
    join_on(r, MR_TRAINING_WORKER, 1, "j1-2/3/1", "m");
    join_on(r, MR_TRAINING_SCORER, 0, "j1-2/4/1", "n");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

/* Makes a session that has at least one of everything in a record: complete, incomplete and doomed
 * checkpoints, a restore, losses, scores, rows, and counters of two incarnations. Redis does not
 * have the last changes. */
static void live(struct rig *r)
{
    static const uint64_t ranges[] = {10, 5, 30, 5, 0, 10};
    static const uint32_t ends[] = {2, 3};
    begin(r);
    step(r, (struct mr_trainer_event){.type = MR_TE_ROWS,
                .ticket = ++r->ticket,
                .session = r->id,
                .role = MR_TRAINING_WORKER,
                .incarnation = incarnation(r, 2),
                .rows = {true, ranges, ends, 2}});
    work(r, 0, 30);
    for (uint64_t v = 10; v <= 20; v += 10)
        for (uint32_t shard = 0; shard < 2; shard++)
            ps(r, shard, incarnation(r, shard), v);
    (void)report(
        r, MR_TRAINING_PS, 0, incarnation(r, 0), (struct mr_training_report){.version = 64});
    said(r, "c", 1, "{\"accuracy\": 0.5}");
    for (unsigned n = 2; n <= 4; n++) /* three scores without a gain */
        said(r, "c", n, "{\"accuracy\": 0.25}");
    said(r, "v", 3, "{\"v\": 3}");
    join_on(r, MR_TRAINING_WORKER, 0, "j1-2/2/2", "n");
    join_on(r, MR_TRAINING_PS, 1, "j1-2/1/2", "m");
    join_on(r, MR_TRAINING_PS, 1, "j1-2/1/3", "m");
    (void)report(r, MR_TRAINING_PS, 0, incarnation(r, 0), (struct mr_training_report){0});
    (void)report(r, MR_TRAINING_PS, 1, incarnation(r, 1), (struct mr_training_report){0});
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    work(r, 0, 7);
    work(r, 1, 9);
    ps(r, 0, incarnation(r, 0), 25);
    ps(r, 0, incarnation(r, 0), 30);
    ps(r, 0, incarnation(r, 0), 40);
    r->holds = true;
    r->now += MR_SECOND;
    /* Now both shards have stored version 40, so this checkpoint is complete. The incomplete
     * checkpoints of versions 25 and 30 are doomed: they are to be erased. */
    ps(r, 1, incarnation(r, 1), 40);
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_AWAY});
}

static void assert_same_texts(struct mr_str a, struct mr_str b)
{
    assert_int_equal(a.n, b.n);
    if (a.n) assert_memory_equal(a.p, b.p, a.n);
}

static void assert_shown_the_same(struct rig *a, struct rig *b)
{
    struct mr_training_info x = look(a), y = look(b);
    assert_int_equal(x.state, y.state);
    assert_true(x.created_ns == y.created_ns && x.started_ns == y.started_ns);
    assert_true(x.ended_ns == y.ended_ns && x.change == y.change);
    assert_int_equal(x.version, y.version);
    assert_int_equal(x.generation, y.generation);
    assert_int_equal(x.restore_epoch, y.restore_epoch);
    assert_int_equal(x.restores, y.restores);
    assert_true(x.graph_job.v == y.graph_job.v && x.role_job.v == y.role_job.v);
    assert_true(mr_object_id_eq(x.model_object, y.model_object));
    assert_int_equal(x.checkpoint.version, y.checkpoint.version);
    assert_int_equal(x.restore.version, y.restore.version);
    assert_int_equal(x.counters.steps_lost, y.counters.steps_lost);
    assert_int_equal(x.counters.examples, y.counters.examples);
    assert_same_texts(x.reason, y.reason);
    assert_same_texts(x.request_id, y.request_id);
    assert_same_texts(x.channel, y.channel);
    assert_same_texts(x.score_json, y.score_json);
    for (uint32_t i = 0; i < x.members_count; i++) {
        struct mr_training_member_info m, n;
        mr_trainer_member(a->t, a->id, i, &m);
        mr_trainer_member(b->t, b->id, i, &n);
        assert_int_equal(m.state, n.state);
        assert_int_equal(m.incarnation, n.incarnation);
        assert_same_texts(m.task, n.task);
        assert_same_texts(m.address, n.address);
        assert_same_texts(m.node, n.node);
        assert_same_texts(m.socket, n.socket);
        assert_int_equal(m.counters.steps, n.counters.steps);
    }
}

/* Lets both trainers write the session once more. The records must be equal, so nothing of the
 * record was lost. */
static void assert_writes_the_same(struct rig *a, struct rig *b)
{
    a->holds = b->holds = true;
    stop_it(a, false);
    step(a, (struct mr_trainer_event){.type = MR_TE_REDIS_BACK});
    stop_it(b, false);
    assert_true(a->record_bytes > 0);
    assert_int_equal(a->record_bytes, b->record_bytes);
    assert_memory_equal(a->record, b->record, a->record_bytes);
    a->holds = b->holds = false;
    step(a, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = a->sequence});
    step(b, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = b->sequence});
    assert_shown_the_same(a, b);
}

static void a_record_has_all_of_a_session(void **state)
{
    struct rig *r = *state, next;
    live(r);
    read_by(r, &next, DOCUMENT, mr_str_of(r->record, r->record_bytes));
    assert_int_equal(look(&next).checkpoint.version, 40);
    assert_int_equal(look(&next).restores, 2);
    assert_int_equal(look(&next).counters.steps_lost, 44);
    assert_writes_the_same(r, &next);
    /* The checkpoints of versions 25 and 30 were never complete. Their stored shards are erased. */
    assert_int_equal(next.erased_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct mr_trainer_effect *x = &next.erased[i];
        assert_int_equal(x->version, i ? 30 : 25);
        assert_int_equal(x->index, 0);
        assert_true(x->session.v == r->id.v);
        assert_true(mr_object_id_eq(x->object, (mr_object_id){1, x->version}));
    }
    static const uint64_t rows[] = {10, 5, 30, 5, 0, 10};
    for (uint32_t w = 0; w < 2; w++) {
        const uint64_t *ranges = NULL;
        uint32_t count = 0;
        assert_true(mr_trainer_rows(next.t, next.id, w, &ranges, &count));
        assert_int_equal(count, w ? 1 : 2);
        assert_memory_equal(ranges, rows + 4 * (size_t)w, 2 * count * sizeof *ranges);
    }
    rig_end(&next);
}

/* A client that repeats its request finds the session that it started before the restart. */
static void a_request_is_known_after_a_restart(void **state)
{
    struct rig *r = *state, next;
    begin(r);
    read_by(r, &next, DOCUMENT, mr_str_of(r->record, r->record_bytes));
    assert_int_equal(start(&next, "request", DOCUMENT), MR_OK);
    assert_true(next.last[MR_TX_STARTED].existed);
    assert_true(next.last[MR_TX_STARTED].session.v == r->id.v);
    assert_int_equal(start(&next, "request", "{" MODEL "}"), MR_EEXIST);
    rig_end(&next);
}

/* ---- other releases -------------------------------------------------------------------------- */

static struct mr_pack_item copy_item(struct mr_pack_reader *in, struct mr_buf *out)
{
    size_t at = in->at;
    struct mr_pack_item item;
    assert_int_equal(mr_pack_next(in, &item), MR_OK);
    mr_buf_add(out, in->p + at, in->at - at);
    return item;
}

static void skip_items(struct mr_pack_reader *in, uint32_t n)
{
    struct mr_pack_item item;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(mr_pack_next(in, &item), MR_OK);
}

static void copy_items(struct mr_pack_reader *in, struct mr_buf *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        (void)copy_item(in, out);
}

/* Copies a list of `count` items without its last `without` items, which the older release did not
 * have. */
static void copy_list(
    struct mr_pack_reader *in, struct mr_buf *out, uint32_t count, uint32_t without)
{
    skip_items(in, 1);
    mr_pack_list(out, count - without);
    copy_items(in, out, count - without);
    skip_items(in, without);
}

/* Writes the record again in layout 1 or 2, which older releases used. Layout 1 lacks the job that
 * feeds the queue. Both lack the row plan and the counters of moved parts and bytes. */
static void as_older(struct mr_str record, uint64_t layout, uint32_t members, struct mr_buf *out)
{
    struct mr_pack_reader in = mr_pack_read(record);
    skip_items(&in, 2);
    mr_pack_list(out, 11);
    mr_pack_uint(out, layout);
    copy_list(&in, out, 20, 0);
    copy_items(&in, out, 4);
    copy_list(&in, out, 16, layout == 1 ? 3 : 0);
    (void)copy_item(&in, out);
    for (uint32_t i = 0; i < members; i++)
        copy_list(&in, out, 32, 4);
    for (uint32_t i = 0; i < 3; i++) { /* complete, incomplete and doomed checkpoints */
        uint32_t n = copy_item(&in, out).count;
        for (uint32_t k = 0; k < n; k++)
            copy_items(&in, out, copy_item(&in, out).count);
    }
}

static void records_of_older_releases_are_read(void **state)
{
    struct rig *r = *state, next;
    struct mr_buf older;
    live(r);
    for (uint64_t layout = 1; layout <= 2; layout++) {
        mr_buf_init(&older, 65536);
        as_older(mr_str_of(r->record, r->record_bytes), layout, 5, &older);
        read_by(r, &next, DOCUMENT, mr_buf_str(&older));
        struct mr_training_info info = look(&next);
        assert_int_equal(info.state, MR_TRAINING_RUNNING);
        assert_int_equal(info.checkpoint.version, 40);
        assert_int_equal(info.restores, 2);
        assert_int_equal(info.counters.examples, 64 * (30 + 7 + 9));
        assert_int_equal(info.counters.moved_parts, 0);
        const uint64_t *ranges = NULL;
        uint32_t count = 0;
        assert_true(mr_trainer_rows(next.t, next.id, 0, &ranges, &count)); /* the even split */
        assert_int_equal(count, 0);
        assert_int_equal(next.seen[MR_TX_JOB_SUBMIT], 0);
        rig_end(&next);
        mr_buf_fini(&older);
    }
}

/* Layout 1 did not say whether the feed was submitted. The scheduler finds the feed's job by the
 * request id. */
static void the_feed_of_the_oldest_release_is_found_again(void **state)
{
    struct rig *r = *state, next;
    struct mr_buf older;
    assert_int_equal(start(r, "", FEED), MR_OK);
    for (uint32_t is_running = 0; is_running < 2; is_running++) {
        if (is_running) {
            job(r, true, MR_TRAINING_JOB_GOES_ON, "");
            (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
            (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
            (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
            assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
        } else {
            job(r, false, MR_TRAINING_JOB_DONE, "");
        }
        mr_buf_init(&older, 65536);
        as_older(mr_str_of(r->record, r->record_bytes), 1, 3, &older);
        read_by(r, &next, FEED, mr_buf_str(&older));
        tick(&next, MR_MS);
        assert_int_equal(next.last[MR_TX_JOB_SUBMIT].feed, is_running);
        step(&next, (struct mr_trainer_event){
                        .type = MR_TE_STOP, .ticket = 1, .session = next.id, .abandon = true});
        step(&next,
            (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = 2, .session = next.id});
        assert_int_equal(next.last[MR_TX_FORGOTTEN].err, MR_EAWAY);
        rig_end(&next);
        mr_buf_fini(&older);
    }
}

/* ---- what cannot be read --------------------------------------------------------------------- */

/* Checks that the record is refused with item `n` replaced by `item`. */
static void assert_refused(struct rig *r, uint32_t n, struct mr_str item)
{
    struct mr_pack_reader in = mr_pack_read(mr_str_of(r->record, r->record_bytes));
    struct mr_buf out;
    struct rig next;
    mr_buf_init(&out, 65536);
    copy_items(&in, &out, n);
    skip_items(&in, 1);
    mr_buf_add_str(&out, item);
    mr_buf_add(&out, in.p + in.at, in.n - in.at);
    read_by(r, &next, DOCUMENT, mr_buf_str(&out));
    if (look(&next).state != MR_TRAINING_FAILED) fail_msg("item %u: 0x%02x is taken", n, item.p[0]);
    rig_end(&next);
    mr_buf_fini(&out);
}

static void what_no_release_has_written_is_not_taken(void **state)
{
    static const struct {
        uint32_t item;
        uint64_t number;
    } wrong[] = {
        {0, 1},           /* a number instead of the list of all other items */
        {1, 0}, {1, 4},   /* the layout */
        {2, 20},          /* a number instead of the list that has items 3 to 22 */
        {5, 0}, {5, 8},   /* the state */
        {6, 0}, {6, 5},   /* the phase */
        {23, 1},          /* the reason is not a text */
        {28, 4},          /* the state of the graph's job */
        {30, 6},          /* the outcome of the graph's job */
        {41, 4}, {43, 6}, /* state and outcome of the feed's job */
        {46, 4},          /* the state of the session's first member */
    };
    struct rig *r = *state;
    struct mr_buf item;
    live(r);
    mr_buf_init(&item, 16);
    for (size_t i = 0; i < MR_ARRAY_LEN(wrong); i++) {
        mr_buf_clear(&item);
        mr_pack_uint(&item, wrong[i].number);
        assert_refused(r, wrong[i].item, mr_buf_str(&item));
    }
    mr_buf_fini(&item);
}

static void a_record_with_items_of_other_types_is_not_taken(void **state)
{
    struct rig *r = *state, next;
    struct mr_buf item;
    live(r);
    mr_buf_init(&item, 1024);
    mr_pack_int(&item, -1);
    /* item 14 is the number of the session's latest change */
    assert_refused(r, 14, mr_buf_str(&item));
    mr_buf_clear(&item);
    mr_pack_text(&item, MR_STR("7"));
    assert_refused(r, 14, mr_buf_str(&item));
    mr_buf_clear(&item);
    mr_pack_input(&item, 1);
    assert_refused(r, 40, mr_buf_str(&item)); /* the model is not an object */
    mr_buf_clear(&item);
    mr_pack_ext(&item, MR_PACK_EXT_OBJECT, MR_STR("short"));
    assert_refused(r, 40, mr_buf_str(&item));
    mr_buf_fini(&item);
    /* The document has another number of members than the record. */
    read_by(r, &next, "{" MODEL "}", mr_str_of(r->record, r->record_bytes));
    assert_int_equal(look(&next).state, MR_TRAINING_FAILED);
    says(look(&next).reason, "its record or its document cannot be read by this release");
    rig_end(&next);
}

/* Lets another trainer read the record with item `n` replaced by `part`. Returns the state of the
 * session there. */
static enum mr_training_state with_part(struct rig *r, uint32_t n, const struct mr_buf *part)
{
    struct mr_pack_reader in = mr_pack_read(mr_str_of(r->record, r->record_bytes));
    struct mr_buf out;
    struct rig next;
    mr_buf_init(&out, 65536);
    uint32_t parts = copy_item(&in, &out).count;
    for (uint32_t i = 0; i < parts; i++) {
        struct mr_str old;
        assert_int_equal(mr_pack_skip(&in, &old), MR_OK);
        mr_buf_add_str(&out, i == n ? mr_buf_str(part) : old);
    }
    read_by(r, &next, DOCUMENT, mr_buf_str(&out));
    enum mr_training_state state = look(&next).state;
    rig_end(&next);
    mr_buf_fini(&out);
    return state;
}

static void a_record_of_too_many_or_too_few_is_not_taken(void **state)
{
    enum { CHECKPOINTS = 8, DOOMED = 10, ROWS };
    struct rig *r = *state;
    struct mr_buf part;
    live(r);
    for (uint32_t n = 64; n <= 65; n++) { /* the limit is 32 objects for each of two shards */
        mr_buf_init(&part, 65536);
        mr_pack_list(&part, n);
        for (uint32_t i = 0; i < n; i++) {
            mr_pack_list(&part, 3);
            mr_pack_uint(&part, 1);
            mr_pack_uint(&part, 0);
            mr_pack_object(&part, (mr_object_id){7, i});
        }
        assert_int_equal(
            with_part(r, DOOMED, &part), n == 64 ? MR_TRAINING_RUNNING : MR_TRAINING_FAILED);
        mr_buf_fini(&part);
    }
    /* Forms of the record's part ROWS: a number, then `lists` lists of `items` numbers each. */
    static const struct {
        uint32_t number, lists, items;
        enum mr_training_state state;
    } rows[] = {
        {1, 0, 0, MR_TRAINING_RUNNING},
        {2, 0, 0, MR_TRAINING_FAILED},
        {1, 2, 4, MR_TRAINING_RUNNING},
        {1, 2, 3, MR_TRAINING_FAILED}, /* a range is a pair of numbers */
        {1, 1, 4, MR_TRAINING_FAILED}, /* a list for only one of two workers */
        {1, 3, 4, MR_TRAINING_FAILED},
    };
    for (size_t k = 0; k < MR_ARRAY_LEN(rows); k++) {
        mr_buf_init(&part, 65536);
        mr_pack_list(&part, 1 + rows[k].lists);
        mr_pack_uint(&part, rows[k].number);
        for (uint32_t i = 0; i < rows[k].lists; i++) {
            mr_pack_list(&part, rows[k].items);
            for (uint32_t n = 0; n < rows[k].items; n++)
                mr_pack_uint(&part, 1);
        }
        if (with_part(r, ROWS, &part) != rows[k].state) fail_msg("rows %zu", k);
        mr_buf_fini(&part);
    }
    mr_buf_init(&part, 65536);
    mr_pack_list(&part, 17); /* one checkpoint more than the core keeps */
    for (uint32_t i = 0; i < 17; i++) {
        mr_pack_list(&part, 5);
        for (uint32_t n = 0; n < 3; n++)
            mr_pack_uint(&part, n ? 1 : i);
        for (uint32_t shard = 0; shard < 2; shard++)
            mr_pack_object(&part, (mr_object_id){7, i});
    }
    assert_int_equal(with_part(r, CHECKPOINTS, &part), MR_TRAINING_FAILED);
    mr_buf_fini(&part);
}

/* The session is shown as failed, under its request id, so that a client can forget it. */
static void a_session_that_cannot_be_read_is_shown_and_can_be_forgotten(void **state)
{
    struct rig *r = *state, next;
    live(r);
    uint64_t change = look(r).change;
    read_by(r, &next, DOCUMENT, mr_str_of(r->record, r->record_bytes - 1));
    struct mr_training_info info = look(&next);
    assert_int_equal(info.state, MR_TRAINING_FAILED);
    assert_true(info.created_ns == look(r).created_ns);
    assert_int_equal(info.ended_ns, WALL + next.now);
    assert_same_texts(info.request_id, MR_STR("request"));
    says(info.reason, "cannot be read by this release");
    assert_int_equal(info.members_count, 0);
    assert_true(info.change > 0 && change > 0);
    assert_int_equal(next.seen[MR_TX_WRITE], 1);
    assert_false(next.last[MR_TX_WRITE].with_document);
    step(&next, (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = 1, .session = next.id});
    assert_int_equal(next.last[MR_TX_FORGOTTEN].err, MR_OK);
    assert_int_equal(next.seen[MR_TX_DELETE], 1);
    rig_end(&next);
}

/* An ended session needs no document. If its document is missing, the session stays unchanged. */
static void an_ended_session_outlives_its_document(void **state)
{
    struct rig *r = *state;
    struct mr_trainer_config c;
    mr_trainer_config_default(&c);
    c.epoch = 2;
    (void)run(r, "");
    stop_it(r, true);
    step(
        r, (struct mr_trainer_event){.type = MR_TE_JOB_CANCELLED, .session = r->id, .roles = true});
    struct mr_training_info info = look(r), after;
    assert_int_equal(info.state, MR_TRAINING_FAILED);
    struct mr_trainer *t = mr_trainer_new(&c);
    struct mr_trainer_event ev = {.type = MR_TE_RECORD,
        .session = r->id,
        .wall_ns = WALL + 99 * MR_SECOND,
        .text = mr_str_of(r->record, r->record_bytes)};
    mr_trainer_step(t, r->now, &ev, &r->fx);
    ev.type = MR_TE_RECOVERED;
    mr_trainer_step(t, r->now, &ev, &r->fx);
    mr_trainer_check(t);
    assert_int_equal(mr_trainer_info(t, r->id, &after), MR_OK);
    assert_int_equal(after.state, MR_TRAINING_FAILED);
    assert_null(after.document);
    assert_true(after.ended_ns == info.ended_ns && after.created_ns == info.created_ns);
    assert_same_texts(after.reason, info.reason);
    assert_int_equal(mr_trainer_document(t, r->id).n, 0);
    mr_trainer_effects_clear(&r->fx);
    mr_trainer_free(&t);
}

/* A second record of one session is not taken, and neither is a record beyond the limits. Redis
 * keeps both. */
static void a_record_too_many_is_left_alone(void **state)
{
    struct rig *r = *state;
    struct mr_trainer_config c;
    mr_trainer_config_default(&c);
    c.epoch = 2;
    c.live_max = c.ended_max = 1;
    (void)run(r, "");
    struct mr_trainer *t = mr_trainer_new(&c);
    for (uint64_t i = 0; i < 6; i++) {
        struct mr_trainer_event ev = {.type = MR_TE_RECORD,
            .session = {r->id.v + i / 2},
            .text = mr_str_of(r->record, r->record_bytes)};
        assert_int_equal(
            mr_training_document_parse(MR_STR("{" MODEL "}"), &ev.document, NULL), MR_OK);
        mr_trainer_step(t, r->now, &ev, &r->fx);
        assert_int_equal(mr_trainer_count(t, MR_TRAINING_RUNNING), i / 2 + 1);
    }
    struct mr_trainer_event more = {.type = MR_TE_RECORD,
        .session = {r->id.v + 9},
        .text = mr_str_of(r->record, r->record_bytes)};
    assert_int_equal(
        mr_training_document_parse(MR_STR("{" MODEL "}"), &more.document, NULL), MR_OK);
    mr_trainer_step(t, r->now, &more, &r->fx);
    assert_int_equal(mr_trainer_count(t, MR_TRAINING_RUNNING), 3);
    mr_trainer_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_record_has_all_of_a_session),
        TEST(records_of_older_releases_are_read),
        TEST(the_feed_of_the_oldest_release_is_found_again),
        TEST(what_no_release_has_written_is_not_taken),
        TEST(a_session_that_cannot_be_read_is_shown_and_can_be_forgotten),
        TEST(an_ended_session_outlives_its_document),
        TEST(a_record_too_many_is_left_alone),
        TEST(a_request_is_known_after_a_restart),
        TEST(a_record_with_items_of_other_types_is_not_taken),
        TEST(a_record_of_too_many_or_too_few_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
