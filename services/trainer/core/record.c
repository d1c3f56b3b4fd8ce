/* Writes a session as a record, and reads it back. A record is a pack (MessagePack): a list of the
 * layout's number and the session's numbers, texts, jobs, members, checkpoints, objects to be
 * erased (doomed) and row plan (rows.h). */
#include "services/trainer/core/rows.h"

#include "base/pack.h"

/* number of the layout; layout 1 lacks the job that feeds the queue; layouts 1 and 2 lack the row
 * plan and the counters of moved parts and bytes */
#define LAYOUT 3
#define NUMBERS 20
#define MEMBER_NUMBERS 12
#define MEMBER_SECONDS 7
#define MEMBER_MOVED 4

struct reader {
    struct mr_pack_reader r;
    bool failed;
};

static struct mr_pack_item next_of(struct reader *r, enum mr_pack_type type)
{
    struct mr_pack_item item = {0};
    if (!r->failed && (mr_pack_next(&r->r, &item) || item.type != type)) r->failed = true;
    return r->failed ? (struct mr_pack_item){0} : item;
}

static uint64_t get_uint(struct reader *r)
{
    struct mr_pack_item item = {0};
    if (r->failed || mr_pack_next(&r->r, &item)) r->failed = true;
    if (item.type == MR_PACK_UINT) return item.u;
    if (item.type != MR_PACK_INT || item.i < 0) r->failed = true;
    return r->failed ? 0 : (uint64_t)item.i;
}

static uint32_t get_text(struct reader *r, char *to, size_t max)
{
    return mr_trainer__copy(to, max, next_of(r, MR_PACK_TEXT).bytes);
}

static double get_float(struct reader *r)
{
    return next_of(r, MR_PACK_FLOAT).f;
}

static mr_object_id get_object(struct reader *r)
{
    mr_object_id id = {0};
    struct mr_pack_item item = next_of(r, MR_PACK_EXT);
    if (item.ext != MR_PACK_EXT_OBJECT || mr_object_id_from_bytes(item.bytes, &id))
        r->failed = true;
    return id;
}

static void put_text(struct mr_buf *out, const char *p, uint32_t n)
{
    mr_pack_text(out, mr_str_of(p, n));
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void write_numbers(const struct session *s, struct mr_buf *out)
{
    const uint64_t numbers[NUMBERS] = {s->hash[0], s->hash[1], s->state, s->phase, s->created_ns,
        s->started_ns, s->ended_ns, s->generation, s->restore_epoch, s->restores, s->incarnations,
        s->change, s->version, s->version_best, s->version_seen, (uint64_t)0, s->has_version,
        s->steps_lost, s->has_restore, s->restore_version};
    mr_pack_list(out, NUMBERS);
    for (uint32_t i = 0; i < NUMBERS; i++)
        mr_pack_uint(out, numbers[i]);
}

static void read_numbers(struct session *s, struct reader *r)
{
    uint64_t n[NUMBERS];
    r->failed |= next_of(r, MR_PACK_LIST).count != NUMBERS;
    for (uint32_t i = 0; i < NUMBERS; i++)
        n[i] = get_uint(r);
    r->failed |= n[2] < MR_TRAINING_PREPARING || n[2] > MR_TRAINING_FAILED ||
                 n[3] < MR_TRAINING_RUN || n[3] > MR_TRAINING_EXIT;
    if (r->failed) return;
    s->hash[0] = n[0];
    s->hash[1] = n[1];
    s->state = (enum mr_training_state)n[2];
    s->phase = (enum mr_training_phase)n[3];
    s->created_ns = n[4];
    s->started_ns = n[5];
    s->ended_ns = n[6];
    s->generation = (uint32_t)n[7];
    s->restore_epoch = (uint32_t)n[8];
    s->restores = (uint32_t)n[9];
    s->incarnations = n[10];
    s->change = n[11];
    s->version = n[12];
    s->version_best = n[13];
    s->version_seen = n[14];
    s->has_version = n[16] != 0;
    s->steps_lost = n[17];
    s->has_restore = n[18] != 0;
    s->restore_version = n[19];
}

static void write_member(const struct member *m, struct mr_buf *out)
{
    const struct mr_training_counters *b = &m->before, *n = &m->now;
    const uint64_t numbers[MEMBER_NUMBERS] = {m->state, m->incarnation, m->restored, m->losses,
        m->best_at_loss, m->version, b->steps + n->steps, b->examples + n->examples,
        MR_MAX(b->epoch, n->epoch), b->gradients_stale + n->gradients_stale,
        b->gradients_lost + n->gradients_lost, b->gradients_applied + n->gradients_applied};
    /* counters of the present incarnation, which goes on after a restart of the trainer */
    const uint64_t own[5] = {
        n->steps, n->examples, n->gradients_stale, n->gradients_lost, n->gradients_applied};
    const double seconds[MEMBER_SECONDS] = {
        b->loss, b->accuracy, b->pull_s, b->push_s, b->wait_s, b->compute_s, b->feed_s};
    mr_pack_list(out, MEMBER_NUMBERS + 5 + MEMBER_SECONDS + 4 + MEMBER_MOVED);
    for (uint32_t i = 0; i < MEMBER_NUMBERS; i++)
        mr_pack_uint(out, numbers[i]);
    for (uint32_t i = 0; i < 5; i++)
        mr_pack_uint(out, own[i]);
    for (uint32_t i = 0; i < MEMBER_SECONDS; i++)
        mr_pack_float(out, seconds[i]);
    put_text(out, m->task, m->task_bytes);
    put_text(out, m->address, m->address_bytes);
    put_text(out, m->node, m->node_bytes);
    put_text(out, m->socket, m->socket_bytes);
    mr_pack_uint(out, b->moved_parts + n->moved_parts);
    mr_pack_uint(out, b->moved_bytes + n->moved_bytes);
    mr_pack_uint(out, n->moved_parts);
    mr_pack_uint(out, n->moved_bytes);
}

static void read_member(struct member *m, struct reader *r, uint64_t layout)
{
    struct mr_training_counters *b = &m->before, *n = &m->now;
    uint64_t v[MEMBER_NUMBERS + 5];
    double f[MEMBER_SECONDS];
    uint64_t moved[MEMBER_MOVED] = {0};
    uint32_t more = layout > 2 ? MEMBER_MOVED : 0;
    r->failed |= next_of(r, MR_PACK_LIST).count != MEMBER_NUMBERS + 5 + MEMBER_SECONDS + 4 + more;
    for (uint32_t i = 0; i < MEMBER_NUMBERS + 5; i++)
        v[i] = get_uint(r);
    for (uint32_t i = 0; i < MEMBER_SECONDS; i++)
        f[i] = get_float(r);
    m->task_bytes = get_text(r, m->task, sizeof m->task);
    m->address_bytes = get_text(r, m->address, sizeof m->address);
    m->node_bytes = get_text(r, m->node, sizeof m->node);
    m->socket_bytes = get_text(r, m->socket, sizeof m->socket);
    for (uint32_t i = 0; i < more; i++)
        moved[i] = get_uint(r);
    r->failed |= v[0] > MR_MEMBER_FINISHED;
    if (r->failed) return;
    m->state = (enum mr_training_member_state)v[0];
    m->incarnation = v[1];
    m->restored = v[2] != 0;
    m->losses = (uint32_t)v[3];
    m->best_at_loss = v[4];
    m->version = v[5];
    *n = (struct mr_training_counters){.steps = v[12],
        .examples = v[13],
        .gradients_stale = v[14],
        .gradients_lost = v[15],
        .gradients_applied = v[16],
        .moved_parts = moved[2],
        .moved_bytes = moved[3]};
    *b = (struct mr_training_counters){.steps = v[6] - n->steps,
        .examples = v[7] - n->examples,
        .epoch = v[8],
        .gradients_stale = v[9] - n->gradients_stale,
        .gradients_lost = v[10] - n->gradients_lost,
        .gradients_applied = v[11] - n->gradients_applied,
        .moved_parts = moved[0] - n->moved_parts,
        .moved_bytes = moved[1] - n->moved_bytes,
        .loss = f[0],
        .accuracy = f[1],
        .pull_s = f[2],
        .push_s = f[3],
        .wait_s = f[4],
        .compute_s = f[5],
        .feed_s = f[6]};
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static void write_checkpoints(
    struct mr_buf *out, const struct checkpoint *checkpoints, uint32_t n, uint32_t shards)
{
    mr_pack_list(out, n);
    for (uint32_t i = 0; i < n; i++) {
        mr_pack_list(out, 3 + shards);
        mr_pack_uint(out, checkpoints[i].version);
        mr_pack_uint(out, checkpoints[i].wall_ns);
        mr_pack_uint(out, checkpoints[i].count);
        for (uint32_t k = 0; k < shards; k++)
            mr_pack_object(out, checkpoints[i].objects[k]);
    }
}

static uint32_t read_checkpoints(
    struct reader *r, struct checkpoint *checkpoints, uint32_t max, uint32_t shards)
{
    uint32_t n = next_of(r, MR_PACK_LIST).count;
    r->failed |= n > max || (n && !shards && max != PENDING_MAX);
    for (uint32_t i = 0; i < n && !r->failed; i++) {
        r->failed |= next_of(r, MR_PACK_LIST).count != 3 + shards;
        checkpoints[i].version = get_uint(r);
        checkpoints[i].wall_ns = get_uint(r);
        checkpoints[i].count = (uint32_t)get_uint(r);
        r->failed |= checkpoints[i].count > shards;
        for (uint32_t k = 0; k < shards && !r->failed; k++)
            checkpoints[i].objects[k] = get_object(r);
    }
    return r->failed ? 0 : n;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Writes the row plan as a list: empty while it is not decided; 1 for the even split; else 1 and a
 * list for each worker. */
static void write_rows(struct mr_buf *out, const struct session *s)
{
    uint32_t workers = s->ranges_ends ? s->document->roles[MR_TRAINING_WORKER] : 0;
    mr_pack_list(out, s->has_rows ? 1 + workers : 0);
    if (s->has_rows) mr_pack_uint(out, 1);
    for (uint32_t w = 0, at = 0; w < workers; w++) {
        mr_pack_list(out, 2 * (s->ranges_ends[w] - at));
        for (; at < s->ranges_ends[w]; at++) {
            mr_pack_uint(out, s->ranges[2 * (size_t)at]);
            mr_pack_uint(out, s->ranges[2 * (size_t)at + 1]);
        }
    }
}

static void read_rows(struct session *s, struct reader *r)
{
    uint32_t n = next_of(r, MR_PACK_LIST).count, workers = s->document->roles[MR_TRAINING_WORKER];
    if (!n) return;
    r->failed |= get_uint(r) != 1 || (n != 1 && n != 1 + workers);
    struct mr_training_rows rows = {.decides = true, .workers = n - 1};
    uint64_t *ranges = mr_alloc_array(2 * (size_t)MR_TRAINING_RANGES_MAX, sizeof *ranges);
    uint32_t *ends = mr_alloc_array(workers + 1, sizeof *ends);
    uint32_t at = 0;
    for (uint32_t w = 0; w < rows.workers && !r->failed; w++) {
        uint32_t count = next_of(r, MR_PACK_LIST).count;
        r->failed |= count % 2 || count / 2 > MR_TRAINING_RANGES_MAX - at;
        for (uint32_t i = 0; i < count && !r->failed; i++)
            ranges[2 * (size_t)at + i] = get_uint(r);
        at += count / 2;
        ends[w] = at;
    }
    rows.ranges = ranges;
    rows.ends = ends;
    if (!r->failed) mr_trainer__rows_take(s, &rows);
    mr_release(ranges);
    mr_release(ends);
}

static uint32_t shards_of(const struct session *s)
{
    return s->document ? mr_training_document_shards(s->document) : 0;
}

void mr_trainer__record_write(struct session *s, struct mr_buf *out)
{
    uint32_t shards = shards_of(s);
    mr_pack_list(out, 12);
    mr_pack_uint(out, LAYOUT);
    write_numbers(s, out);
    put_text(out, s->reason, s->reason_bytes);
    put_text(out, s->request_id, s->request_id_bytes);
    put_text(out, s->channel, s->channel_bytes);
    put_text(out, s->score, s->score_bytes);
    mr_pack_list(out, 16);
    for (int i = 0; i < 2; i++) {
        mr_pack_uint(out, s->job[i].state);
        mr_pack_uint(out, s->job[i].id.v);
        mr_pack_uint(out, s->job[i].outcome);
        mr_pack_uint(out, s->seen[i].ms);
        mr_pack_uint(out, s->seen[i].n);
    }
    mr_pack_uint(out, s->patience.bad_scores * 2ull + s->patience.has_best);
    mr_pack_float(out, s->patience.best);
    mr_pack_object(out, s->model);
    mr_pack_uint(out, s->job[JOB_FEED].state);
    mr_pack_uint(out, s->job[JOB_FEED].id.v);
    mr_pack_uint(out, s->job[JOB_FEED].outcome);
    mr_pack_list(out, s->members_count);
    for (uint32_t i = 0; i < s->members_count; i++)
        write_member(&s->members[i], out);
    write_checkpoints(out, s->checkpoints, s->checkpoints_count, shards);
    write_checkpoints(out, s->pending, PENDING_MAX, shards);
    mr_pack_list(out, s->doomed_count);
    for (uint32_t i = 0; i < s->doomed_count; i++) {
        mr_pack_list(out, 3);
        mr_pack_uint(out, s->doomed[i].version);
        mr_pack_uint(out, s->doomed[i].shard);
        mr_pack_object(out, s->doomed[i].object);
    }
    write_rows(out, s);
}

static void read_job(struct session *s, struct reader *r, enum which_job which)
{
    struct job *j = &s->job[which];
    uint64_t state = get_uint(r);
    j->id.v = get_uint(r);
    uint64_t outcome = get_uint(r);
    r->failed |= state > JOB_ENDED || outcome > MR_TRAINING_JOB_AWAY;
    if (r->failed) return;
    j->state = (enum job_state)state;
    j->outcome = (enum mr_training_job_state)outcome;
    j->may_exist = state == JOB_WANTED;
    j->cancel =
        s->state == MR_TRAINING_FAILED || (which == JOB_FEED && s->state >= MR_TRAINING_STOPPING);
}

static void read_middle(struct session *s, struct reader *r, uint64_t layout)
{
    s->reason_bytes = get_text(r, s->reason, sizeof s->reason);
    s->request_id_bytes = get_text(r, s->request_id, sizeof s->request_id);
    s->channel_bytes = get_text(r, s->channel, sizeof s->channel);
    s->score_bytes = get_text(r, s->score, sizeof s->score);
    r->failed |= next_of(r, MR_PACK_LIST).count != (layout == 1 ? 13 : 16);
    for (int i = 0; i < 2; i++) {
        read_job(s, r, (enum which_job)i);
        s->seen[i].ms = get_uint(r);
        s->seen[i].n = get_uint(r);
    }
    uint64_t scores = get_uint(r);
    s->patience.bad_scores = (uint32_t)(scores / 2);
    s->patience.has_best = scores & 1;
    s->patience.best = get_float(r);
    s->model = get_object(r);
    if (layout > 1) {
        read_job(s, r, JOB_FEED);
    } else if (s->document && s->document->has_feed && s->state < MR_TRAINING_STOPPING) {
        /* The record does not say whether the job exists. If it does, Submit finds it by its
         * request id. */
        s->job[JOB_FEED].state = s->started_ns ? JOB_WANTED : JOB_NONE;
        s->job[JOB_FEED].may_exist = true;
    }
}

static void read_rest(struct session *s, struct reader *r, uint64_t layout)
{
    uint32_t shards = shards_of(s);
    r->failed |= next_of(r, MR_PACK_LIST).count != s->members_count;
    for (uint32_t i = 0; i < s->members_count && !r->failed; i++)
        read_member(&s->members[i], r, layout);
    s->checkpoints_count = read_checkpoints(r, s->checkpoints, MR_TRAINING_KEEP_MAX, shards);
    (void)read_checkpoints(r, s->pending, PENDING_MAX, shards);
    uint32_t n = next_of(r, MR_PACK_LIST).count;
    r->failed |= n > s->doomed_max;
    for (uint32_t i = 0; i < n && !r->failed; i++) {
        r->failed |= next_of(r, MR_PACK_LIST).count != 3;
        s->doomed[i].version = get_uint(r);
        s->doomed[i].shard = (uint32_t)get_uint(r);
        s->doomed[i].object = get_object(r);
        s->doomed_count = i + 1;
    }
    if (layout > 2)
        read_rows(s, r);
    else
        /* releases that wrote layouts 1 and 2 always split the rows evenly */
        s->has_rows = s->started_ns != 0;
}

/* Shows the session as failed, because its record or document cannot be read. So a client can
 * forget the session. */
static void give_up(struct mr_trainer *t, struct session **sp, const struct mr_trainer_event *ev)
{
    struct session *s = *sp;
    if (s->document) {
        struct session *bare = mr_trainer__session_new(t, NULL);
        bare->created_ns = s->created_ns;
        bare->request_id_bytes = mr_trainer__copy(bare->request_id, sizeof bare->request_id,
            mr_str_of(s->request_id, s->request_id_bytes));
        mr_trainer__session_free(&s);
        s = bare;
    }
    s->members_count = 0;
    s->id = ev->session;
    s->durable.change = ++s->change;
    if (!mr_trainer__is_over(s->state)) {
        s->reason_bytes = mr_trainer__copy(s->reason, sizeof s->reason,
            MR_STR("its record or its document cannot be read by this release"));
        s->state = MR_TRAINING_FAILED;
        s->ended_ns = t->wall_ns;
    }
    s->is_dirty = true;
    *sp = s;
}

void mr_trainer__record_read(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct reader r = {.r = mr_pack_read(ev->text)};
    struct mr_training_document *d = ev->document;
    if (t->sessions_count == t->sessions_max || mr_trainer__find(t, ev->session)) {
        mr_training_document_free(&d); /* the session is left out, but its record stays in Redis */
        return;
    }
    struct session *s = mr_trainer__session_new(t, d);
    uint32_t count = next_of(&r, MR_PACK_LIST).count;
    uint64_t layout = get_uint(&r);
    r.failed |= layout < 1 || layout > LAYOUT || count != (layout > 2 ? 12 : 11);
    read_numbers(s, &r);
    if (!r.failed) read_middle(s, &r, layout);
    if (!r.failed && d) read_rest(s, &r, layout);
    s->id = ev->session;
    if (r.failed || !d) give_up(t, &s, ev);
    s->is_known = true;
    s->durable = (struct durable){s->state, s->phase, s->generation, s->restore_epoch,
        s->incarnations, s->change, s->has_rows};
    mr_trainer__add(t, s);
}
