/* The journal: what was appended, how much of it is acknowledged. A crash keeps all that was
 * acknowledged and some of the rest. */
#include "tests/sim/sim.h"

static void add(struct sim *s, const struct mr_sched_record_head *head, const unsigned char *bytes)
{
    if (s->records_count == s->records_room) {
        uint32_t room = s->records_room ? 2 * s->records_room : 256;
        s->heads = mr_grow(s->heads, s->records_room * sizeof *s->heads, room * sizeof *s->heads);
        s->records =
            mr_grow(s->records, s->records_room * sizeof *s->records, room * sizeof *s->records);
        s->records_room = room;
    }
    s->heads[s->records_count] = *head;
    s->records[s->records_count++] = mr_copy(bytes, head->bytes ? head->bytes : 1);
}

void sim_journal_take(struct sim *s)
{
    uint32_t before = s->records_count;
    for (size_t at = 0; at < s->fx.journal.n;) {
        struct mr_sched_record_head head;
        memcpy(&head, s->fx.journal.p + at, sizeof head);
        at += sizeof head;
        if (head.sequence != s->journal_base + s->records_count + 1)
            sim_fail(s, "I18: record %" PRIu64 " follows %" PRIu64, head.sequence,
                s->journal_base + s->records_count);
        add(s, &head, s->fx.journal.p + at);
        at += (size_t)mr_align_up(head.bytes, 8);
    }
    mr_buf_clear(&s->fx.journal);
    if (s->records_count == before || s->journal_away) return;
    mr_duration wait = 20 * MR_US + sim_below(s, sim_chance(s, 10) ? 50 * MR_MS : MR_MS);
    sim_push(s, wait,
        (struct sim_ev){.kind = EV_ACK, .a = s->life, .c = s->journal_base + s->records_count});
}

void sim_journal_ack(struct sim *s, uint64_t upto)
{
    if (s->journal_away || upto <= s->journal_base + s->records_acked) return;
    s->records_acked = (uint32_t)(upto - s->journal_base);
    struct mr_sched_event ev = {.type = MR_SCHED_JOURNAL_ACKED, .sequence = upto};
    sim_sched_step(s, &ev);
}

void sim_journal_lose_tail(struct sim *s)
{
    uint32_t tail = s->records_count - s->records_acked;
    uint32_t keep = s->records_acked + (uint32_t)sim_below(s, tail + 1);
    if (s->plant == PLANT_JOURNAL) keep = s->records_acked / 2;
    sim_say(s, "the journal keeps %" PRIu32 " of %" PRIu32 " records, %" PRIu32 " were told", keep,
        s->records_count, s->records_acked);
    while (s->records_count > keep)
        mr_release(s->records[--s->records_count]);
    s->records_acked = keep;
}

/* A snapshot takes the place of all records, as after a rewind or a compaction. */
void sim_journal_compact(struct sim *s)
{
    if (!s->sched || s->records_acked != s->records_count || s->fx.journal.n) return;
    struct mr_buf b;
    mr_buf_init(&b, (size_t)1 << 30);
    mr_sched_snapshot(s->sched, &b);
    uint64_t last = s->journal_base + s->records_count;
    while (s->records_count)
        mr_release(s->records[--s->records_count]);
    for (size_t at = 0; at < b.n;) {
        struct mr_sched_record_head head;
        memcpy(&head, b.p + at, sizeof head);
        at += sizeof head;
        add(s, &head, b.p + at);
        at += (size_t)mr_align_up(head.bytes, 8);
    }
    mr_buf_fini(&b);
    s->records_acked = s->records_count;
    s->journal_base = last - s->records_count; /* may wrap; only sums matter */
    sim_say(s, "the journal is a snapshot of %" PRIu32 " records now", s->records_count);
}

void sim_journal_replay(struct sim *s)
{
    for (uint32_t i = 0; i < s->records_count; i++) {
        struct mr_sched_event ev = {.type = MR_SCHED_RECORD, .sequence = s->journal_base + i + 1};
        ev.record.type = s->heads[i].type;
        ev.record.bytes = mr_str_of(s->records[i], s->heads[i].bytes);
        sim_sched_step(s, &ev);
    }
    struct mr_sched_event ev = {
        .type = MR_SCHED_RECOVERED, .sequence = s->journal_base + s->records_count};
    sim_sched_step(s, &ev);
}
