/* How a prediction goes:
 *
 *   IDLE ──ask──▶ READING ──account──▶ RUNNING ──ended──▶ IDLE
 *     ▲              │ the call ended      the call ended: the program is killed, then `ended`
 *     └──────────────┘
 *
 * The core thread owns `phase`, `call` and the facts. The run belongs to the thread in phase
 * RUNNING. The thread hears of `stop` through a flag. */
#include "services/scheduler/predict/predict.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/flag.h"
#include "host/os/file.h"
#include "host/os/log.h"
#include "host/thread.h"
#include "services/scheduler/base/job_lookup.h"
#include "services/scheduler/history/job_account.h"
#include "services/scheduler/predict/child.h"
#include "services/scheduler/predict/request.h"
#include "services/scheduler/telemetry/trace.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define TIME_MAX (60 * MR_SECOND)
#define MEMORY_BYTES_MAX ((uint64_t)2 << 30)
#define NODES_MAX 1000000u
#define OUTPUT_BYTES_MAX ((size_t)1 << 20)
/* the program, the facts, and the fields of a request with all that it may have */
#define ARGS_MAX (16 + MR_PREDICT_FREE_MAX + MR_PREDICT_OP_SPEEDS_MAX)
#define ENDED_TIMEOUT (60 * MR_SECOND)

struct mr_predict_run {
    char *argv[ARGS_MAX + 1]; /* owned texts */
    uint32_t argc;
    struct mr_buf out;
    struct mr_error error;
};

enum phase { IDLE, READING, RUNNING };

struct facts { /* of the recorded job */
    uint64_t wall_ns, slots, other_ns, not_recorded;
    struct mr_account_sums sums, path;
};

struct mr_predict {
    struct mr_inbox *inbox;   /* of the thread: struct mr_predict_run * each */
    struct mr_inbox *answers; /* the core thread's inbox */
    struct mr_thread *thread;
    char *program;
    struct mr_flag stop;
    enum phase phase;
    struct mr_rpc_call *call;   /* NULL: the call has ended */
    struct mr_predict_run *run; /* READING: is filled; RUNNING: NULL */
    struct facts facts;
};

/* ---- runs ------------------------------------------------------------------------------------ */

/* Adds an argument and takes its text. */
static void add(struct mr_predict_run *r, char *text)
{
    mr_assert(r->argc < ARGS_MAX);
    r->argv[r->argc++] = text;
}

void mr_predict_run_free(struct mr_predict_run **rp)
{
    struct mr_predict_run *r = *rp;
    *rp = NULL;
    if (!r) return;
    for (uint32_t i = 0; i < r->argc; i++)
        mr_release(r->argv[i]);
    mr_buf_fini(&r->out);
    mr_release(r);
}

/* Makes the arguments that are known before the account is read. The password of Redis is in a file
 * that the program reads itself, because every user of the machine can see arguments. */
static struct mr_predict_run *run_new(
    const struct mr_shell *sh, mr_job_id job, const Millrace__V1__WhatIfRequest *m)
{
    const struct mr_scheduler_options *o = &sh->options;
    struct mr_predict_run *r = mr_alloc(sizeof *r);
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(job, id);
    mr_buf_init(&r->out, OUTPUT_BYTES_MAX);
    add(r, mr_format("%s", sh->predict->program));
    add(r, mr_format("--redis=%s", o->redis));
    if (o->redis_password_file)
        add(r, mr_format("--redis-password-file=%s", o->redis_password_file));
    if (o->dir) add(r, mr_format("--dir=%s", o->dir));
    if (m->slots) add(r, mr_format("--slots=%u", m->slots));
    if (m->processors) add(r, mr_format("--processors=%u", m->processors));
    if (m->bandwidth > 0) add(r, mr_format("--bandwidth=%.17g", m->bandwidth));
    for (size_t i = 0; i < m->n_free; i++)
        add(r, mr_format("--free=%s", m->free[i]));
    for (size_t i = 0; i < m->n_op_speed; i++)
        add(r, mr_format("--op-speed=%s", m->op_speed[i]));
    add(r, mr_format("%s", id));
    return r;
}

static void work(void *ctx)
{
    struct mr_predict *p = ctx;
    struct mr_predict_run *r = NULL;
    for (;;) {
        if (!mr_inbox_wait(p->inbox, MR_NEVER, &r, 1)) {
            if (mr_inbox_is_closed(p->inbox)) return;
            continue;
        }
        const struct mr_predict_child child = {.argv = r->argv,
            .time_max = TIME_MAX,
            .memory_bytes_max = MEMORY_BYTES_MAX,
            .stop = &p->stop};
        r->error.code = mr_predict_child_run(&child, &r->out, &r->error);
        struct mr_shell_message m = {.kind = MR_SHELL_PREDICTED, .p = r};
        if (mr_inbox_push_wait(p->answers, &m, mr_clock_now() + ENDED_TIMEOUT))
            mr_predict_run_free(&r); /* the process is stopping */
    }
}

struct mr_predict *mr_predict_open(struct mr_shell *sh)
{
    struct mr_predict *p = mr_alloc(sizeof *p);
    p->program = mr_file_beside_program("mr-predictor");
    p->answers = sh->inbox;
    p->inbox = mr_inbox_new(2, sizeof(struct mr_predict_run *));
    p->thread = mr_thread_start("predict", work, p);
    return p;
}

void mr_predict_close(struct mr_predict **pp)
{
    struct mr_predict *p = *pp;
    *pp = NULL;
    if (!p) return;
    mr_flag_set(&p->stop, true);
    mr_inbox_close(p->inbox);
    mr_thread_join(&p->thread);
    struct mr_predict_run *r = NULL;
    while (mr_inbox_take(p->inbox, &r, 1))
        mr_predict_run_free(&r);
    mr_inbox_free(&p->inbox);
    mr_predict_run_free(&p->run);
    mr_release(p->program);
    mr_release(p);
}

/* ---- answers --------------------------------------------------------------------------------- */

static size_t classes_out(struct mr_shell *sh, const struct mr_account_sums *sums,
    Millrace__V1__WhatIfOutcome__ClassesEntry ***out)
{
    *out = mr_shell_take(sh, MR_ACCOUNT_CLASSES * sizeof **out);
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++) {
        Millrace__V1__WhatIfOutcome__ClassesEntry *m = mr_shell_take(sh, sizeof *m);
        millrace__v1__what_if_outcome__classes_entry__init(m);
        m->key = mr_unconst(mr_account_class_name((enum mr_account_class)i));
        m->value = sums->ns[i];
        (*out)[i] = m;
    }
    return MR_ACCOUNT_CLASSES;
}

static size_t path_out(struct mr_shell *sh, const struct mr_account_sums *sums,
    Millrace__V1__WhatIfOutcome__CriticalPathEntry ***out)
{
    *out = mr_shell_take(sh, MR_ACCOUNT_CLASSES * sizeof **out);
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++) {
        Millrace__V1__WhatIfOutcome__CriticalPathEntry *m = mr_shell_take(sh, sizeof *m);
        millrace__v1__what_if_outcome__critical_path_entry__init(m);
        m->key = mr_unconst(mr_account_class_name((enum mr_account_class)i));
        m->value = sums->ns[i];
        (*out)[i] = m;
    }
    return MR_ACCOUNT_CLASSES;
}

/* Answers with what the program wrote: a byte that is 0, and a WhatIfResponse without what was
 * recorded; or a byte with an error code, negated, and its sentence. */
static void answer(struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_predict_run *r)
{
    const struct facts *f = &sh->predict->facts;
    struct mr_str out = mr_buf_str(&r->out);
    if (!out.n) {
        mr_shell_fail(call, MR_EINTERNAL, "mr-predictor wrote no answer");
        return;
    }
    int code = -(int)(unsigned char)out.p[0];
    struct mr_str rest = mr_str_of(out.p + 1, out.n - 1);
    if (code) {
        mr_shell_fail(call, code, "%.*s", MR_STR_ARG(rest));
        return;
    }
    mr_pb_arena_clear(&sh->scratch);
    struct mr_error e = {0};
    Millrace__V1__WhatIfResponse *m =
        mr_pb_unpack(&millrace__v1__what_if_response__descriptor, rest, &sh->scratch, &e);
    if (!m) {
        mr_shell_fail(call, MR_EINTERNAL, "the answer of mr-predictor is damaged: %s", e.text);
        return;
    }
    Millrace__V1__WhatIfOutcome recorded = MILLRACE__V1__WHAT_IF_OUTCOME__INIT;
    recorded.wall_ns = f->wall_ns;
    recorded.slots = f->slots;
    recorded.n_classes = classes_out(sh, &f->sums, &recorded.classes);
    recorded.n_critical_path = path_out(sh, &f->path, &recorded.critical_path);
    m->recorded = &recorded;
    m->other_ns = f->other_ns;
    m->not_recorded += f->not_recorded;
    (void)mr_rpc_call_reply_pb(call, &m->base);
}

void mr_predict_ended(struct mr_shell *sh, struct mr_predict_run **run)
{
    MR_AUTO(mr_predict_run_free) struct mr_predict_run *r = MR_STEAL(*run);
    struct mr_predict *p = sh->predict;
    struct mr_rpc_call *call = MR_STEAL(p->call);
    p->phase = IDLE;
    mr_flag_set(&p->stop, false);
    if (r->error.code == MR_EINTERNAL || r->error.code == MR_EIO)
        mr_log(MR_WARN, "prediction.failed", "what=\"%s\"", r->error.text);
    if (!call) return;
    if (r->error.code)
        mr_shell_fail(call, r->error.code, "%s", r->error.text);
    else
        answer(sh, call, r);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Passes the run to the thread, with the facts that the account has. */
static void run_start(struct mr_predict *p, const struct mr_job_account *a)
{
    struct mr_predict_run *r = p->run;
    struct facts *f = &p->facts;
    uint64_t attempts = 0;
    for (uint32_t i = 0; i < a->ops_count; i++)
        attempts += a->ops[i].attempts;
    f->wall_ns = a->until_ns - a->from_ns;
    f->slots = (a->slot_ns + f->wall_ns / 2) / f->wall_ns;
    f->other_ns = a->other_ns;
    f->not_recorded = a->not_recorded;
    f->sums = a->sums;
    f->path = a->path;
    add(r, mr_format("--submitted-ns=%" PRIu64, a->from_ns));
    add(r, mr_format("--over-ns=%" PRIu64, a->until_ns));
    add(r, mr_format("--recorded-slots=%" PRIu64, f->slots));
    add(r, mr_format("--recorded-processors=%u", a->processors));
    add(r, mr_format("--spans=%" PRIu64, attempts));
    p->phase = RUNNING;
    int err = mr_inbox_push(p->inbox, &p->run);
    mr_assert(!err); /* the inbox has room for two, and there is one run */
    p->run = NULL;
}

static void on_account(
    struct mr_shell *sh, struct mr_rpc_call *call, int err, const struct mr_job_account *account)
{
    struct mr_predict *p = sh->predict;
    mr_assert(p->phase == READING && p->call == call);
    if (!err && !account->is_away && account->is_over && account->slot_ns) {
        run_start(p, account);
        return;
    }
    p->phase = IDLE;
    p->call = NULL;
    mr_predict_run_free(&p->run);
    if (err)
        mr_shell_fail(call, err, "the trace has nothing of that job");
    else if (account->is_away)
        mr_shell_fail(call, MR_EAWAY, "Redis does not answer, so the trace cannot be read");
    else
        mr_shell_fail(call, MR_ESTATE, "the trace has no slot or no end of that job");
}

void mr_predict_ask(struct mr_shell *sh, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, const Millrace__V1__WhatIfRequest *m)
{
    struct mr_predict *p = sh->predict;
    struct mr_error e = {0};
    if (mr_predict_check(m, info->graph->ops, info->graph->ops_count, &e))
        mr_shell_fail(call, e.code, "%s", e.text);
    else if (!mr_job_is_over(info->state))
        mr_shell_fail(
            call, MR_ESTATE, "job %s is not over: a prediction needs a job that has ended", m->id);
    else if (info->graph->nodes_count > NODES_MAX)
        mr_shell_fail(call, MR_ETOOBIG,
            "the job has %u nodes, and the cluster predicts jobs of at most %u: use `millrace "
            "whatif --offline`",
            info->graph->nodes_count, NODES_MAX);
    else if (access(p->program, X_OK))
        mr_shell_fail(call, MR_EUNIMPL, "mr-predictor is not installed beside mr-scheduler");
    else if (p->phase != IDLE)
        mr_shell_fail(
            call, MR_ELIMIT, "another prediction is being made: try again in some seconds");
    else {
        const struct mr_trace_ask ask = {.kind = MR_TRACE_ASK_ACCOUNT,
            .job = info->id,
            .steps_max = 1,
            .on_account = on_account};
        p->phase = READING;
        p->call = call;
        p->run = run_new(sh, info->id, m);
        mr_trace_ask(sh, call, &ask);
    }
}

void mr_predict_call_done(struct mr_shell *sh, const struct mr_rpc_call *call)
{
    struct mr_predict *p = sh->predict;
    if (!p || p->call != call) return;
    p->call = NULL;
    if (p->phase == RUNNING) mr_flag_set(&p->stop, true);
    if (p->phase == READING) {
        p->phase = IDLE;
        mr_predict_run_free(&p->run);
    }
}
