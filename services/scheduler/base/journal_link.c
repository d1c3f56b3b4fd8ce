/* Translates between two numberings of records. The core numbers its own records without gaps. The
 * journal numbers every record that it gets, including those of snapshots. Between two snapshots
 * the two numbers of a record differ by a constant. Redis acknowledges a snapshot in parts, which
 * mean nothing to the core. The acknowledgement of the snapshot's last record acknowledges every
 * record that the core wrote before the snapshot.
 * While the core thread polls for work it reads Redis's answers itself, which spares a hand-off
 * between threads. */
#include "services/scheduler/base/journal_link.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/os/log.h"
#include "store/meta/journal/journal.h"

#include <inttypes.h>
#include <stdio.h>

/* The journal is compacted, that is, replaced by a snapshot, when `bytes` of struct mr_journal_link
 * exceeds COMPACT_BYTES_MIN and also COMPACT_FACTOR times the size of the last snapshot. */
#define COMPACT_BYTES_MIN ((uint64_t)64 << 20)
#define COMPACT_FACTOR 4

struct mr_journal_link {
    struct mr_shell *sh;
    struct mr_journal *journal;
    /* the records that were read, until the replay; before each record: u64 sequence number, u64
     * number of bytes */
    struct mr_buf replay;
    uint32_t epoch;     /* the epoch that was written to the journal last */
    uint64_t next;      /* number of the journal's next record */
    uint64_t core_last; /* the number that the core gave its newest record in the journal */
    bool has_snapshot;  /* a snapshot was written and is not acknowledged */
    /* the journal's numbers of the first and the last record of the newest snapshot */
    uint64_t snapshot_first;
    uint64_t snapshot_last;
    /* bytes that this process appended to the journal, counted from the newest snapshot's first
     * record on */
    uint64_t bytes;
    uint64_t snapshot_bytes; /* bytes of the newest snapshot; 0: this process has written none */
};

static void on_acked(void *ctx, uint64_t sequence)
{
    (void)mr_shell_push(ctx, (struct mr_shell_message){.kind = MR_SHELL_ACKED, .n = sequence});
}

static void on_state(void *ctx, bool here, const char *why)
{
    mr_log(here ? MR_INFO : MR_WARN, here ? "redis.connected" : "redis.away", "why=\"%s\"", why);
    (void)mr_shell_push(
        ctx, (struct mr_shell_message){.kind = here ? MR_SHELL_BACK : MR_SHELL_AWAY});
}

static void on_rewind(void *ctx)
{
    (void)mr_shell_push(ctx, (struct mr_shell_message){.kind = MR_SHELL_REWIND});
}

static void on_refused(void *ctx, uint32_t higher_epoch)
{
    (void)mr_shell_push(
        ctx, (struct mr_shell_message){.kind = MR_SHELL_REFUSED, .n = higher_epoch});
}

static int on_record(void *ctx, uint64_t sequence, struct mr_str record)
{
    struct mr_shell *sh = ctx;
    uint64_t head[2] = {sequence, record.n};
    mr_buf_add(&sh->journal->replay, head, sizeof head);
    mr_buf_add_str(&sh->journal->replay, record);
    return mr_buf_status(&sh->journal->replay);
}

static void attend(void *ctx, bool on)
{
    mr_journal_attend(((struct mr_journal_link *)ctx)->journal, on);
}

static void look(void *ctx)
{
    mr_journal_look(((struct mr_journal_link *)ctx)->journal);
}

int mr_journal_link_open(struct mr_shell *sh, struct mr_error *e)
{
    struct mr_journal_link *l = mr_alloc(sizeof *l);
    struct mr_journal_info info = {0};
    l->sh = sh;
    sh->journal = l;
    mr_buf_init(&l->replay, (size_t)16 << 30);
    const struct mr_journal_config config = {.address = sh->options.redis,
        .password = sh->options.redis_password,
        .on_acked = on_acked,
        .on_state = on_state,
        .on_rewind = on_rewind,
        .on_refused = on_refused,
        .ctx = sh};
    int err = mr_journal_open(&config, sh->options.redis_timeout, on_record, &l->journal, &info, e);
    if (err) return err;
    l->next = info.sequence + 1;
    mr_rpc_loop_set_side(sh->loop, (struct mr_rpc_side){.attend = attend, .look = look, .ctx = l});
    sh->options.core.epoch = l->epoch = info.epoch;
    sh->options.core.incarnation = info.incarnation;
    memcpy(sh->cluster_id, info.cluster_id, sizeof sh->cluster_id);
    mr_log(MR_INFO, "journal.open",
        "cluster=%s epoch=%" PRIu32 " incarnation=%016" PRIx64 " records_to=%" PRIu64,
        info.cluster_id, info.epoch, info.incarnation, info.sequence);
    return MR_OK;
}

void mr_journal_link_close(struct mr_journal_link **lp)
{
    struct mr_journal_link *l = *lp;
    *lp = NULL;
    if (!l) return;
    mr_rpc_loop_set_side(l->sh->loop, (struct mr_rpc_side){0});
    mr_journal_close(&l->journal);
    mr_buf_fini(&l->replay);
    mr_release(l);
}

/* Logs the job that the core could not restore from the record just read, if there is one.
 * `before`: the count of such jobs before the record. Returns the new count. */
static uint64_t tell_unread(struct mr_shell *sh, uint64_t before)
{
    mr_job_id job;
    struct mr_error why;
    uint64_t count = mr_sched_unread(sh->core, &job, &why);
    if (count == before) return count;
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(job, id);
    mr_log(MR_ERROR, "journal.job_unread", "job=%s why=\"%s\"", id, why.text);
    return count;
}

void mr_journal_link_replay(struct mr_shell *sh)
{
    struct mr_journal_link *l = sh->journal;
    uint64_t unread = 0;
    for (size_t at = 0; at < l->replay.n;) {
        uint64_t head[2];
        uint32_t type = 0;
        memcpy(head, l->replay.p + at, sizeof head);
        const char *p = (const char *)l->replay.p + at + sizeof head;
        at += sizeof head + (size_t)head[1];
        if (head[1] < sizeof type) continue;
        memcpy(&type, p, sizeof type);
        struct mr_sched_event ev = {.type = MR_SCHED_RECORD, .sequence = head[0]};
        ev.record.type = type;
        ev.record.bytes = mr_str_of(p + sizeof type, (size_t)head[1] - sizeof type);
        mr_shell_step(sh, &ev);
        unread = tell_unread(sh, unread);
    }
    mr_buf_fini(&l->replay);
    struct mr_sched_event ev = {.type = MR_SCHED_RECOVERED, .sequence = l->next - 1};
    l->core_last = l->next - 1;
    mr_shell_step(sh, &ev);
    if (!mr_journal_is_here(l->journal)) {
        struct mr_sched_event away = {.type = MR_SCHED_JOURNAL_AWAY};
        mr_shell_step(sh, &away);
    }
}

/* Appends the records of `b` to the journal. A record of the journal is a u32 type and the payload.
 * `of_core`: the core numbers these records, since they are not of a snapshot. */
static void append_all(
    struct mr_journal_link *l, const struct mr_buf *b, bool of_core, void **pieces)
{
    for (size_t at = 0; at < b->n;) {
        struct mr_sched_record_head head;
        memcpy(&head, b->p + at, sizeof head);
        at += sizeof head;
        size_t n = sizeof head.type + head.bytes;
        mr_assert(!head.piece || (pieces && n == MR_SCHED_PIECE_HEAD_BYTES));
        void *record = head.piece ? MR_STEAL(pieces[head.piece - 1]) : mr_journal_record_new(n);
        memcpy(record, &head.type, sizeof head.type);
        memcpy((char *)record + sizeof head.type, b->p + at, head.bytes);
        mr_journal_append_given(l->journal, l->next++, &record);
        l->bytes += n + head.piece_bytes;
        if (of_core) l->core_last = head.sequence;
        at += (size_t)mr_align_up(head.bytes, 8);
    }
}

static void snapshot(struct mr_journal_link *l)
{
    struct mr_buf b;
    mr_buf_init(&b, (size_t)16 << 30);
    mr_sched_snapshot(l->sh->core, &b);
    mr_assert(b.n); /* the snapshot has at least the record of its end */
    l->bytes = 0;
    l->snapshot_first = l->next;
    append_all(l, &b, false, NULL);
    l->has_snapshot = l->next > l->snapshot_first;
    l->snapshot_last = l->next - 1;
    l->snapshot_bytes = b.n;
    mr_log(MR_INFO, "journal.snapshot", "records=%" PRIu64 " bytes=%zu",
        l->next - l->snapshot_first, b.n);
    mr_buf_fini(&b);
}

/* Writes the core's epoch to the journal if the core has raised it. The core does so when a worker
 * or store has seen a higher epoch. */
static void raise_epoch(struct mr_journal_link *l)
{
    uint32_t epoch = mr_sched_epoch(l->sh->core);
    if (epoch == l->epoch) return;
    mr_log(MR_WARN, "scheduler.epoch",
        "from=%" PRIu32 " to=%" PRIu32 " why=\"others have seen one that Redis has lost\"",
        l->epoch, epoch);
    l->epoch = epoch;
    mr_journal_raise_epoch(l->journal, epoch);
}

void mr_journal_link_perform(struct mr_shell *sh)
{
    struct mr_journal_link *l = sh->journal;
    raise_epoch(l);
    append_all(l, &sh->fx.journal, true, NULL);
    bool worth = l->bytes > COMPACT_BYTES_MIN && l->bytes > COMPACT_FACTOR * l->snapshot_bytes;
    if (worth && !l->has_snapshot && mr_journal_is_here(l->journal)) snapshot(l);
}

void mr_journal_link_give(struct mr_shell *sh, void **pieces)
{
    append_all(sh->journal, &sh->fx.journal, true, pieces);
    mr_buf_clear(&sh->fx.journal);
    /* The records hold the graph of a new job. This thread plans that job next, which takes about
     * as long as Redis needs to write the graph. Meanwhile the connection's own thread reads the
     * answers of Redis. */
    mr_journal_attend(sh->journal->journal, false);
}

void mr_journal_link_flush(struct mr_shell *sh)
{
    mr_journal_flush(sh->journal->journal);
}

static void acked(struct mr_journal_link *l, uint64_t sequence)
{
    if (l->has_snapshot && sequence >= l->snapshot_last) {
        l->has_snapshot = false;
        mr_journal_set_base(l->journal, l->snapshot_first);
    }
    struct mr_sched_event ev = {.type = MR_SCHED_JOURNAL_ACKED};
    /* the acknowledged record is in the middle of the snapshot */
    if (l->has_snapshot && sequence >= l->snapshot_first) return;
    /* how many of the core's records follow the acknowledged one; a snapshot's do not count */
    uint64_t ahead = l->next - 1 - sequence;
    if (l->has_snapshot) ahead -= l->snapshot_last - l->snapshot_first + 1;
    if (ahead > l->core_last) return;
    ev.sequence = l->core_last - ahead;
    mr_shell_step(l->sh, &ev);
}

void mr_journal_link_message(struct mr_shell *sh, const struct mr_shell_message *m)
{
    struct mr_journal_link *l = sh->journal;
    struct mr_sched_event ev = {.type = MR_SCHED_TICK};
    switch (m->kind) {
    case MR_SHELL_ACKED: acked(l, m->n); return;
    case MR_SHELL_AWAY: ev.type = MR_SCHED_JOURNAL_AWAY; break;
    case MR_SHELL_BACK: ev.type = MR_SCHED_JOURNAL_BACK; break;
    case MR_SHELL_REWIND:
        mr_log(MR_WARN, "redis.rewound", "action=\"writing a snapshot\"");
        /* mr_journal_rewind drops the records of fx.journal, because the snapshot replaces them.
         * But first each record gets a number of the journal, like every record of the core. */
        append_all(l, &sh->fx.journal, true, NULL);
        mr_buf_clear(&sh->fx.journal);
        mr_journal_rewind(l->journal);
        snapshot(l);
        mr_journal_rewound(l->journal);
        return;
    case MR_SHELL_REFUSED:
        mr_log(MR_ERROR, "scheduler.superseded", "epoch=%" PRIu64, m->n);
        sh->is_stopping = true;
        sh->exit_code = 3;
        return;
    case MR_SHELL_PARSED:
    case MR_SHELL_TRACE:
    case MR_SHELL_PREDICTED:
    case MR_SHELL_SIGNAL:
    case MR_SHELL_CONTINUED: return;
    }
    mr_shell_step(sh, &ev);
}

struct mr_str mr_journal_link_state(const struct mr_shell *sh)
{
    if (mr_journal_is_here(sh->journal->journal)) return MR_STR("");
    return MR_STR("Redis is away");
}
