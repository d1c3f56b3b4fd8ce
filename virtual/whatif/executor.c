/* Executors in virtual time. An item of a strand needs a processor for the task's CPU time. The
 * rest of the task's duration follows, in which it needs no processor. An executor reports at the
 * same moments as services/worker/exec/executor.c. */
#include "virtual/whatif/internal.h"

#include "base/alloc.h"

/* The limits of the real executor. REPORT_EVERY: longest time that finished items wait for the rest
 * of the strand before they are reported. REPORT_HELD: the same while a value is in use. */
#define REPORT_EVERY (100 * MR_US)
#define REPORT_HELD (MR_MS)
#define INLINE_MAX 4096 /* bytes of the largest value that travels in a message */
#define MAKER 0x5157u   /* mr_object_id.maker of all objects */

static struct mr_whatif_run *find(
    struct mr_whatif_worker *w, uint32_t strand, struct mr_whatif_slot **slot)
{
    for (uint32_t i = 0; i < w->slot_count; i++)
        for (struct mr_whatif_run *r = w->slot[i].runs; r; r = r->next_run)
            if (r->id == strand) {
                *slot = &w->slot[i];
                return r;
            }
    return NULL;
}

static struct mr_virtual_event event_of(
    const struct mr_whatif_cluster *c, const struct mr_whatif_worker *w, uint32_t slot)
{
    return (struct mr_virtual_event){
        .kind = MR_WHATIF_EXECUTE, .a = (uint32_t)(w - c->workers), .b = slot};
}

static void not_spare(struct mr_whatif_worker *w, struct mr_whatif_run *r)
{
    if (r->is_spare && r->begun >= r->count) {
        w->spare--;
        r->is_spare = false;
    }
}

void mr_whatif__execute_give(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, struct mr_strand *strand)
{
    if (strand->slot >= w->slot_count) {
        uint32_t more = strand->slot + 8;
        w->slot = mr_grow(w->slot, w->slot_count * sizeof *w->slot, more * sizeof *w->slot);
        w->slot_count = more;
    }
    struct mr_whatif_slot *s = &w->slot[strand->slot];
    struct mr_whatif_run *r = mr_alloc(sizeof *r), **at = &s->runs;
    r->strand = strand;
    r->id = strand->id;
    r->count = strand->count;
    r->is_spare = true;
    w->spare++;
    while (*at)
        at = &(*at)->next_run;
    *at = r;
    if (s->is_planned) return;
    s->is_planned = true;
    s->gap_ns = 0;
    mr_virtual_push(&c->queue, c->now + (mr_duration)w->begin_ns, event_of(c, w, strand->slot));
}

void mr_whatif__execute_move(struct mr_whatif_worker *w, uint32_t from, uint32_t to)
{
    /* Tasks that are replayed keep their slots: none is long-running, and none submits a job. */
    mr_assert(from < w->slot_count && to < w->slot_count && !w->slot[from].runs);
}

/* Queues a report for the core. Returns whether the report wakes the core. */
static bool report(
    struct mr_whatif_worker *w, struct mr_whatif_run *r, uint32_t done, bool is_last, bool is_idle)
{
    const struct mr_whatif_report out = {.run = r, .done = done, .is_last = is_last};
    mr_buf_add(&w->reports, &out, sizeof out);
    w->told += done - r->told;
    r->told = done;
    return w->told >= w->wake_at || (is_idle && w->spare);
}

void mr_whatif__execute_look(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, uint32_t strand)
{
    struct mr_whatif_slot *slot = NULL;
    struct mr_whatif_run *r = find(w, strand, &slot);
    if (!r || r->settled <= r->reported) return;
    r->reported = r->settled;
    struct mr_worker_event ev = {
        .kind = MR_WORKER_REPORT, .report = {.strand = strand, .done = r->settled}};
    mr_whatif__worker_step(c, w, &ev);
}

void mr_whatif__execute_take(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, uint32_t strand, uint32_t keep)
{
    struct mr_whatif_slot *slot = NULL;
    struct mr_whatif_run *r = find(w, strand, &slot);
    struct mr_worker_event ev = {
        .kind = MR_WORKER_CUT, .cut = {.strand = strand, .count = MR_STRAND_ITEMS_MAX}};
    if (r) {
        r->count = MR_MIN(r->count, MR_MAX(r->begun, keep));
        ev.cut.count = r->count;
        not_spare(w, r);
    }
    mr_whatif__worker_step(c, w, &ev);
}

static void object_make(struct mr_whatif_cluster *c, struct mr_strand_item *item)
{
    uint32_t task = c->task_of[item->index];
    item->result.object = (mr_object_id){MAKER, ++c->objects_count};
    item->result.object_bytes = MR_MAX(c->job->tasks[task].bytes, 1u);
}

/* Sets r->settled. A report makes values known to others, so items are not reported while the
 * strand has local values. `all`: makes objects of the local values instead, and settles all items.
 */
static void settle(struct mr_whatif_cluster *c, struct mr_whatif_run *r, bool all)
{
    for (uint32_t i = 0; all && r->locals && i < r->done; i++) {
        if (!r->is_local[i]) continue;
        object_make(c, &r->strand->items[i]);
        r->is_local[i] = false;
        r->locals--;
    }
    if (!r->locals) r->settled = r->done;
}

static void uses_count(struct mr_whatif_run *r, const struct mr_strand_item *item)
{
    for (uint32_t i = 0; i < item->inputs_count; i++) {
        const struct mr_strand_input *in = &item->inputs[i];
        if (in->kind != MR_STRAND_ITEM || !r->uses[in->item] || --r->uses[in->item]) continue;
        r->in_use--;
        if (!r->is_local[in->item]) continue;
        r->is_local[in->item] = false;
        r->locals--;
        r->strand->items[in->item].result.used = true;
    }
}

/* Sets the result of the item that has just ended. */
static void finish(
    struct mr_whatif_cluster *c, struct mr_whatif_run *r, const struct mr_whatif_slot *s)
{
    static const unsigned char nil[] = {0xc0};
    struct mr_strand_item *item = &r->strand->items[r->done];
    const struct mr_whatif_task *t = &c->tasks[c->task_of[item->index]];
    /* workers do not report the bytes of a local value that was used up */
    bool is_large = !t->bytes || t->bytes > INLINE_MAX || item->want_object || item->persist;
    item->result = (struct mr_strand_result){.end = MR_STRAND_DONE,
        .started_ns = s->started,
        .duration_ns = MR_MAX(c->now - s->started, 1u),
        .cpu_ns = t->cpu_ns,
        .has_parts = true};
    r->strand->parts[r->done] = (struct mr_strand_parts){.input_ns = t->input_ns,
        .restore_ns = t->restore_ns,
        .output_ns = t->output_ns,
        .room_ns = t->room_ns,
        .late_ns = t->late_ns + s->late_ns,
        .delayed_ns = s->delayed_ns};
    r->uses[r->done] = item->uses;
    r->in_use += item->uses != 0;
    r->is_local[r->done] = false;
    if (is_large && item->uses && !item->want_object && !item->persist) {
        r->is_local[r->done] = true;
        r->locals++;
    } else if (is_large) {
        object_make(c, item);
    } else {
        item->result.pack = mr_str_of(nil, sizeof nil);
    }
    uses_count(r, item);
    r->done++;
}

/* Ends the item that runs, and reports as the real executor does. */
static void end_item(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, struct mr_whatif_slot *s)
{
    struct mr_whatif_run *r = s->runs;
    bool at_once = r->strand->items[r->done].report;
    finish(c, r, s);
    settle(c, r, at_once);
    if (r->begun >= r->count) return;
    if (!at_once && c->now - r->reported_at < (r->in_use ? REPORT_HELD : REPORT_EVERY)) return;
    r->reported_at = c->now;
    if (r->settled > r->told && report(w, r, r->settled, false, false))
        mr_whatif__worker_turn(c, w);
}

/* Ends the slot's first strand, all items of which have ended. */
static void end_strand(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, struct mr_whatif_slot *s)
{
    struct mr_whatif_run *r = s->runs;
    settle(c, r, true);
    not_spare(w, r);
    s->runs = r->next_run;
    if (report(w, r, r->done, true, !s->runs)) mr_whatif__worker_turn(c, w);
}

static const struct mr_whatif_task *task_of(
    const struct mr_whatif_cluster *c, const struct mr_whatif_run *r, uint32_t item)
{
    return &c->tasks[c->task_of[r->strand->items[item].index]];
}

/* Returns the time for which the task needs a processor. */
static mr_duration work_of(const struct mr_whatif_task *t)
{
    return MR_MIN(t->cpu_ns, t->finished - t->started);
}

/* Begins the next item of the slot's first strand. */
static void begin_item(struct mr_whatif_cluster *c, struct mr_whatif_worker *w, uint32_t slot)
{
    struct mr_whatif_slot *s = &w->slot[slot];
    struct mr_whatif_run *r = s->runs;
    double work = (double)work_of(task_of(c, r, r->begun));
    s->is_planned = true;
    s->is_blocked = false;
    s->taken = c->now;
    if (!r->begun++) r->reported_at = c->now;
    not_spare(w, r);
    mr_whatif__processors_use(c, w->node, s->gap_ns + work, event_of(c, w, slot));
}

/* The work of the slot's item is done. Waits for a processor are divided between the time before
 * the item and the item, by their work. Returns how long the item goes on without a processor. */
static mr_duration end_work(const struct mr_whatif_cluster *c, struct mr_whatif_slot *s)
{
    const struct mr_whatif_task *t = task_of(c, s->runs, s->runs->done);
    mr_duration work = work_of(t), took = c->now - s->taken;
    double all = s->gap_ns + (double)work;
    mr_duration before = all > 0 ? (mr_duration)((double)took * s->gap_ns / all) : 0;
    s->started = s->taken + before;
    s->delayed_ns = before - MR_MIN(before, (mr_duration)s->gap_ns);
    s->late_ns = took - before - MR_MIN(took - before, work);
    s->is_blocked = true;
    return t->finished - t->started - work;
}

void mr_whatif__execute(struct mr_whatif_cluster *c, struct mr_whatif_worker *w, uint32_t slot)
{
    struct mr_whatif_run *r = w->slot[slot].runs;
    if (r && r->begun > r->done) {
        mr_duration blocked = w->slot[slot].is_blocked ? 0 : end_work(c, &w->slot[slot]);
        if (blocked) {
            mr_virtual_push(&c->queue, c->now + blocked, event_of(c, w, slot));
            return;
        }
        w->slot[slot].gap_ns = c->costs.gap_ns;
        end_item(c, w, &w->slot[slot]);
    }
    /* w->slot may have moved in memory: a turn of the core can add slots */
    while (w->slot[slot].runs && w->slot[slot].runs->begun >= w->slot[slot].runs->count)
        end_strand(c, w, &w->slot[slot]);
    w->slot[slot].is_planned = false;
    if (w->slot[slot].runs) begin_item(c, w, slot);
}

void mr_whatif__execute_fini(struct mr_whatif_worker *w)
{
    for (uint32_t i = 0; i < w->slot_count; i++)
        while (w->slot[i].runs) {
            struct mr_whatif_run *next = w->slot[i].runs->next_run;
            mr_release(w->slot[i].runs);
            w->slot[i].runs = next;
        }
    mr_release(w->slot);
}
