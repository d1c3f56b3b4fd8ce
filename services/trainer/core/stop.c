/* Stop rules, and the moves of a session from state to state. */
#include "services/trainer/core/rows.h"

#include "base/unconst.h"

#include <stdarg.h>
#include <stdio.h>
#include <yyjson.h>

void mr_trainer__begin_stop(struct mr_trainer *t, struct session *s, const char *fmt, ...)
{
    if (mr_trainer__is_over(s->state) || s->state == MR_TRAINING_STOPPING) return;
    /* longer than `reason`, so that mr_trainer__copy cuts a long text and splits no UTF-8
     * character */
    char text[MR_TRAINING_REASON_BYTES_MAX + 2];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (s->state < MR_TRAINING_RUNNING) {
        mr_trainer__fail(t, s, "%s, before it ran", text);
        return;
    }
    s->reason_bytes = mr_trainer__copy(s->reason, sizeof s->reason, mr_str(text));
    s->phase = MR_TRAINING_HALT;
    mr_trainer__enter(t, s, MR_TRAINING_STOPPING);
}

/* ---- scores ---------------------------------------------------------------------------------- */

static bool entry_parse(struct mr_str text, struct entry_id *out)
{
    uint64_t part[2] = {0, 0};
    int at = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '-' && !at)
            at = 1;
        else if (text.p[i] < '0' || text.p[i] > '9')
            return false;
        else
            part[at] = part[at] * 10 + (uint64_t)(text.p[i] - '0');
    }
    *out = (struct entry_id){part[0], part[1]};
    return text.n > 0;
}

struct mr_str mr_trainer__channel(const struct session *s, int which)
{
    struct mr_str own = mr_str_of(s->channel, s->channel_bytes);
    if (!which || !s->document) return which ? (struct mr_str){0} : own;
    struct mr_str other = s->document->threshold_channel;
    return mr_str_eq(own, other) ? (struct mr_str){0} : other;
}

/* Called when the channel's last entry is known: only later entries count. */
void mr_trainer__located(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct entry_id id = {0};
    if (ev->entry.n && !entry_parse(ev->entry, &id)) return;
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        struct session *s = t->sessions[i];
        for (int k = 0; k < 2 && s->is_following; k++) {
            if (s->seen[k].ms != NOWHERE.ms || !mr_str_eq(mr_trainer__channel(s, k), ev->channel))
                continue;
            s->seen[k] = id;
            s->is_dirty = true;
            mr_trainer__follow_one(t, s, k, true);
        }
    }
}

static void judge_threshold(struct mr_trainer *t, struct session *s, yyjson_val *entry)
{
    const struct mr_nn_threshold *r = &s->document->threshold;
    double x = 0;
    if (mr_nn_threshold_is_met(r, entry, &x))
        mr_trainer__begin_stop(t, s, "%.*s is %g, %s %g", MR_STR_ARG(r->field), x,
            r->is_above ? "above" : "below", r->value);
}

static void judge_patience(struct mr_trainer *t, struct session *s, yyjson_val *entry)
{
    const struct mr_nn_patience *r = &s->document->patience;
    if (mr_nn_patience_judge(r, &s->patience, entry) != MR_NN_PATIENCE_ENDS) return;
    if (s->patience.has_best)
        mr_trainer__begin_stop(t, s, "%.*s was not better than %g in %u scores",
            MR_STR_ARG(r->field), s->patience.best, r->scores);
    else
        mr_trainer__begin_stop(
            t, s, "%.*s was no number in %u scores", MR_STR_ARG(r->field), r->scores);
}

/* Judges an entry of a channel, which is a log of JSON entries in Redis. An entry that comes before
 * the session first runs is ignored: it is a score of an earlier session. */
static void take_entry(struct mr_trainer *t, struct session *s, struct mr_str channel,
    struct entry_id id, struct mr_str text, yyjson_val *entry)
{
    bool is_own = mr_str_eq(mr_trainer__channel(s, 0), channel),
         is_other = mr_str_eq(mr_trainer__channel(s, 1), channel);
    struct entry_id *seen = &s->seen[is_own ? 0 : 1];
    if ((!is_own && !is_other) || !is_newer(id, *seen)) return;
    *seen = id;
    if (!s->started_ns) return;
    if (is_own && text.n <= sizeof s->score) {
        s->score_bytes = mr_trainer__copy(s->score, sizeof s->score, text);
        s->has_progress = true;
    }
    if (is_own) judge_patience(t, s, entry);
    if (is_other || !mr_trainer__channel(s, 1).n) judge_threshold(t, s, entry);
}

void mr_trainer__entry(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct entry_id id;
    yyjson_alc alc;
    if (ev->text.n > MR_TRAINING_ENTRY_BYTES_MAX || !entry_parse(ev->entry, &id)) return;
    if (!yyjson_alc_pool_init(&alc, t->scratch, t->scratch_bytes)) return;
    /* yyjson writes to the text only with YYJSON_READ_INSITU */
    yyjson_doc *doc = yyjson_read_opts(mr_unconst(ev->text.p), ev->text.n, 0, &alc, NULL);
    yyjson_val *root = yyjson_doc_get_root(doc);
    for (uint32_t i = 0; i < t->sessions_count && yyjson_is_obj(root); i++)
        if (t->sessions[i]->is_following)
            take_entry(t, t->sessions[i], ev->channel, id, ev->text, root);
    yyjson_doc_free(doc);
}

/* ---- the other rules ------------------------------------------------------------------------- */

static uint64_t time_left_ns(const struct mr_trainer *t, const struct session *s)
{
    uint64_t end = s->started_ns + s->document->time;
    return end > t->wall_ns ? end - t->wall_ns : 0;
}

static void rules(struct mr_trainer *t, struct session *s)
{
    const struct mr_training_document *d = s->document;
    uint64_t epoch = UINT64_MAX;
    bool all_exhausted = true, all_finished = true;
    for (uint32_t i = 0; i < s->members_count; i++) {
        const struct member *m = &s->members[i];
        if (m->role != MR_TRAINING_WORKER) continue;
        epoch = MR_MIN(epoch, MR_MAX(m->before.epoch, m->now.epoch));
        all_exhausted &= m->exhausted;
        all_finished &= m->state == MR_MEMBER_FINISHED;
    }
    if (d->is_exec && all_finished)
        mr_trainer__begin_stop(t, s, "all workers ended");
    else if (!d->is_exec && d->epochs && epoch >= d->epochs)
        mr_trainer__begin_stop(t, s, "%llu epochs are over", (unsigned long long)d->epochs);
    else if (!d->is_exec && all_exhausted)
        mr_trainer__begin_stop(t, s, "the data is used up");
    else if (d->steps && s->has_version && s->version >= d->steps)
        mr_trainer__begin_stop(t, s, "version %llu is reached", (unsigned long long)s->version);
    else if (d->time && s->started_ns && !time_left_ns(t, s))
        mr_trainer__begin_stop(t, s, "%g s are over", (double)d->time / 1e9);
}

/* ---- moves ----------------------------------------------------------------------------------- */

static bool is_waited_for(struct session *s, const struct member *m)
{
    bool here = m->state == MR_MEMBER_HERE;
    bool exec = s->document->is_exec;
    if (s->state == MR_TRAINING_FORMING) return !here && !(exec && m->state == MR_MEMBER_FINISHED);
    if (s->state == MR_TRAINING_RECOVERING)
        return (!here && !(exec && m->state == MR_MEMBER_FINISHED)) ||
               (mr_trainer__is_owner(s, m) && !m->restored && s->restores);
    if (s->phase == MR_TRAINING_EXIT) return m->state != MR_MEMBER_FINISHED;
    if (s->phase == MR_TRAINING_KEEP) return m == mr_trainer__saver(s);
    bool source = m->role == MR_TRAINING_PS || m->index == 0;
    if (mr_trainer__is_owner(s, m) && source && (!here || (!m->restored && s->restores)))
        return true;
    return m->role == MR_TRAINING_WORKER && here && !m->halted;
}

static bool is_complete(struct session *s)
{
    for (uint32_t i = 0; i < s->members_count; i++)
        if (is_waited_for(s, &s->members[i])) return false;
    return true;
}

static void phases(struct mr_trainer *t, struct session *s)
{
    if (s->phase == MR_TRAINING_HALT && is_complete(s)) {
        s->phase = s->document->is_exec ? MR_TRAINING_EXIT : MR_TRAINING_KEEP;
        s->is_dirty = true;
    }
    if (s->phase == MR_TRAINING_EXIT && (s->job[JOB_ROLES].state == JOB_ENDED || is_complete(s)))
        mr_trainer__enter(t, s, MR_TRAINING_DONE);
}

static void roles_wanted(struct mr_trainer *t, struct session *s)
{
    mr_trainer__enter(t, s, MR_TRAINING_FORMING);
    s->job[JOB_ROLES].state = JOB_WANTED;
}

static void job_ended(struct mr_trainer *t, struct session *s, bool roles)
{
    const struct job *j = &s->job[roles];
    if (j->state != JOB_ENDED) return;
    if (roles && s->phase != MR_TRAINING_EXIT && j->outcome == MR_TRAINING_JOB_DONE)
        mr_trainer__fail(t, s, "all roles ended by themselves");
    if (!roles && j->outcome == MR_TRAINING_JOB_DONE) roles_wanted(t, s);
}

void mr_trainer__evaluate(struct mr_trainer *t, struct session *s)
{
    if (s->state == MR_TRAINING_PREPARING) {
        if (s->job[JOB_GRAPH].state == JOB_NONE)
            roles_wanted(t, s);
        else
            job_ended(t, s, false);
        return;
    }
    job_ended(t, s, true);
    if (s->state == MR_TRAINING_FORMING && is_complete(s)) {
        s->started_ns = t->wall_ns;
        mr_trainer__rows_settle(s);
        mr_trainer__enter(t, s, MR_TRAINING_RUNNING);
        /* the job that feeds the queue starts after the roles, so that it cannot take their
         * slots */
        if (s->document->has_feed) s->job[JOB_FEED].state = JOB_WANTED;
    }
    if (s->state == MR_TRAINING_RECOVERING && is_complete(s))
        mr_trainer__enter(t, s, MR_TRAINING_RUNNING);
    if (s->state == MR_TRAINING_RUNNING || s->state == MR_TRAINING_RECOVERING) rules(t, s);
    if (s->state == MR_TRAINING_STOPPING) phases(t, s);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

mr_duration mr_trainer__bound_of(const struct session *s)
{
    switch (s->state) {
    case MR_TRAINING_PREPARING: return s->document->preparing;
    case MR_TRAINING_FORMING: return s->document->forming;
    case MR_TRAINING_RECOVERING: return s->document->recovering;
    case MR_TRAINING_STOPPING: return s->document->stopping;
    case MR_TRAINING_RUNNING:
    case MR_TRAINING_DONE:
    case MR_TRAINING_FAILED: break;
    }
    return MR_NEVER;
}

static void waited_for(struct session *s, struct mr_buf *out)
{
    static const char *const names[] = {"", "ps", "worker", "scorer"};
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->members_count && s->state != MR_TRAINING_PREPARING; i++) {
        const struct member *m = &s->members[i];
        if (!is_waited_for(s, m)) continue;
        if (++count <= 12)
            mr_buf_printf(out, "%s%s %u", count > 1 ? ", " : "", names[m->role], m->index);
    }
    if (count > 12) mr_buf_printf(out, " and %u more", count - 12);
    if (!count) mr_buf_add_text(out, "the graph's job");
}

void mr_trainer__bound(struct mr_trainer *t, struct session *s)
{
    static const char *const what[] = {
        "", "preparing its data", "forming", "", "recovering", "stopping", "", ""};
    mr_duration bound = mr_trainer__bound_of(s);
    if (mr_time_after(s->since, bound) > t->now) return;
    bool kept = !mr_object_id_is_none(s->model);
    struct mr_buf names;
    mr_buf_init(&names, 600);
    waited_for(s, &names);
    mr_trainer__fail(t, s, "%s took longer than %g s: waited for %.*s%s", what[s->state],
        (double)bound / 1e9, MR_STR_ARG(mr_buf_str(&names)), kept ? "; its model is kept" : "");
    mr_buf_fini(&names);
}

mr_time mr_trainer__stop_next(const struct mr_trainer *t, const struct session *s)
{
    mr_time next = mr_time_after(s->since, mr_trainer__bound_of(s));
    bool runs = s->state == MR_TRAINING_RUNNING || s->state == MR_TRAINING_RECOVERING;
    if (runs && s->document->time)
        next = MR_MIN(next, mr_time_after(t->now, MR_MAX(time_left_ns(t, s), 1u)));
    return next;
}
