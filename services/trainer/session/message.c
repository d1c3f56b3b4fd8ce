/* Makes messages from the core's state. The memory belongs to the scratch arena, so a message is
 * valid until the next request is unpacked. */
#include "services/trainer/session/internal.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/unconst.h"

#include <string.h>

static void *take(struct mr_trainings *tr, size_t bytes)
{
    void *p = mr_pb_arena_take(&tr->t->scratch, bytes ? bytes : 1);
    mr_assert(p); /* there is memory, since a session is far smaller than the arena */
    memset(p, 0, bytes ? bytes : 1);
    return p;
}

struct mr_str mr_training_json(const struct mr_trainings *tr, mr_training_id id)
{
    struct mr_training_info info;
    if (mr_trainer_info(tr->core, id, &info) || !info.document) return (struct mr_str){0};
    return mr_training_document_json(info.document);
}

static char *text_of(struct mr_trainings *tr, struct mr_str s)
{
    char *p = take(tr, s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

static char *object_text(struct mr_trainings *tr, mr_object_id id)
{
    char *p = take(tr, MR_OBJECT_ID_TEXT_MAX);
    if (!mr_object_id_is_none(id)) mr_object_id_format(id, p);
    return p;
}

static char *job_text(struct mr_trainings *tr, mr_job_id id)
{
    char *p = take(tr, MR_JOB_ID_TEXT_MAX);
    if (id.v) mr_job_id_format(id, p);
    return p;
}

static Millrace__V1__TrainingCounters *counters(
    struct mr_trainings *tr, const struct mr_training_counters *c)
{
    Millrace__V1__TrainingCounters *m = take(tr, sizeof *m);
    millrace__v1__training_counters__init(m);
    m->steps = c->steps;
    m->examples = c->examples;
    m->epoch = c->epoch;
    m->loss = c->loss;
    m->accuracy = c->accuracy;
    m->pull_s = c->pull_s;
    m->push_s = c->push_s;
    m->wait_s = c->wait_s;
    m->compute_s = c->compute_s;
    m->feed_s = c->feed_s;
    m->gradients_stale = c->gradients_stale;
    m->gradients_lost = c->gradients_lost;
    m->steps_lost = c->steps_lost;
    m->gradients_applied = c->gradients_applied;
    m->moved_parts = c->moved_parts;
    m->moved_bytes = c->moved_bytes;
    return m;
}

static Millrace__V1__TrainingCheckpoint *checkpoint(
    struct mr_trainings *tr, const struct mr_training_checkpoint *c)
{
    if (!c->objects_count) return NULL;
    Millrace__V1__TrainingCheckpoint *m = take(tr, sizeof *m);
    millrace__v1__training_checkpoint__init(m);
    m->version = c->version;
    m->time_ns = c->wall_ns;
    m->objects = take(tr, c->objects_count * sizeof *m->objects);
    for (uint32_t i = 0; i < c->objects_count; i++)
        m->objects[m->n_objects++] = object_text(tr, c->objects[i]);
    return m;
}

static Millrace__V1__TrainingMember *member(
    struct mr_trainings *tr, const struct mr_training_member_info *x, bool with_counters)
{
    static const char *const states[] = {[MR_MEMBER_MISSING] = "missing",
        [MR_MEMBER_HERE] = "here",
        [MR_MEMBER_LOST] = "lost",
        [MR_MEMBER_FINISHED] = "finished"};
    Millrace__V1__TrainingMember *m = take(tr, sizeof *m);
    millrace__v1__training_member__init(m);
    m->role = (Millrace__V1__TrainingRole)x->role;
    m->index = x->index;
    m->address = text_of(tr, x->address);
    m->node = text_of(tr, x->node);
    m->socket = text_of(tr, x->socket);
    m->incarnation = x->incarnation;
    m->state = text_of(tr, mr_str(states[x->state]));
    m->task = text_of(tr, x->task);
    if (with_counters) m->counters = counters(tr, &x->counters);
    return m;
}

static Millrace__V1__TrainingMember **members(
    struct mr_trainings *tr, const struct mr_training_info *info, bool with_counters)
{
    Millrace__V1__TrainingMember **out = take(tr, info->members_count * sizeof *out);
    for (uint32_t i = 0; i < info->members_count; i++) {
        struct mr_training_member_info x;
        mr_trainer_member(tr->core, info->id, i, &x);
        out[i] = member(tr, &x, with_counters);
    }
    return out;
}

/* Returns the members' addresses by role; "": the member has not joined yet. */
static Millrace__V1__ClusterSpec *cluster(struct mr_trainings *tr, const Millrace__V1__Training *m)
{
    Millrace__V1__ClusterSpec *c = take(tr, sizeof *c);
    millrace__v1__cluster_spec__init(c);
    c->ps = take(tr, m->n_members * sizeof(char *));
    c->worker = take(tr, m->n_members * sizeof(char *));
    c->scorer = take(tr, m->n_members * sizeof(char *));
    for (size_t i = 0; i < m->n_members; i++) {
        char *address = m->members[i]->address;
        switch ((int)m->members[i]->role) {
        case MILLRACE__V1__TRAINING_ROLE__TRAINING_PS: c->ps[c->n_ps++] = address; break;
        case MILLRACE__V1__TRAINING_ROLE__TRAINING_WORKER:
            c->worker[c->n_worker++] = address;
            break;
        default: c->scorer[c->n_scorer++] = address; break;
        }
    }
    return c;
}

/* Sets `*out` to the environment variables of member `at`: name, value, name, value, … Returns the
 * number of variables. */
static size_t pairs(struct mr_trainings *tr, mr_training_id id, uint32_t at, struct mr_str **out)
{
    struct mr_buf b;
    size_t count = 0;
    mr_buf_init(&b, (size_t)1 << 20);
    mr_trainer_environment(tr->core, id, at, &b);
    char *copy = text_of(tr, mr_buf_str(&b));
    for (size_t i = 0; i < b.n; i++)
        count += copy[i] == 0;
    *out = take(tr, count * sizeof **out);
    size_t n = 0;
    for (const char *p = copy; n < count; p += strlen(p) + 1)
        (*out)[n++] = mr_str(p);
    mr_buf_fini(&b);
    return count / 2;
}

static void environments(
    struct mr_trainings *tr, const struct mr_training_info *info, Millrace__V1__Training *m)
{
    m->environments = take(tr, info->members_count * sizeof *m->environments);
    for (uint32_t i = 0; i < info->members_count; i++) {
        struct mr_str *texts = NULL;
        Millrace__V1__TrainingEnvironment *x = take(tr, sizeof *x);
        millrace__v1__training_environment__init(x);
        x->role = m->members[i]->role;
        x->index = m->members[i]->index;
        size_t n = pairs(tr, info->id, i, &texts);
        x->variables = take(tr, n * sizeof *x->variables);
        for (size_t k = 0; k < n; k++) {
            Millrace__V1__TrainingEnvironment__VariablesEntry *row = take(tr, sizeof *row);
            millrace__v1__training_environment__variables_entry__init(row);
            row->key = mr_unconst(texts[2 * k].p);
            row->value = mr_unconst(texts[2 * k + 1].p);
            x->variables[x->n_variables++] = row;
        }
        m->environments[m->n_environments++] = x;
    }
}

static char *shown(struct mr_trainings *tr, const struct mr_training_document *d)
{
    struct mr_buf b;
    mr_buf_init(&b, 4 * MR_TRAINING_DOCUMENT_BYTES_MAX);
    mr_training_document_show(d, &b);
    char *text = text_of(tr, mr_buf_str(&b));
    mr_buf_fini(&b);
    return text;
}

Millrace__V1__Training *mr_training_message(
    struct mr_trainings *tr, mr_training_id id, bool is_whole)
{
    struct mr_training_info info;
    char text[MR_TRAINING_ID_TEXT_MAX];
    if (mr_trainer_info(tr->core, id, &info)) return NULL;
    Millrace__V1__Training *m = take(tr, sizeof *m);
    millrace__v1__training__init(m);
    mr_trainer_id_format(id, text);
    m->id = text_of(tr, mr_str(text));
    m->state = (Millrace__V1__TrainingState)info.state;
    m->reason = text_of(tr, info.reason);
    m->created_ns = info.created_ns;
    m->started_ns = info.started_ns;
    m->ended_ns = info.ended_ns;
    m->members = members(tr, &info, true);
    m->n_members = info.members_count;
    m->cluster = cluster(tr, m);
    m->counters = counters(tr, &info.counters);
    m->examples_per_s = info.examples_per_s;
    m->channel = text_of(tr, info.channel);
    m->score_json = text_of(tr, info.score_json);
    m->model_object = object_text(tr, info.model_object);
    m->checkpoint = checkpoint(tr, &info.checkpoint);
    m->version = info.version;
    m->generation = info.generation;
    m->restores = info.restores;
    m->graph_job = job_text(tr, info.graph_job);
    m->role_job = job_text(tr, info.role_job);
    m->request_id = text_of(tr, info.request_id);
    if (info.document) {
        m->name = text_of(tr, mr_training_document_name(info.document));
        if (m->model_object[0])
            m->model_name = text_of(tr, mr_training_document_save(info.document));
        if (is_whole) m->document_json = shown(tr, info.document);
    }
    if (is_whole) environments(tr, &info, m);
    return m;
}

void mr_training_reply(struct mr_rpc_call *call, struct mr_trainings *tr, mr_training_id id)
{
    const Millrace__V1__Training *m = mr_training_message(tr, id, true);
    if (m)
        (void)mr_rpc_call_reply_pb(call, &m->base);
    else
        mr_trainer_fail(call, MR_ENOENT, "the session was forgotten meanwhile");
}

static void joined_environment(
    struct mr_trainings *tr, mr_training_id id, uint32_t at, Millrace__V1__JoinResponse *m)
{
    struct mr_str *texts = NULL;
    size_t n = pairs(tr, id, at, &texts);
    m->environment = take(tr, n * sizeof *m->environment);
    for (size_t k = 0; k < n; k++) {
        Millrace__V1__JoinResponse__EnvironmentEntry *row = take(tr, sizeof *row);
        millrace__v1__join_response__environment_entry__init(row);
        row->key = mr_unconst(texts[2 * k].p);
        row->value = mr_unconst(texts[2 * k + 1].p);
        m->environment[m->n_environment++] = row;
    }
}

Millrace__V1__RowPlan *mr_training_rows_message(
    struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    const uint64_t *ranges = NULL;
    uint32_t count = 0;
    Millrace__V1__RowPlan *m = take(tr, sizeof *m);
    millrace__v1__row_plan__init(m);
    m->decided = mr_trainer_rows(tr->core, x->session, x->index, &ranges, &count);
    m->n_ranges = 2 * (size_t)count;
    m->ranges = take(tr, m->n_ranges * sizeof *m->ranges);
    if (count) memcpy(m->ranges, ranges, m->n_ranges * sizeof *m->ranges);
    return m;
}

Millrace__V1__JoinResponse *mr_training_joined_message(
    struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    struct mr_training_info info;
    if (mr_trainer_info(tr->core, x->session, &info)) return NULL;
    Millrace__V1__JoinResponse *m = take(tr, sizeof *m);
    millrace__v1__join_response__init(m);
    m->formed = x->joined.formed;
    m->incarnation = x->joined.incarnation;
    m->resume_steps = x->joined.resume_steps;
    m->generation = x->instruction.generation;
    m->restore_epoch = x->instruction.restore_epoch;
    m->phase = (Millrace__V1__TrainingPhase)x->instruction.phase;
    m->channel = text_of(tr, info.channel);
    m->members = members(tr, &info, false);
    m->n_members = info.members_count;
    if (x->joined.has_checkpoint) m->checkpoint = checkpoint(tr, &info.restore);
    if (info.document) m->document_json = text_of(tr, mr_training_document_json(info.document));
    if (x->role == MR_TRAINING_WORKER) m->rows = mr_training_rows_message(tr, x);
    for (uint32_t i = 0; i < info.members_count; i++)
        if ((int)m->members[i]->role == (int)x->role && m->members[i]->index == x->index)
            joined_environment(tr, x->session, i, m);
    return m;
}
