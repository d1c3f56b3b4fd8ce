/* What the core shows of its state: sessions, members, environments, ids. This file also checks the
 * invariants. */
#include "services/trainer/core/internal.h"

#include <stdio.h>

void mr_trainer_id_format(mr_training_id id, char out[MR_TRAINING_ID_TEXT_MAX])
{
    (void)snprintf(out, MR_TRAINING_ID_TEXT_MAX, "t%u-%u", (uint32_t)(id.v >> 32), (uint32_t)id.v);
}

int mr_trainer_id_parse(struct mr_str text, mr_training_id *out)
{
    uint64_t part[2] = {0, 0};
    size_t digits = 0;
    int at = 0;
    if (!text.n || text.p[0] != 't') return MR_EINVAL;
    for (size_t i = 1; i < text.n; i++) {
        if (text.p[i] == '-' && at == 0 && digits) {
            at = 1;
            digits = 0;
            continue;
        }
        bool leads = !digits && text.p[i] == '0';
        if (text.p[i] < '0' || text.p[i] > '9' || leads) return MR_EINVAL;
        part[at] = part[at] * 10 + (uint64_t)(text.p[i] - '0');
        if (part[at] > UINT32_MAX) return MR_EINVAL;
        digits++;
    }
    if (!at || !digits) return MR_EINVAL;
    out->v = part[0] << 32 | part[1];
    return MR_OK;
}

static bool is_shown(const struct session *s)
{
    return s->is_known && !s->is_forgotten;
}

static void add_counters(
    struct mr_training_counters *to, const struct mr_training_counters *c, bool of_worker)
{
    to->gradients_stale += c->gradients_stale;
    to->gradients_lost += c->gradients_lost;
    to->gradients_applied += c->gradients_applied;
    if (!of_worker) return;
    to->steps += c->steps;
    to->examples += c->examples;
    to->pull_s += c->pull_s;
    to->push_s += c->push_s;
    to->wait_s += c->wait_s;
    to->compute_s += c->compute_s;
    to->feed_s += c->feed_s;
    to->moved_parts += c->moved_parts;
    to->moved_bytes += c->moved_bytes;
}

static struct mr_training_counters total(const struct member *m)
{
    struct mr_training_counters c = m->before;
    add_counters(&c, &m->now, true);
    c.epoch = MR_MAX(m->before.epoch, m->now.epoch);
    c.loss = m->now.steps ? m->now.loss : m->before.loss;
    c.accuracy = m->now.steps ? m->now.accuracy : m->before.accuracy;
    c.steps_lost = m->before.steps_lost + m->now.steps_lost;
    return c;
}

static void sum(const struct session *s, struct mr_training_counters *out)
{
    uint32_t workers = 0, speaking = 0;
    for (uint32_t i = 0; i < s->members_count; i++) {
        const struct member *m = &s->members[i];
        struct mr_training_counters c = total(m);
        bool is_worker = m->role == MR_TRAINING_WORKER;
        add_counters(out, &c, is_worker);
        if (!is_worker) continue;
        out->epoch = workers++ ? MR_MIN(out->epoch, c.epoch) : c.epoch;
        if (!c.steps) continue;
        speaking++;
        out->loss += c.loss;
        out->accuracy += c.accuracy;
    }
    out->steps_lost = s->steps_lost;
    if (!speaking) return;
    out->loss /= speaking;
    out->accuracy /= speaking;
}

static struct mr_training_checkpoint shown(const struct checkpoint *c)
{
    return (struct mr_training_checkpoint){c->version, c->wall_ns, c->objects, c->count};
}

int mr_trainer_info(const struct mr_trainer *t, mr_training_id id, struct mr_training_info *out)
{
    const struct session *s = mr_trainer__find(t, id);
    if (!s || !is_shown(s)) return MR_ENOENT;
    *out = (struct mr_training_info){.id = id,
        .document = s->document,
        .state = s->durable.state,
        .created_ns = s->created_ns,
        .started_ns = s->started_ns,
        .request_id = mr_str_of(s->request_id, s->request_id_bytes),
        .channel = mr_str_of(s->channel, s->channel_bytes),
        .score_json = mr_str_of(s->score, s->score_bytes),
        .version = s->version,
        .change = s->durable.change,
        .generation = s->durable.generation,
        .restore_epoch = s->durable.restore_epoch,
        .restores = s->restores,
        .graph_job = s->job[0].id,
        .role_job = s->job[1].id,
        .members_count = s->members_count};
    if (s->durable.state >= MR_TRAINING_STOPPING)
        out->reason = mr_str_of(s->reason, s->reason_bytes);
    if (mr_trainer__is_over(s->durable.state)) out->ended_ns = s->ended_ns;
    if (s->durable.phase == MR_TRAINING_EXIT || mr_trainer__is_over(s->durable.state))
        out->model_object = s->model;
    sum(s, &out->counters);
    if (s->checkpoints_count) out->checkpoint = shown(&s->checkpoints[s->checkpoints_count - 1]);
    for (uint32_t i = 0; i < s->checkpoints_count && s->has_restore; i++)
        if (s->checkpoints[i].version == s->restore_version)
            out->restore = shown(&s->checkpoints[i]);
    uint32_t n = s->samples_count;
    if (n < 2 || mr_trainer__is_over(s->state)) return MR_OK;
    double examples = (double)(s->samples[n - 1].examples - s->samples[0].examples);
    /* If the next sample is late, compared with the average interval, the time since the last
     * sample lowers the speed. */
    mr_time first = s->samples[0].at, last = s->samples[n - 1].at;
    mr_duration usual = (last - first) / (n - 1), since = t->now - last;
    mr_duration late = since > usual ? since - usual : 0;
    out->examples_per_s = examples * 1e9 / (double)(last - first + late);
    return MR_OK;
}

struct mr_str mr_trainer_document(const struct mr_trainer *t, mr_training_id id)
{
    const struct session *s = mr_trainer__find(t, id);
    return s && s->document ? mr_training_document_text(s->document) : (struct mr_str){0};
}

void mr_trainer_member(const struct mr_trainer *t, mr_training_id id, uint32_t member,
    struct mr_training_member_info *out)
{
    const struct session *s = mr_trainer__find(t, id);
    mr_assert(s && member < s->members_count);
    const struct member *m = &s->members[member];
    bool here = m->state == MR_MEMBER_HERE && m->incarnation <= s->durable.incarnations &&
                !mr_trainer__is_over(s->state);
    *out = (struct mr_training_member_info){.role = m->role,
        .index = m->index,
        .state = m->state,
        .incarnation = here ? m->incarnation : 0,
        .task = mr_str_of(m->task, m->task_bytes),
        .address = mr_str_of(m->address, m->address_bytes),
        .node = mr_str_of(m->node, m->node_bytes),
        .socket = mr_str_of(m->socket, m->socket_bytes),
        .counters = total(m)};
}

mr_training_id mr_trainer_older(const struct mr_trainer *t, mr_training_id before)
{
    for (uint32_t i = t->sessions_count; i-- > 0;) {
        const struct session *s = t->sessions[i];
        if ((!before.v || s->id.v < before.v) && is_shown(s)) return s->id;
    }
    return (mr_training_id){0};
}

uint32_t mr_trainer_count(const struct mr_trainer *t, enum mr_training_state state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->sessions_count; i++)
        n += is_shown(t->sessions[i]) && t->sessions[i]->durable.state == state;
    return n;
}

/* ---- environments ---------------------------------------------------------------------------- */

static void put(struct mr_buf *out, const char *name, const char *value)
{
    mr_buf_add(out, name, strlen(name) + 1);
    mr_buf_add(out, value, strlen(value) + 1);
}

static void put_number(struct mr_buf *out, const char *name, uint32_t value)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%u", value);
    put(out, name, text);
}

static void json_text(struct mr_buf *out, struct mr_str s)
{
    mr_buf_add_byte(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"' || s.p[i] == '\\') mr_buf_add_byte(out, '\\');
        mr_buf_add_byte(out, (unsigned char)s.p[i]);
    }
    mr_buf_add_byte(out, '"');
}

/* Writes TensorFlow's TF_CONFIG. A scorer is an "evaluator", which TensorFlow does not count as
 * part of the cluster. */
static void tf_config(const struct session *s, const struct member *me, struct mr_buf *out)
{
    static const char *const names[] = {"", "ps", "worker", "evaluator"};
    mr_buf_add_text(out, "TF_CONFIG");
    mr_buf_add_byte(out, 0);
    mr_buf_add_text(out, "{\"cluster\":{");
    uint32_t kinds = 0;
    for (int r = MR_TRAINING_PS; r <= MR_TRAINING_WORKER; r++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < s->members_count; i++) {
            const struct member *m = &s->members[i];
            if ((int)m->role != r) continue;
            if (!n++)
                mr_buf_printf(out, "%s\"%s\":[", kinds++ ? "," : "", names[r]);
            else
                mr_buf_add_byte(out, ',');
            json_text(out, mr_str_of(m->address, m->address_bytes));
        }
        if (n) mr_buf_add_byte(out, ']');
    }
    mr_buf_printf(out, "},\"task\":{\"type\":\"%s\",\"index\":%u}}", names[me->role], me->index);
    mr_buf_add_byte(out, 0);
}

static void put_master(const struct session *s, struct mr_buf *out)
{
    for (uint32_t i = 0; i < s->members_count; i++) {
        const struct member *m = &s->members[i];
        if (m->role != MR_TRAINING_WORKER || m->index) continue;
        uint32_t colon = m->address_bytes;
        while (colon && m->address[colon - 1] != ':')
            colon--;
        char host[MR_ADDRESS_BYTES_MAX + 1] = "", port[16] = "";
        if (colon) memcpy(host, m->address, colon - 1);
        (void)snprintf(
            port, sizeof port, "%.*s", (int)(m->address_bytes - colon), m->address + colon);
        put(out, "MASTER_ADDR", host);
        put(out, "MASTER_PORT", port);
    }
}

void mr_trainer_environment(
    const struct mr_trainer *t, mr_training_id id, uint32_t member, struct mr_buf *out)
{
    static const char *const names[] = {"", "ps", "worker", "scorer"};
    const struct session *s = mr_trainer__find(t, id);
    mr_assert(s && member < s->members_count);
    const struct member *m = &s->members[member];
    if (!s->document->exec[m->role]) return;
    char text[MR_TRAINING_ID_TEXT_MAX];
    mr_trainer_id_format(id, text);
    put(out, "MILLRACE_SESSION", text);
    put(out, "MILLRACE_ROLE", names[m->role]);
    put_number(out, "MILLRACE_INDEX", m->index);
    char channel[MR_TRAINING_CHANNEL_BYTES_MAX + 1] = "";
    memcpy(channel, s->channel, MR_MIN(s->channel_bytes, (uint32_t)MR_TRAINING_CHANNEL_BYTES_MAX));
    put(out, "MILLRACE_CHANNEL", channel);
    tf_config(s, m, out);
    if (m->role != MR_TRAINING_WORKER) return;
    put_master(s, out);
    put_number(out, "RANK", m->index);
    put_number(out, "WORLD_SIZE", s->document->roles[MR_TRAINING_WORKER]);
}

/* ---- invariants ------------------------------------------------------------------------------ */

static void check_session(const struct mr_trainer *t, struct session *s)
{
    mr_assert(s->durable.generation <= s->generation); /* I27 */
    mr_assert(s->durable.incarnations <= s->incarnations);
    mr_assert(s->durable.restore_epoch <= s->restore_epoch);
    mr_assert(s->durable.change <= s->change);
    mr_assert(s->durable.phase <= s->phase);
    mr_assert(s->durable.has_rows <= s->has_rows);
    mr_assert(s->restores + 1 == s->restore_epoch);
    if (!s->document) mr_assert(mr_trainer__is_over(s->state));
    if (!s->document) return;
    if (t->is_recovered && !mr_trainer__is_over(s->state) && !s->is_forgotten) {
        mr_duration bound = mr_trainer__bound_of(s);
        mr_assert(mr_time_after(s->since, bound) >= t->now); /* I26 */
        mr_assert(s->next <= mr_time_after(s->since, bound));
    }
    if (s->phase != MR_TRAINING_RUN)
        mr_assert(s->state == MR_TRAINING_STOPPING || mr_trainer__is_over(s->state));
    if (s->state == MR_TRAINING_STOPPING) mr_assert(s->phase >= MR_TRAINING_HALT);
    if (mr_trainer__is_over(s->state)) mr_assert(s->reason_bytes > 0);
    uint32_t savers = 0, shards = mr_training_document_shards(s->document);
    for (uint32_t i = 0; i < s->members_count; i++) {
        const struct member *m = &s->members[i];
        mr_assert(m->incarnation <= s->incarnations);
        savers += mr_trainer__instruction(s, m).phase == MR_TRAINING_KEEP;
        for (uint32_t k = 0; k < i; k++)
            mr_assert(!m->incarnation || m->incarnation != s->members[k].incarnation); /* I28 */
        if (mr_trainer__is_over(s->state))
            mr_assert(!m->join.ticket && !m->barrier.ticket && !m->rows.ticket);
    }
    mr_assert(savers <= 1); /* I30 */
    for (uint32_t i = 0; i < s->checkpoints_count; i++) {
        mr_assert(s->checkpoints[i].count == shards); /* I29 */
        if (i) mr_assert(s->checkpoints[i - 1].version < s->checkpoints[i].version);
        for (uint32_t k = 0; k < shards; k++)
            mr_assert(!mr_object_id_is_none(s->checkpoints[i].objects[k]));
    }
    mr_assert(s->checkpoints_count <= s->document->checkpoint_keep);
}

void mr_trainer_check(const struct mr_trainer *t)
{
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        if (i) mr_assert(t->sessions[i - 1]->id.v < t->sessions[i]->id.v);
        check_session(t, t->sessions[i]);
    }
}
