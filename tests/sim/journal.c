/* The journal: records that were appended, and how many of them are acknowledged. A crash keeps the
 * acknowledged records and some of the others. A *life* of the scheduler goes from a start to the
 * next crash. As in services/scheduler/base/journal_link.c, the core numbers its own records, and
 * the journal numbers all records, including those of snapshots. A snapshot consists of ordinary
 * records. Earlier records stay in the journal until the whole snapshot is acknowledged. So a crash
 * during a snapshot may leave the beginning of the snapshot after the earlier records. */
#include "tests/sim/sim.h"
#include "tests/support/scheduler_same.h"

static uint64_t last(const struct sim_journal *j)
{
    return j->base + j->count;
}

static void add(
    struct sim_journal *j, const struct mr_sched_record_head *head, const unsigned char *bytes)
{
    if (j->count == j->room) {
        uint32_t room = j->room ? 2 * j->room : 256;
        j->heads = mr_grow(j->heads, j->room * sizeof *j->heads, room * sizeof *j->heads);
        j->records = mr_grow(j->records, j->room * sizeof *j->records, room * sizeof *j->records);
        j->room = room;
    }
    j->heads[j->count] = *head;
    j->records[j->count++] = mr_copy(bytes, head->bytes ? head->bytes : 1);
}

static void ack_later(struct sim *s)
{
    struct sim_journal *j = &s->journal;
    if (j->is_away) return;
    mr_duration wait = 20 * MR_US + sim_below(s, sim_chance(s, 10) ? 50 * MR_MS : MR_MS);
    uint64_t behind = sim_chance(s, 4) ? sim_below(s, j->count - j->acked + 1) : 0;
    /* Of a write of many records, a part is acknowledged first. */
    if (behind)
        sim_push(s, wait / 2,
            (struct mr_virtual_event){.kind = EV_ACK, .a = s->life, .c = last(j) - behind});
    sim_push(s, wait, (struct mr_virtual_event){.kind = EV_ACK, .a = s->life, .c = last(j)});
}

/* Appends the records of `b`. of_core: the core numbered them, without gaps. */
static void append(struct sim *s, struct mr_buf *b, bool of_core)
{
    struct sim_journal *j = &s->journal;
    for (size_t at = 0; at < b->n;) {
        struct mr_sched_record_head head;
        memcpy(&head, b->p + at, sizeof head);
        at += sizeof head;
        sim_digest_record(s, &head, b->p + at);
        if (of_core && head.sequence != ++j->core_last)
            sim_fail(
                s, "I18: record %" PRIu64 " comes as number %" PRIu64, head.sequence, j->core_last);
        add(j, &head, b->p + at);
        s->figures.journal_bytes += sizeof head + head.bytes;
        if (head.type == MR_RECORD_LOOP)
            sim_loop_record(s, mr_str_of(b->p + at, head.bytes), false);
        if (of_core && head.type == MR_RECORD_EPOCH) j->epoch = mr_sched_epoch(s->sched);
        s->given_up += of_core && head.type == MR_RECORD_WORKER_LOST;
        at += (size_t)mr_align_up(head.bytes, 8);
    }
    mr_buf_clear(b);
}

void sim_journal_take(struct sim *s)
{
    if (!s->fx.journal.n) return;
    append(s, &s->fx.journal, true);
    ack_later(s);
}

/* Drops all records before `sequence`. */
static void drop_before(struct sim_journal *j, uint64_t sequence)
{
    uint32_t n = (uint32_t)(sequence - 1 - j->base);
    mr_assert(n <= j->count);
    if (!n) return; /* there may be no array of records yet */
    for (uint32_t i = 0; i < n; i++)
        mr_release(j->records[i]);
    memmove(j->records, j->records + n, (j->count - n) * sizeof *j->records);
    memmove(j->heads, j->heads + n, (j->count - n) * sizeof *j->heads);
    j->base += n;
    j->count -= n;
    j->acked -= MR_MIN(n, j->acked);
}

void sim_journal_ack(struct sim *s, uint64_t upto)
{
    struct sim_journal *j = &s->journal;
    if (j->is_away || upto <= j->base + j->acked || upto > last(j)) return;
    j->acked = (uint32_t)(upto - j->base);
    if (j->has_snapshot && upto >= j->snapshot_last) {
        j->has_snapshot = j->is_amnesic = false;
        /* not moved: as if the scheduler had died before it could move the start of the journal */
        bool is_moved = !sim_chance(s, 4);
        sim_say(s, "the snapshot is whole%s", is_moved ? ", the journal begins with it" : "");
        if (is_moved) drop_before(j, j->snapshot_first);
    }
    /* A part of a snapshot acknowledges nothing. */
    if (j->has_snapshot && upto >= j->snapshot_first) return;
    uint64_t ahead = last(j) - upto;
    if (j->has_snapshot) ahead -= j->snapshot_last - j->snapshot_first + 1;
    if (ahead > j->core_last) return;
    struct mr_sched_event ev = {.type = MR_SCHED_JOURNAL_ACKED, .sequence = j->core_last - ahead};
    sim_sched_step(s, &ev);
}

void sim_journal_lose_tail(struct sim *s)
{
    struct sim_journal *j = &s->journal;
    uint32_t keep = j->acked + (uint32_t)sim_below(s, j->count - j->acked + 1);
    if (s->plant == PLANT_JOURNAL) keep = j->acked / 2;
    sim_say(s, "the journal keeps %" PRIu32 " of %" PRIu32 " records, %" PRIu32 " were told%s",
        keep, j->count, j->acked, j->has_snapshot ? "; a snapshot was under way" : "");
    while (j->count > keep)
        mr_release(j->records[--j->count]);
    j->acked = keep;
    j->has_snapshot = false;
}

static void snapshot(struct sim *s)
{
    struct sim_journal *j = &s->journal;
    struct mr_buf b;
    mr_buf_init(&b, (size_t)1 << 30);
    mr_sched_snapshot(s->sched, &b);
    j->snapshot_first = last(j) + 1;
    append(s, &b, false);
    j->snapshot_last = last(j);
    j->has_snapshot = j->snapshot_last >= j->snapshot_first;
    j->is_amnesic = j->is_amnesic && j->has_snapshot;
    sim_say(s, "a snapshot of %" PRIu64 " records is on its way",
        j->snapshot_last - j->snapshot_first + 1);
    mr_buf_fini(&b);
    if (j->has_snapshot) ack_later(s);
}

void sim_journal_compact(struct sim *s)
{
    struct sim_journal *j = &s->journal;
    if (!s->sched || j->is_away || j->has_snapshot) return;
    sim_journal_take(s);
    snapshot(s);
}

/* Redis comes back empty: all its data is gone, and the scheduler writes a snapshot. */
void sim_journal_empty(struct sim *s)
{
    struct sim_journal *j = &s->journal;
    if (!s->sched || j->is_away) return;
    sim_say(s, "Redis comes back empty");
    sim_journal_take(s);
    drop_before(j, last(j) + 1);
    j->has_snapshot = false;
    /* Until the snapshot is written, a crash of the scheduler loses jobs, as documented. */
    j->is_amnesic = true;
    snapshot(s);
}

void sim_journal_away(struct sim *s, bool is_away)
{
    struct sim_journal *j = &s->journal;
    if (!s->sched || j->is_away == is_away) return;
    j->is_away = is_away;
    sim_say(s, "the journal is %s", is_away ? "away" : "back");
    struct mr_sched_event ev = {.type = is_away ? MR_SCHED_JOURNAL_AWAY : MR_SCHED_JOURNAL_BACK};
    sim_sched_step(s, &ev);
    if (!is_away && j->count > j->acked) ack_later(s);
}

/* ---- a Redis that rewinds ------------------------------------------------------------------- */

static void copy_to(const struct sim_journal *from, struct sim_journal *to)
{
    sim_journal_fini(to);
    for (uint32_t i = 0; i < from->count; i++)
        add(to, &from->heads[i], from->records[i]);
    to->base = from->base;
    to->acked = from->count;
    to->epoch = from->epoch;
}

/* Called when a scheduler starts. Saves a copy of the journal for sim_journal_rewind. */
void sim_journal_save(struct sim *s)
{
    if (s->has_rewinds) copy_to(&s->journal, &s->copy);
}

/* Redis and the scheduler die. Redis comes back empty, or with the journal that the last scheduler
 * found at its start. Jobs that are not in this journal are lost, as documented. The jobs that are
 * in it go back to the state that they have there. So their clients may see other values than
 * before. */
void sim_journal_rewind(struct sim *s)
{
    static const struct sim_journal nothing;
    bool is_empty = sim_chance(s, 2);
    copy_to(is_empty ? &nothing : &s->copy, &s->journal);
    s->count.rewinds++;
    s->losses++;
    sim_say(s, "Redis comes back %s, with epoch %" PRIu32,
        is_empty ? "empty" : "from an older copy", s->journal.epoch);
    for (uint32_t i = 0; i < s->jobs_count; i++) {
        struct sim_job *j = &s->jobs[i];
        j->final = MR_JOB_NONE;
        memset(j->ends, 0, sizeof j->ends);
        for (uint32_t k = 0; k < s->specs[j->spec].graph->nodes_count; k++)
            j->task[k].has_seen = false;
    }
}

/* Finds the jobs that were lost. Their clients submit them again. */
static void look_for_jobs(struct sim *s)
{
    struct mr_sched_job_info info;
    for (uint32_t i = 0; i < s->jobs_count; i++) {
        struct sim_job *j = &s->jobs[i];
        struct sim_spec *x = &s->specs[j->spec];
        if (j->is_lost || mr_sched_job(s->sched, (mr_job_id){j->id}, &info)) continue;
        if (!s->losses || j->may_be_gone) continue;
        j->is_lost = true;
        s->count.lost_jobs++;
        if (!x->is_accepted || x->id != j->id) continue;
        sim_say(s, "job %" PRIu32 " is lost, and is submitted again", j->spec);
        x->is_accepted = false;
        sim_push(
            s, sim_below(s, MR_SECOND), (struct mr_virtual_event){.kind = EV_SUBMIT, .a = j->spec});
    }
}

/* Checks I36: the id of an accepted job is new. No other job had it in this or an earlier life of
 * the scheduler, and a lost job that is submitted again gets another id. */
void sim_journal_check_job(struct sim *s, uint64_t id, uint32_t spec)
{
    const struct sim_job *j = sim_job_of(s, id);
    if (j && (j->is_lost || j->spec != spec))
        sim_fail(s, "I36: job %" PRIu32 " has the id %" PRIx64 " of job %" PRIu32 "%s", spec, id,
            j->spec, j->is_lost ? ", which is lost" : "");
}

/* Checks I36: the scheduler adopts no value of a job that is unknown or lost. A worker may still
 * have such a value from an earlier life of the scheduler. */
void sim_journal_check_adopted(struct sim *s, const struct mr_sched_refs_out *adopt)
{
    const uint64_t n = adopt->count ? adopt->runs.count : 0;
    for (uint64_t i = 0; i < n; i++) {
        const struct sim_job *j = sim_job_of(s, adopt->runs.p[i].job.v);
        if (!j || j->is_lost)
            sim_fail(s, "I36: a value of job %" PRIx64 " is adopted, which is of another life",
                adopt->runs.p[i].job.v);
    }
}

/* Checks I19: the scheduler's epoch is above any epoch that the worker has got from another
 * scheduler. */
void sim_journal_check_epoch(struct sim *s, const struct mr_ws_register *r)
{
    if (!r->scheduler || r->scheduler == s->config.incarnation) return;
    if (mr_sched_epoch(s->sched) <= r->epoch)
        sim_fail(s, "I19: epoch %" PRIu32 " is not above %" PRIu32 ", which a worker has seen",
            mr_sched_epoch(s->sched), r->epoch);
}

void sim_journal_replay(struct sim *s)
{
    struct sim_journal *j = &s->journal;
    unsigned char other[24];
    sim_loop_forget(s);
    for (uint32_t i = 0; i < j->count; i++) {
        struct mr_sched_event ev = {.type = MR_SCHED_RECORD, .sequence = j->base + i + 1};
        ev.record.type = j->heads[i].type;
        struct mr_str bytes = mr_str_of(j->records[i], j->heads[i].bytes);
        bool is_loop = j->heads[i].type == MR_RECORD_LOOP;
        ev.record.bytes = is_loop ? sim_loop_plant(s, bytes, other) : bytes;
        if (s->plant != PLANT_RECORD || j->heads[i].type != MR_RECORD_VALUES)
            sim_sched_step(s, &ev);
        if (is_loop) sim_loop_record(s, bytes, true);
        sim_guard_record(s, j->heads[i].type, bytes);
    }
    struct mr_sched_event ev = {.type = MR_SCHED_RECOVERED, .sequence = last(j)};
    j->core_last = last(j);
    sim_sched_step(s, &ev);
    char why[128];
    if (!sched_is_same_when_read_again(s->sched, &s->config, s->now, why))
        sim_fail(s, "I18: the snapshot of what was read is not the same when it is read: %s", why);
    sim_guard_replayed(s);
    if (s->has_rewinds) look_for_jobs(s);
}

void sim_journal_fini(struct sim_journal *j)
{
    for (uint32_t i = 0; i < j->count; i++)
        mr_release(j->records[i]);
    mr_release(j->heads);
    mr_release(j->records);
    *j = (struct sim_journal){0};
}
