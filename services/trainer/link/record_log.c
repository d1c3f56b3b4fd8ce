/* This module keeps a copy of all records that Redis has acknowledged. The states of the
 * connection to Redis:
 *
 *   HERE ──failure──▶ LOST ──turn: on_away──▶ AWAY ──probe──▶ RESTORING ──copy written──▶ HERE
 *                                              ▲──────failure─────┘                 (on_back)
 *
 * A failed command drops all commands that are under way. A late answer to one of them names an
 * unknown command and changes nothing. Redis may have executed a dropped command. Its effect is
 * overwritten, first when this module writes the copy, and then when the user of this module writes
 * the newer records again. */
#include "services/trainer/link/record_log.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "store/meta/keys.h"
#include "store/meta/scripts.h"

#include <inttypes.h>
#include <stdio.h>

#define PROBE_PAUSE (250 * MR_MS)

enum state { HERE, LOST, AWAY, RESTORING };

struct text {
    char *p;
    size_t n;
};

struct row { /* a session's record, in the copy or in a command */
    struct mr_list node;
    uint64_t command;
    uint64_t sequence; /* 0: the command writes a part of the copy */
    struct text id, record, document;
};

struct mr_records {
    struct mr_records_link link;
    char epoch[16];
    char *records_key, *documents_key, *epoch_key;
    enum state state;
    uint64_t commands; /* number of commands so far */
    struct mr_list copy;
    struct mr_list under_way; /* commands without an answer, in order */
    uint32_t restoring;       /* number of answers that are missing in the state RESTORING */
    uint64_t restore_from;    /* number of the first command of the last restoration */
    mr_time probe_at;
};

static struct text text_of(struct mr_str s)
{
    return (struct text){s.n ? mr_copy(s.p, s.n) : NULL, s.n};
}

static struct mr_str str(const struct text *t)
{
    return mr_str_of(t->p ? t->p : "", t->n);
}

static void row_free(struct row *w)
{
    mr_list_remove(&w->node);
    mr_release(w->id.p);
    mr_release(w->record.p);
    mr_release(w->document.p);
    mr_release(w);
}

static void rows_free(struct mr_list *rows)
{
    MR_LIST_EACH(node, rows)
    {
        row_free(MR_LIST_ITEM(node, struct row, node));
    }
}

static struct row *row_new(
    struct mr_list *to, struct mr_str id, struct mr_str record, struct mr_str document)
{
    struct row *w = mr_alloc(sizeof *w);
    w->id = text_of(id);
    w->record = text_of(record);
    w->document = text_of(document);
    mr_list_add_tail(to, &w->node);
    return w;
}

struct mr_records *mr_records_new(
    const struct mr_records_link *link, uint32_t epoch, const char *prefix)
{
    struct mr_records *r = mr_alloc(sizeof *r);
    if (!prefix) prefix = MR_META_PREFIX;
    r->link = *link;
    (void)snprintf(r->epoch, sizeof r->epoch, "%" PRIu32, epoch);
    r->records_key = mr_format("%s%s", prefix, MR_META_TRAININGS);
    r->documents_key = mr_format("%s%s", prefix, MR_META_TRAINING_DOCUMENTS);
    r->epoch_key = mr_format("%s%s", prefix, MR_META_TRAINER_EPOCH);
    mr_list_init(&r->copy);
    mr_list_init(&r->under_way);
    return r;
}

void mr_records_free(struct mr_records **rp)
{
    struct mr_records *r = MR_STEAL(*rp);
    if (!r) return;
    rows_free(&r->copy);
    rows_free(&r->under_way);
    mr_release(r->records_key);
    mr_release(r->documents_key);
    mr_release(r->epoch_key);
    mr_release(r);
}

bool mr_records_is_here(const struct mr_records *r)
{
    return r->state == HERE;
}

static struct row *copy_find(struct mr_records *r, struct mr_str id)
{
    MR_LIST_EACH(node, &r->copy)
    {
        struct row *w = MR_LIST_ITEM(node, struct row, node);
        if (mr_str_eq(str(&w->id), id)) return w;
    }
    return NULL;
}

void mr_records_known(
    struct mr_records *r, struct mr_str id, struct mr_str record, struct mr_str document)
{
    mr_assert(!copy_find(r, id));
    (void)row_new(&r->copy, id, record, document);
}

/* Sends a command to Redis. An empty `record` deletes the session's record. If `id` is empty, too,
 * the command is a probe and changes nothing. False: Redis is away. */
static bool send(struct mr_records *r, uint64_t command, struct mr_str id, struct mr_str record,
    struct mr_str document)
{
    const struct mr_str argv[MR_RECORDS_ARGC] = {MR_STR("EVAL"), mr_script_trainer_record(),
        MR_STR("3"), mr_str(r->records_key), mr_str(r->documents_key), mr_str(r->epoch_key),
        mr_str(r->epoch), id, record, document};
    return r->link.send(r->link.ctx, command, argv);
}

static void fall_away(struct mr_records *r, enum state state)
{
    rows_free(&r->under_way);
    r->restoring = 0;
    r->state = state;
}

static void write(struct mr_records *r, uint64_t sequence, struct mr_str id, struct mr_str record,
    struct mr_str document)
{
    mr_assert(sequence && id.n);
    if (r->state != HERE) return;
    struct row *w = row_new(&r->under_way, id, record, document);
    w->sequence = sequence;
    w->command = ++r->commands;
    if (!send(r, w->command, id, record, document)) fall_away(r, LOST);
}

void mr_records_write(struct mr_records *r, uint64_t sequence, struct mr_str id,
    struct mr_str record, struct mr_str document)
{
    mr_assert(record.n);
    write(r, sequence, id, record, document.p ? document : MR_STR(""));
}

void mr_records_delete(struct mr_records *r, uint64_t sequence, struct mr_str id)
{
    write(r, sequence, id, MR_STR(""), MR_STR(""));
}

/* Puts a write that Redis has acknowledged into the copy. */
static void keep(struct mr_records *r, struct row *w)
{
    struct row *had = copy_find(r, str(&w->id));
    if (had && !w->document.n) { /* the write did not change the document */
        struct text none = w->document;
        w->document = had->document;
        had->document = none;
    }
    if (had) row_free(had);
    mr_list_remove(&w->node);
    if (!w->record.n)
        row_free(w);
    else
        mr_list_add_tail(&r->copy, &w->node);
}

static void restored_one(struct mr_records *r, uint64_t command, int err)
{
    /* the answer is for a command of an earlier restoration */
    if (command < r->restore_from) return;
    if (err) {
        fall_away(r, AWAY);
        return;
    }
    if (--r->restoring) return;
    r->state = HERE;
    r->link.on_back(r->link.ctx);
}

void mr_records_answered(struct mr_records *r, uint64_t command, int err)
{
    if (err == MR_EABORTED) {
        r->link.on_refused(r->link.ctx);
        return;
    }
    if (r->state == RESTORING) restored_one(r, command, err);
    if (r->state != HERE || mr_list_is_empty(&r->under_way)) return;
    struct row *w = MR_LIST_ITEM(r->under_way.next, struct row, node);
    if (w->command != command) return; /* the command was dropped, and its answer comes late */
    if (err) {
        fall_away(r, LOST);
        return;
    }
    uint64_t sequence = w->sequence;
    keep(r, w);
    r->link.on_acked(r->link.ctx, sequence);
}

/* Writes the whole copy and then a probe. The probe is answered even if the copy is empty. */
static void restore(struct mr_records *r)
{
    bool sent = true;
    r->restore_from = r->commands + 1;
    r->restoring = 0;
    MR_LIST_EACH(node, &r->copy)
    {
        const struct row *w = MR_LIST_ITEM(node, struct row, node);
        sent = sent && send(r, ++r->commands, str(&w->id), str(&w->record), str(&w->document));
        r->restoring++;
    }
    sent = sent && send(r, ++r->commands, MR_STR(""), MR_STR(""), MR_STR(""));
    r->restoring++;
    if (sent)
        r->state = RESTORING;
    else
        r->restore_from = r->commands + 1; /* so answers to earlier commands are ignored */
}

mr_time mr_records_turn(struct mr_records *r, mr_time now)
{
    if (r->state == LOST) {
        r->state = AWAY;
        r->probe_at = mr_time_after(now, PROBE_PAUSE);
        r->link.on_away(r->link.ctx);
    }
    if (r->state != AWAY) return MR_NEVER;
    if (r->probe_at <= now) {
        r->probe_at = mr_time_after(now, PROBE_PAUSE);
        restore(r);
    }
    return r->state == AWAY ? r->probe_at : MR_NEVER;
}
