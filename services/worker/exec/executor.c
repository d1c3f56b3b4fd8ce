/* Runs strands. A strand is a list of tasks, its items, that one executor runs in order on its
 * thread. A local value is a large value that only its strand uses (local_value.c). */
#include "services/worker/exec/internal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/pack.h"
#include "base/unconst.h"
#include "base/units.h"
#include "host/clock.h"
#include "host/inbox.h"
#include "host/thread.h"

#include <stdio.h>

/* longest time that finished items wait for the rest of the strand before they are reported */
#define REPORT_EVERY (100 * MR_US)
/* used instead of REPORT_EVERY while the strand has a value that only its later items use */
#define REPORT_HELD (MR_MS)
#define CHUNK_BYTES ((size_t)8192)
/* A task runs on the network thread only if its arguments and inputs together have at most
 * SMALL_BYTES bytes. */
#define SMALL_BYTES 512
#define WAIT_SLICE (5 * MR_MS) /* longest time until a waiting operator sees its cancel flag */

static struct mr_run_chunk *chunk_new(size_t room)
{
    struct mr_run_chunk *c = mr_grow(NULL, sizeof *c + room, sizeof *c + room); /* not zeroed */
    c->next = NULL;
    c->used = 0;
    c->room = room;
    return c;
}

struct mr_run *mr_run_new(struct mr_strand *strand)
{
    struct mr_run *run = mr_alloc(sizeof *run);
    run->strand = strand;
    run->id = strand->id;
    run->slot = strand->slot;
    run->count = strand->count;
    mr_strand_cursor_init(&run->cursor, strand->count);
    run->texts = chunk_new(CHUNK_BYTES);
    return run;
}

void mr_run_free(struct mr_run **run)
{
    if (!*run) return;
    for (struct mr_run_chunk *c = (*run)->texts; c;) {
        struct mr_run_chunk *next = c->next;
        mr_release(c);
        c = next;
    }
    mr_release(*run);
    *run = NULL;
}

void mr_run_stop(struct mr_run *run, uint32_t item)
{
    mr_flag_set(&run->stop[item], true);
}

void *mr_run_take(struct mr_run *run, size_t bytes)
{
    if (run->texts->room - run->texts->used < bytes) {
        struct mr_run_chunk *c = chunk_new(MR_MAX(bytes, CHUNK_BYTES));
        c->next = run->texts;
        run->texts = c;
    }
    void *p = run->texts->data + run->texts->used;
    run->texts->used += bytes;
    return p;
}

struct mr_str mr_run_keep(struct mr_run *run, struct mr_str bytes)
{
    if (!bytes.n) return bytes;
    void *p = mr_run_take(run, bytes.n);
    memcpy(p, bytes.p, bytes.n);
    return mr_str_of(p, bytes.n);
}

/* ---- what an op may ask for ------------------------------------------------------------------ */

static bool is_cancelled(void *ctx)
{
    const struct mr_executor *x = ctx;
    return mr_flag_is_set(&x->run->stop[x->at]);
}

struct mr_stop mr_executor_stop_of(const struct mr_executor *x)
{
    return (struct mr_stop){is_cancelled, mr_unconst(x)};
}

static void wait_ns(void *ctx, uint64_t ns)
{
    mr_time until = mr_time_after(mr_clock_now(), ns);
    for (mr_time now = mr_clock_now(); now < until && !is_cancelled(ctx); now = mr_clock_now())
        mr_clock_sleep(MR_MIN(until - now, WAIT_SLICE));
}

static void log_line(void *ctx, struct mr_str line)
{
    struct mr_executor *x = ctx;
    const uint64_t tag[MR_TAIL_TAG] = {x->item->job.v, x->item->index, x->item->attempt};
    if (x->thread && x->env->logged && mr_tail_add(&x->tail, tag, line))
        x->env->logged(x->env->ctx);
    if (line.n > MR_TASK_LOG_BYTES_MAX / 2) { /* the end of a log says most */
        x->log_lost += line.n - MR_TASK_LOG_BYTES_MAX / 2;
        line.p += line.n - MR_TASK_LOG_BYTES_MAX / 2;
        line.n = MR_TASK_LOG_BYTES_MAX / 2;
    }
    if (x->log.n + line.n + 1 > MR_TASK_LOG_BYTES_MAX) { /* keep the later half */
        size_t from = x->log.n - MR_MIN(x->log.n, MR_TASK_LOG_BYTES_MAX / 2 - 1);
        memmove(x->log.p, x->log.p + from, x->log.n - from);
        x->log.n -= from;
        x->log_lost += from;
    }
    mr_buf_add_str(&x->log, line);
    mr_buf_add_byte(&x->log, '\n');
}

bool mr_executor_take_log(
    struct mr_executor *x, uint64_t tag[MR_TAIL_TAG], struct mr_buf *out, uint64_t *lost)
{
    return x->thread && mr_tail_take(&x->tail, tag, out, lost);
}

/* Sets the item's log to the task's output, and log_reported to how much of it was reported while
 * the task ran. */
static void keep_log(struct mr_executor *x)
{
    struct mr_strand_result *r = &x->item->result;
    size_t left = 0;
    uint64_t lost = 0;
    if (!x->log.n) return;
    r->log = mr_run_keep(x->run, mr_buf_str(&x->log));
    r->log_lost = x->log_lost;
    if (!x->thread || !mr_tail_end(&x->tail, &left, &lost)) return;
    r->log_reported = r->log.n - MR_MIN(left, r->log.n);
    r->log_lost = lost + (left > r->log.n ? left - r->log.n : 0);
}

static int open_file(void *ctx, struct mr_str path, int *fd, struct mr_error *e)
{
    const struct mr_executor *x = ctx;
    return mr_roots_open(x->env->roots, path, fd, e);
}

static bool shares_work(const struct mr_executor *x)
{
    return x->thread && x->env->work_sharing && mr_flag_is_set(&x->helps);
}

static uint32_t lanes(void *ctx)
{
    const struct mr_executor *x = ctx;
    return shares_work(x) ? MR_MAX(1u, MR_MIN(x->env->slots, MR_LANES_MAX)) : 1;
}

static struct mr_blocks_end work(void *ctx, const struct mr_blocks *blocks)
{
    struct mr_executor *x = ctx;
    if (!shares_work(x)) return mr_blocks_alone(blocks);
    struct mr_blocks_end end = mr_work_sharing_run(x->env->work_sharing, x->work_slot, blocks);
    x->waited_cpu += end.waited_cpu;
    x->stolen_cpu += end.stolen_cpu;
    return end;
}

static void note_training(void *ctx, const struct mr_op_training_times *times)
{
    struct mr_executor *x = ctx;
    x->training = *times;
}

static const struct mr_op_host host = {
    .alloc_result = mr_executor_alloc_result,
    .is_cancelled = is_cancelled,
    .wait = wait_ns,
    .log = log_line,
    .open = open_file,
    .load = mr_executor_load,
    .lanes = lanes,
    .work = work,
    .note_training = note_training,
};

/* ---- one item -------------------------------------------------------------------------------- */

static void item_failed(struct mr_executor *x, int code, const struct mr_error *e)
{
    struct mr_strand_result *r = &x->item->result;
    bool stopped = code == MR_ECANCELED && is_cancelled(x);
    r->end = stopped ? MR_STRAND_STOPPED : x->lacks_store ? MR_STRAND_STORE_GONE : MR_STRAND_FAILED;
    r->code = code;
    r->message = mr_run_keep(x->run, mr_str(e->text));
    mr_buf_clear(&x->text);
    mr_executor_summary(x, &x->text);
    r->arguments = mr_run_keep(x->run, mr_buf_str(&x->text));
}

/* The store had no memory for the result, so the task itself has not failed. */
static void item_no_room(struct mr_executor *x, const struct mr_error *e)
{
    char bytes[MR_BYTES_TEXT_MAX];
    mr_bytes_text(x->lacks_bytes, bytes);
    mr_buf_clear(&x->text);
    mr_buf_printf(&x->text, "there was no room for its result of %s: %s", bytes, e->text);
    x->item->result.end = MR_STRAND_NO_ROOM;
    x->item->result.message = mr_run_keep(x->run, mr_buf_str(&x->text));
}

static void item_call(struct mr_executor *x)
{
    struct mr_strand_item *item = x->item;
    const struct mr_op_desc *op = x->env->ops[item->op];
    struct mr_op_task task = {
        .job = item->job, .index = item->index, .attempt = item->attempt, .key = item->key};
    struct mr_op_result result = {0};
    struct mr_error e;
    e.text[0] = 0;
    x->lacks_bytes = 0;
    x->gave_up = x->lacks_store = false;
    int err =
        mr_op_run(x->call, op, &task, item->args, x->inputs, item->inputs_count, x, &result, &e);
    if (!err) err = mr_executor_result(x, &result, &e);
    /* the operator of a cancelled task may have returned another error than MR_ECANCELED */
    if (err && x->gave_up) err = MR_ECANCELED;
    if (err && x->lacks_bytes)
        item_no_room(x, &e);
    else if (err)
        item_failed(x, err, &e);
    mr_executor_result_drop(x);
    keep_log(x);
}

/* Runs the item x->at, which begins at `now`. Returns the time of its end. */
static mr_time item_run(struct mr_executor *x, mr_time now)
{
    struct mr_strand_item *item = x->item;
    item->result = (struct mr_strand_result){0};
    mr_buf_clear(&x->log);
    x->log_lost = 0;
    if (is_cancelled(x)) {
        item->result.end = MR_STRAND_STOPPED;
        return now;
    }
    mr_assert(item->op < x->env->ops_count);
    mr_duration delayed = mr_executor_times_begin(x, now);
    x->waited_cpu = x->stolen_cpu = 0;
    x->input_ns = x->restore_ns = x->output_ns = x->room_ns = 0;
    x->training = (struct mr_op_training_times){0};
    struct mr_suspect who = {item->job, item->index, item->attempt};
    if (x->env->crash_record) mr_crash_record_begin(x->env->crash_record, x->slot, &who);
    bool runs = !mr_executor_inputs(x);
    if (runs) {
        item_call(x);
        item->result.started_ns = now;
    }
    mr_executor_inputs_release(x);
    if (x->env->crash_record) mr_crash_record_end(x->env->crash_record, x->slot);
    mr_time end = mr_clock_now();
    mr_pulse_mark(&x->pulse, end);
    x->ended_at = end;
    if (!runs) return end;
    item->result.duration_ns = end - now;
    mr_duration cpu = mr_executor_cpu_of(x, now, end);
    mr_duration late = mr_executor_late_of(x, end - now, cpu);
    mr_executor_parts(x, end - now, late, delayed);
    item->result.cpu_ns = cpu - MR_MIN(cpu, x->waited_cpu) + x->stolen_cpu;
    x->took_ns[item->op] = end - now;
    return end;
}

/* Counts the values that only this strand uses and whose users have not all run. While there are
 * such values, reports are delayed: a report makes values known to other processes. */
static void count_uses(struct mr_executor *x)
{
    const struct mr_strand_item *item = x->item;
    bool is_done = item->result.end == MR_STRAND_DONE;
    x->uses[x->at] = is_done ? item->uses : 0;
    x->in_use += x->uses[x->at] != 0;
    for (uint32_t i = 0; is_done && i < item->inputs_count; i++) {
        const struct mr_strand_input *in = &item->inputs[i];
        if (in->kind != MR_STRAND_ITEM || !x->uses[in->item] || --x->uses[in->item]) continue;
        x->in_use--;
        mr_executor_local_value_consumed(x, in->item);
    }
}

/* Sets `x->settled`, the number of items that may be reported, to `done`, the number of finished
 * items. Does not change it while the strand has local values. `all`: copies all local values to
 * the store first. False: a local value could not be copied, and its item failed. */
static bool settle(struct mr_executor *x, uint32_t done, bool all)
{
    bool ok = !all || mr_executor_local_value_settle(x);
    if (!x->local_values_count) x->settled = done;
    mr_strand_cursor_settle(&x->run->cursor, x->settled);
    return ok;
}

/* True: the item succeeded without output, and its value is not `true`. The value `true` may end a
 * loop. */
static bool is_quiet(const struct mr_strand_item *item)
{
    const struct mr_strand_result *r = &item->result;
    bool is_true = r->pack.n == 1 && (unsigned char)r->pack.p[0] == 0xc3;
    return r->end == MR_STRAND_DONE && !is_true && !r->log.n;
}

static void report(struct mr_executor *x, struct mr_run_report *r)
{
    r->idle = r->last && x->thread && mr_inbox_is_empty(x->inbox);
    r->quiet = r->quiet && r->fresh;
    x->env->report(x->env->ctx, r);
}

/* Called when other slots can no longer take items of this strand. */
static void not_spare(struct mr_executor *x, bool *is_spare)
{
    if (*is_spare) mr_wake_counter_spare(x->env->wake_counter, false);
    *is_spare = false;
}

static void run_strand(struct mr_executor *x, struct mr_run *run)
{
    mr_time now = mr_clock_now(), reported = now;
    uint32_t done = 0, reported_count = 0;
    bool quiet = true, is_spare = x->thread && x->env->wake_counter;
    x->run = run;
    /* an executor without a thread may be called by another thread than before */
    if (!x->thread && x->cpu_thread != mr_thread_self()) {
        x->cpu_thread = mr_thread_self();
        x->cpu_seen_at = 0;
    }
    x->in_use = x->settled = 0;
    while (mr_strand_cursor_take(&run->cursor, &x->at)) {
        if (mr_strand_cursor_is_at_end(&run->cursor)) not_spare(x, &is_spare);
        x->item = &run->strand->items[x->at];
        bool at_once = x->item->report;
        now = item_run(x, now);
        done = x->at + 1;
        /* is_quiet reads the item before `settle`: afterwards the item may belong to the core */
        quiet = quiet && is_quiet(x->item);
        count_uses(x);
        quiet = settle(x, done, at_once) && quiet;
        /* no item is left: the report after the loop covers this item, too */
        if (mr_strand_cursor_is_at_end(&run->cursor)) continue;
        if (!at_once && now - reported < (x->in_use ? REPORT_HELD : REPORT_EVERY)) continue;
        struct mr_run_report r = {
            .run = run, .done = x->settled, .fresh = x->settled - reported_count, .quiet = quiet};
        if (r.fresh) report(x, &r);
        reported_count = x->settled;
        quiet = quiet || reported_count == done;
        reported = now;
    }
    not_spare(x, &is_spare);
    if (done) quiet = settle(x, done, true) && quiet;
    struct mr_run_report r = {
        .run = run, .done = done, .fresh = done - reported_count, .quiet = quiet, .last = true};
    report(x, &r);
}

static bool is_wanted(void *ctx)
{
    const struct mr_executor *x = ctx;
    return !mr_inbox_is_empty(x->inbox) || mr_inbox_is_closed(x->inbox);
}

/* Waits for a strand. Meanwhile the executor may help another executor: it runs some blocks (parts)
 * of that executor's task. NULL: the executor has helped or was woken, and the caller looks
 * again. */
static struct mr_run *next_run(struct mr_executor *x)
{
    struct mr_run *run = NULL;
    struct mr_work_sharing *h = x->env->work_sharing;
    if (!h || !mr_flag_is_set(&x->helps)) {
        (void)mr_inbox_wait_eager(x->inbox, &run, 1);
        return run;
    }
    uint32_t epoch = mr_work_sharing_epoch(h);
    if (mr_inbox_take(x->inbox, &run, 1)) return run;
    if (mr_work_sharing_steal(h, x->work_slot, is_wanted, x)) return NULL;
    mr_work_sharing_idle(h, x->work_slot, true);
    if (mr_work_sharing_epoch(h) == epoch) (void)mr_inbox_wait_eager(x->inbox, &run, 1);
    mr_work_sharing_idle(h, x->work_slot, false);
    return run;
}

static void executor_main(void *ctx)
{
    struct mr_executor *x = ctx;
    x->late_fd = mr_clock_delay_open();
    for (;;) {
        struct mr_run *run = next_run(x);
        if (run)
            run_strand(x, run);
        else if (mr_inbox_is_closed(x->inbox) && mr_inbox_is_empty(x->inbox))
            break;
    }
    mr_clock_delay_close(&x->late_fd);
}

void mr_executor_help(struct mr_executor *x, bool on)
{
    mr_flag_set(&x->helps, on);
    /* An executor that did not help may sleep. It is not marked as idle, so no offer of work wakes
     * it. */
    if (on) mr_inbox_wake(x->inbox);
}

struct mr_executor *mr_executor_new(const struct mr_executor_env *env)
{
    struct mr_executor *x = mr_alloc(sizeof *x);
    x->env = env;
    /* An executor without a thread runs on the network thread. A thread opens its own late_fd. */
    x->late_fd = env->network_delay_fd;
    x->call = mr_op_run_new(&host, env->scratch_bytes_max);
    x->took_ns = mr_alloc_array(env->ops_count, sizeof *x->took_ns);
    for (uint32_t i = 0; i < env->ops_count; i++)
        x->took_ns[i] =
            MR_EXECUTOR_CPU_WORTH; /* an operator counts as long until its first run ends */
    x->small = mr_alloc_aligned(MR_SMALL_RESULT_BYTES, MR_VALUE_ALIGN);
    mr_buf_init(&x->log, MR_TASK_LOG_BYTES_MAX * 2);
    mr_tail_init(&x->tail, MR_TASK_LOG_BYTES_MAX);
    mr_buf_init(&x->text, (size_t)1 << 20);
    return x;
}

struct mr_executor *mr_executor_start(const struct mr_executor_env *env, uint32_t slot)
{
    struct mr_executor *x = mr_executor_new(env);
    x->slot = x->work_slot = slot;
    x->inbox = mr_inbox_new(MR_SLOT_STRANDS_MAX, sizeof(struct mr_run *));
    if (env->work_sharing) mr_work_sharing_enter(env->work_sharing, x->work_slot, x->inbox);
    char name[16];
    (void)snprintf(name, sizeof name, "exec-%u", slot);
    x->thread = mr_thread_start(name, executor_main, x);
    return x;
}

void mr_executor_run_here(struct mr_executor *x, struct mr_run *run)
{
    mr_assert(!x->thread);
    x->slot = run->slot;
    run_strand(x, run);
}

/* True: the pack (base/pack.h) has no tensor and no object. These may be small in the pack, but
 * work on them may take long. */
static bool is_small_pack(struct mr_str pack)
{
    struct mr_pack_reader r = mr_pack_read(pack);
    struct mr_pack_item item;
    while (!mr_pack_at_end(&r)) {
        if (mr_pack_next(&r, &item)) return false;
        if (item.type == MR_PACK_EXT && item.ext != MR_PACK_EXT_INPUT) return false;
    }
    return true;
}

bool mr_executor_is_small(const struct mr_executor_env *env, const struct mr_strand *strand)
{
    const struct mr_strand_item *item = &strand->items[0];
    if (strand->count != 1 || item->op >= env->ops_count) return false;
    if (!(env->ops[item->op]->flags & MR_OP_SMALL)) return false;
    if (item->want_object || item->persist || item->persist_name.n) return false;
    size_t bytes = item->args.n;
    for (uint32_t i = 0; i < item->inputs_count && bytes <= SMALL_BYTES; i++) {
        if (item->inputs[i].kind != MR_STRAND_PACK) return false;
        bytes += item->inputs[i].pack.n;
        if (bytes <= SMALL_BYTES && !is_small_pack(item->inputs[i].pack)) return false;
    }
    return bytes <= SMALL_BYTES && is_small_pack(item->args);
}

const struct mr_pulse *mr_executor_pulse(const struct mr_executor *x)
{
    return &x->pulse;
}

void mr_executor_stop(struct mr_executor **executor)
{
    struct mr_executor *x = *executor;
    if (!x) return;
    if (x->thread) {
        mr_inbox_close(x->inbox);
        mr_thread_join(&x->thread);
        if (x->env->work_sharing) mr_work_sharing_enter(x->env->work_sharing, x->work_slot, NULL);
        mr_inbox_free(&x->inbox);
    }
    mr_op_run_free(&x->call);
    mr_executor_local_value_fini(x);
    mr_release(x->took_ns);
    mr_release(x->small);
    mr_release(x->inputs);
    mr_release(x->views);
    mr_buf_fini(&x->log);
    mr_tail_fini(&x->tail);
    mr_buf_fini(&x->text);
    mr_release(x);
    *executor = NULL;
}

void mr_executor_give(struct mr_executor *x, struct mr_run *run)
{
    if (x->env->wake_counter) mr_wake_counter_spare(x->env->wake_counter, true);
    int err = mr_inbox_push(x->inbox, &run);
    /* the core gives an executor at most MR_SLOT_STRANDS_MAX strands, so its inbox has room */
    mr_assert(!err);
}
