/* train.scorer: evaluates the parameters on held-out data as they change, appends the scores to
 * the session's channel, and saves the model at the end. */
#include "train/role/scorer.h"

#include "host/clock.h"
#include "host/os/log.h"
#include "millrace/v1/channels.pb-c.h"
#include "train/params/client.h"
#include "train/state/chosen_params.h"
#include "train/state/evaluation.h"
#include "train/state/save_model.h"
#include "train/state/score.h"

#include <inttypes.h>
#include <stdio.h>

#define APPEND_TIMEOUT (2 * MR_SECOND)
#define ASK_TIMEOUT (2 * MR_SECOND)
/* limit of scores that wait for the trainer; a further one drops the oldest */
#define AHEAD_MAX 256u
#define SCORE_MAX 1024
#define COMPLAIN_EVERY MR_SECOND

struct scorer {
    struct mr_role r;
    struct mr_evaluation *evaluation;
    struct mr_chosen *chosen; /* NULL: no stop rule depends on the session's own scores */
    struct mr_params *params; /* NULL: not connected */
    uint64_t incarnation;     /* a hash of the restore epoch and the servers' incarnations */
    uint64_t version;         /* the version that was scored last */
    bool has_scored;
    mr_time next_at;
    char lines[AHEAD_MAX][SCORE_MAX]; /* scores that were not appended yet, the oldest first */
    uint32_t lines_count;
    mr_time append_at;
    mr_time complain_at;
    struct mr_pb_arena arena;
};

/* ---- connection ------------------------------------------------------------------------------ */

static Millrace__V1__TrainingRole server_role(const struct scorer *s)
{
    return s->r.plan.rule == MR_ROLE_ALLREDUCE ? MR_ROLE_WORKER : MR_ROLE_PS;
}

static uint32_t servers_count(const struct scorer *s)
{
    return s->r.plan.rule == MR_ROLE_ALLREDUCE ? 1 : s->r.plan.servers;
}

static uint64_t servers_word(const struct scorer *s)
{
    uint64_t h = s->r.members->m->restore_epoch;
    for (uint32_t i = 0; i < servers_count(s); i++)
        h = mr_hash_u64(h ^ mr_role_place(&s->r, server_role(s), i).incarnation);
    return h;
}

static int connect_servers(struct scorer *s, struct mr_error *e)
{
    struct mr_role *r = &s->r;
    struct mr_place places[MR_SHARDS_MAX];
    uint32_t n = servers_count(s);
    if (!n || n > MR_SHARDS_MAX)
        return mr_fail(e, MR_EINVAL, "roles.ps: 1 to %u wanted", MR_SHARDS_MAX);
    for (uint32_t i = 0; i < n; i++)
        places[i] = mr_role_place(r, server_role(s), i);
    s->incarnation = servers_word(s);
    const struct mr_params_options o = {.session = r->session,
        .incarnation = mr_role_place(r, MR_ROLE_SCORER, r->index).incarnation,
        .count = r->plan.model->count,
        .restore_epoch = r->members->m->restore_epoch,
        .shards = places,
        .shards_count = n,
        .reads_only = true,
        .stop = &r->stop};
    int err = mr_params_open(&o, mr_time_after(mr_clock_now(), 4 * MR_ROLE_TURN), &s->params, e);
    if (!err) r->post.restore_epoch = o.restore_epoch;
    return err == MR_EAWAY || err == MR_EABORTED ? MR_ETIMEOUT : err;
}

/* Pulls the newest parameters. MR_EAGAIN: no version of at least `version_min` came. */
static int pull(
    struct scorer *s, uint64_t version_min, struct mr_params_view *view, struct mr_error *e)
{
    int err = s->params ? MR_OK : connect_servers(s, e);
    mr_time deadline = mr_time_after(mr_clock_now(), MR_ROLE_TURN);
    if (!err) err = mr_params_pull(s->params, version_min, deadline, view, e);
    if (err == MR_EAWAY || err == MR_EABORTED) {
        mr_params_close(&s->params);
        mr_agent_wait(s->r.agent, deadline);
        return MR_EAGAIN;
    }
    if (err == MR_ETIMEOUT && !version_min && s->params)
        /* a server always has some version, so a timeout means that no server is at this address */
        mr_params_close(&s->params);
    return err == MR_ETIMEOUT ? MR_EAGAIN : err;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Adds the session's speed and training loss, which the trainer knows. Leaves them out if the
 * trainer does not answer. */
static void add_progress(struct scorer *s, struct mr_buf *out)
{
    Millrace__V1__GetTrainingRequest q = MILLRACE__V1__GET_TRAINING_REQUEST__INIT;
    const Millrace__V1__Training *t = NULL;
    struct mr_error e;
    q.id = s->r.session;
    int err = mr_role_call(s->r.link, "/millrace.v1.Trainings/Get", &q.base, ASK_TIMEOUT,
        mr_role_stop_of(&s->r), &millrace__v1__training__descriptor, &s->arena, &t, &e);
    if (err || !t) return;
    uint64_t now = mr_clock_wall();
    mr_score_number(out, "examples_per_s", t->examples_per_s);
    if (t->started_ns && now > t->started_ns)
        mr_score_number(out, "seconds", (double)(now - t->started_ns) / 1e9);
    if (t->counters && t->counters->steps) mr_score_number(out, "train_loss", t->counters->loss);
}

static void note(struct scorer *s, const struct mr_nn_score *score, uint64_t version)
{
    struct mr_buf line;
    mr_buf_init(&line, SCORE_MAX - 1);
    mr_buf_printf(&line, "{\"step\": %" PRIu64 ", \"version\": %" PRIu64, version, version);
    mr_score_fields(&line, &s->r.plan, score);
    mr_score_data(&line, &s->r);
    add_progress(s, &line);
    mr_buf_add_byte(&line, '}');
    if (!mr_buf_status(&line)) {
        if (s->chosen) mr_chosen_judge(s->chosen, mr_buf_str(&line));
        if (s->lines_count == AHEAD_MAX) {
            memmove(s->lines, s->lines + 1, (AHEAD_MAX - 1) * sizeof s->lines[0]);
            s->lines_count--;
        }
        (void)snprintf(
            s->lines[s->lines_count++], SCORE_MAX, "%.*s", MR_STR_ARG(mr_buf_str(&line)));
    }
    mr_buf_fini(&line);
}

/* Appends the waiting scores to the channel. Keeps them if the trainer is away. */
static void append(struct scorer *s)
{
    mr_time now = mr_clock_now();
    if (!s->lines_count || now < s->append_at) return;
    char *lines[AHEAD_MAX];
    for (uint32_t i = 0; i < s->lines_count; i++)
        lines[i] = s->lines[i];
    Millrace__V1__AppendRequest q = MILLRACE__V1__APPEND_REQUEST__INIT;
    q.channel = s->r.members->m->channel;
    q.value_json = lines;
    q.n_value_json = s->lines_count;
    struct mr_error e;
    int err = mr_role_call(s->r.link, "/millrace.v1.Channels/Append", &q.base, APPEND_TIMEOUT,
        mr_role_stop_of(&s->r), NULL, NULL, NULL, &e);
    if (err && mr_role_may_retry(err)) {
        s->append_at = mr_time_after(now, 200 * MR_MS);
        return;
    }
    if (err && err != MR_ECANCELED)
        mr_log(MR_WARN, "score.refused", "session=%s why=\"%s\"", s->r.session, e.text);
    s->lines_count = 0;
}

/* Scores the newest parameters once. MR_EAGAIN: there is no new version. */
static int score(struct scorer *s, struct mr_error *e)
{
    const struct mr_role_plan *p = &s->r.plan;
    struct mr_agent_counters *c = &s->r.post.counters;
    struct mr_params_view view;
    struct mr_nn_score got;
    mr_time at = mr_clock_now();
    uint64_t version_min = s->has_scored ? s->version + MR_MAX(p->score_steps, (uint64_t)1) : 0;
    int err = pull(s, version_min, &view, e);
    if (err) s->r.waited_ns += mr_clock_now() - at;
    if (err) return err;
    c->pull_s += mr_role_lap(&at);
    const float *scored = view.params;
    if (s->chosen) {
        scored = mr_chosen_copy(s->chosen, view.params, view.version);
        mr_params_release(s->params);
    }
    err = mr_evaluation_check_params(p->model, scored, view.version, e);
    if (!err) err = mr_evaluation_score(s->evaluation, scored, &got, e);
    if (!s->chosen) mr_params_release(s->params);
    if (err) return err;
    c->compute_s += mr_role_lap(&at);
    c->steps++;
    mr_agent_count_scored(c, got.loss_sum, got.correct, got.examples);
    s->version = view.version;
    s->has_scored = true;
    s->r.post.version = view.version;
    note(s, &got, view.version);
    return MR_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int keep(struct scorer *s, struct mr_error *e)
{
    struct mr_params_view view;
    const float *chosen = s->chosen ? mr_chosen_params(s->chosen, &view.version) : NULL;
    if (chosen) return mr_role_save_model(&s->r, chosen, view.version, e);
    int err = pull(s, 0, &view, e);
    if (!err) return mr_role_save_model(&s->r, view.params, view.version, e);
    mr_time now = mr_clock_now();
    /* a user may be waiting for the model, so the log says why it is late */
    if (err == MR_EAGAIN && now >= s->complain_at) {
        mr_log(MR_WARN, "model.load_retry", "session=%s why=\"%s\"", s->r.session, e->text);
        s->complain_at = mr_time_after(now, COMPLAIN_EVERY);
    }
    return err;
}

static int turn(struct scorer *s, bool *kept, struct mr_error *e)
{
    mr_time now = mr_clock_now();
    int err = MR_OK;
    append(s);
    if (s->r.view.phase == MR_ROLE_KEEP && !*kept && s->r.index == 0) {
        err = keep(s, e);
        *kept = !err;
    } else if (s->r.view.phase == MR_ROLE_RUN && now >= s->next_at) {
        err = score(s, e);
        if (!err && !s->r.plan.score_steps) s->next_at = mr_time_after(now, s->r.plan.score_every);
    } else {
        mr_time next = mr_time_after(now, MR_ROLE_TURN);
        mr_role_wait(&s->r, MR_MIN(next, MR_MAX(s->next_at, now + MR_MS)));
    }
    mr_agent_report(s->r.agent, &s->r.post);
    return err == MR_EAGAIN ? MR_OK : err;
}

static int score_on(struct scorer *s, struct mr_error *e)
{
    bool kept = false;
    for (;;) {
        bool is_new = false;
        int err = mr_role_look(&s->r, &is_new);
        if (err) return err;
        if (is_new && s->params && servers_word(s) != s->incarnation) {
            mr_params_close(&s->params);
            /* after a restore the version may be lower than the last scored one */
            s->has_scored = false;
        }
        err = turn(s, &kept, e);
        if (err) return err;
    }
}

static int scorer_run(struct mr_op_call *call)
{
    struct mr_error e;
    struct mr_error *words = &e;
    e.text[0] = 0;
    struct scorer *s = call->does->scratch(call, sizeof *s);
    if (!s) return MR_ELIMIT;
    mr_pb_arena_init(&s->arena, (size_t)64 << 20);
    int err = mr_role_begin(call, &s->r, MR_ROLE_SCORER, "", NULL);
    if (err) words = NULL;
    if (!err)
        err = mr_evaluation_open(&s->r, "validation", s->r.plan.score_examples, &s->evaluation, &e);
    if (!err) s->chosen = mr_chosen_new(&s->r.plan, s->r.members->m->channel);
    if (!err) err = score_on(s, &e);
    mr_chosen_free(&s->chosen);
    if (s->params) mr_params_close(&s->params);
    mr_evaluation_close(&s->evaluation);
    mr_pb_arena_fini(&s->arena);
    return mr_role_end(&s->r, err, words);
}

static const struct mr_op_param params[] = {
    {"session", MR_TAKES_TEXT, NULL, "Id of the training session."},
    {"index", MR_TAKES_INT, NULL, "Index among the roles of this kind, from 0."},
    {"trainer", MR_TAKES_TEXT, NULL, "Address of the trainer."},
    {"data", MR_TAKES_NIL | MR_TAKES_DICT, "null", "Sets of x and y, by name."},
};

const struct mr_op_desc mr_train_scorer_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_BY_REFERENCE | MR_OP_LONG_RUNNING | MR_OP_MAY_BLOCK,
    .name = "train.scorer",
    .summary =
        "Runs a role of a training session that scores the parameters; started by the trainer.",
    .result = "null",
    .params = params,
    .params_count = MR_ARRAY_LEN(params),
    .cost_ns = 1000000000,
    .run = scorer_run};
