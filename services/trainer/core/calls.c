/* Requests of clients: start, stop and forget a session. */
#include "services/trainer/core/internal.h"

#include <xxhash.h>

static bool is_channel_taken(const struct mr_trainer *t, struct mr_str channel)
{
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        const struct session *s = t->sessions[i];
        if (!mr_trainer__is_over(s->state) &&
            mr_str_eq(mr_str_of(s->channel, s->channel_bytes), channel))
            return true;
    }
    return false;
}

static uint32_t live_count(const struct mr_trainer *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->sessions_count; i++)
        n += !mr_trainer__is_over(t->sessions[i]->state);
    return n;
}

/* True: an earlier Start has the same request id. Then this Start is refused if its document
 * differs. Otherwise it gets the same answer, perhaps after waiting for Redis. */
static bool is_repeated(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct mr_str text = mr_training_document_text(ev->document);
    if (!ev->text.n) return false;
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        struct session *s = t->sessions[i];
        if (s->is_forgotten || !mr_str_eq(mr_str_of(s->request_id, s->request_id_bytes), ev->text))
            continue;
        XXH128_hash_t h = XXH3_128bits(text.p, text.n);
        if (h.low64 == s->hash[0] && h.high64 == s->hash[1]) {
            mr_trainer__wait(t, s, MR_TX_STARTED, ev->ticket, true);
        } else {
            char id[MR_TRAINING_ID_TEXT_MAX];
            mr_trainer_id_format(s->id, id);
            mr_trainer__refuse(t, MR_TX_STARTED, ev->ticket, MR_EEXIST,
                "request_id: session %s was started with the same id and another document", id);
        }
        return true;
    }
    return false;
}

void mr_trainer__start(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct mr_training_document *d = ev->document;
    struct mr_str channel = d->channel;
    if (is_repeated(t, ev)) {
        mr_training_document_free(&d);
        return;
    }
    int err = MR_OK;
    if (ev->text.n > MR_TRAINING_REQUEST_ID_BYTES_MAX)
        mr_trainer__refuse(t, MR_TX_STARTED, ev->ticket, err = MR_EINVAL,
            "request_id: at most %d bytes", MR_TRAINING_REQUEST_ID_BYTES_MAX);
    else if (live_count(t) >= t->config.live_max || t->sessions_count >= t->sessions_max)
        mr_trainer__refuse(t, MR_TX_STARTED, ev->ticket, err = MR_ELIMIT,
            "%u sessions have not ended yet: no more at one time", t->config.live_max);
    else if (channel.n && is_channel_taken(t, channel))
        mr_trainer__refuse(t, MR_TX_STARTED, ev->ticket, err = MR_EEXIST,
            "channel: another session that has not ended writes \"%.*s\"", MR_STR_ARG(channel));
    if (err) {
        mr_training_document_free(&d);
        return;
    }
    struct session *s = mr_trainer__session_new(t, d);
    s->id.v = (uint64_t)t->config.epoch << 32 | ++t->number;
    s->created_ns = t->wall_ns;
    /* a channel that the document names may have older entries, so its last entry is not known
     * yet */
    if (channel.n) s->seen[0] = NOWHERE;
    s->seen[1] = NOWHERE;
    s->request_id_bytes = mr_trainer__copy(s->request_id, sizeof s->request_id, ev->text);
    char name[MR_TRAINING_ID_TEXT_MAX + 8];
    mr_trainer_id_format(s->id, name);
    memcpy(name + strlen(name), ".scores", 8);
    s->channel_bytes =
        mr_trainer__copy(s->channel, sizeof s->channel, channel.n ? channel : mr_str(name));
    s->change = 1;
    s->job[JOB_GRAPH].state = d->has_graph ? JOB_WANTED : JOB_NONE;
    mr_trainer__add(t, s);
    mr_trainer__follow(t, s, true);
    mr_trainer__wait(t, s, MR_TX_STARTED, ev->ticket, false);
}

void mr_trainer__stop(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct session *s = mr_trainer__find(t, ev->session);
    if (!s || s->is_forgotten) {
        mr_trainer__refuse(t, MR_TX_STOPPED, ev->ticket, MR_ENOENT, "there is no such session");
        return;
    }
    struct mr_str why = ev->text.n ? ev->text : MR_STR("a client asked for it");
    if (ev->abandon)
        mr_trainer__fail(t, s, "abandoned: %.*s", MR_STR_ARG(why));
    else
        mr_trainer__begin_stop(t, s, "stopped: %.*s", MR_STR_ARG(why));
    mr_trainer__wait(t, s, MR_TX_STOPPED, ev->ticket, false);
}

static void begin_forget(struct mr_trainer *t, struct session *s, uint64_t ticket)
{
    s->is_forgotten = true;
    s->forget_ticket = ticket;
    s->write = 0; /* a running write no longer matters, whatever its result */
    for (uint32_t i = 0; i < s->calls_count; i++)
        mr_trainer__answer(t, s, &s->calls[i], MR_OK);
    s->calls_count = 0;
    mr_trainer__doom_all(s);
    for (uint32_t i = 0; i < s->doomed_count; i++) {
        struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_ERASE);
        x->session = s->id;
        x->version = s->doomed[i].version;
        x->index = s->doomed[i].shard;
        x->object = s->doomed[i].object;
    }
    for (int i = 0; i < JOBS; i++) {
        if (!s->job[i].id.v) continue;
        struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_JOB_FORGET);
        x->session = s->id;
        x->roles = i == JOB_ROLES;
        x->feed = i == JOB_FEED;
        x->job = s->job[i].id;
    }
}

/* True: the scheduler may have a job of the session. The trainer does not know the job's id,
 * because no answer to Submit has come. */
static bool may_have_jobs(const struct session *s)
{
    bool may = false;
    for (int i = 0; i < JOBS; i++)
        may |= s->document && s->job[i].state == JOB_WANTED && s->job[i].may_exist;
    return may;
}

void mr_trainer__forget(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    struct session *s = mr_trainer__find(t, ev->session);
    if (!s || s->is_forgotten)
        mr_trainer__refuse(t, MR_TX_FORGOTTEN, ev->ticket, MR_ENOENT, "there is no such session");
    else if (!mr_trainer__is_over(s->state) || !mr_trainer__is_over(s->durable.state))
        mr_trainer__refuse(t, MR_TX_FORGOTTEN, ev->ticket, MR_ESTATE,
            "the session has not ended yet: stop it first");
    else if (may_have_jobs(s))
        mr_trainer__refuse(t, MR_TX_FORGOTTEN, ev->ticket, MR_EAWAY,
            "a job of the session may still run, and the scheduler does not answer: try again");
    else
        begin_forget(t, s, ev->ticket);
}

static size_t document_bytes(const struct session *s)
{
    return s->document ? mr_training_document_text(s->document).n : 0;
}

/* Forgets the oldest ended sessions when there are too many. Only a session whose end Redis has
 * acknowledged is forgotten. */
void mr_trainer__forget_old(struct mr_trainer *t)
{
    uint32_t ended = 0;
    size_t bytes = 0;
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        const struct session *s = t->sessions[i];
        if (!mr_trainer__is_over(s->state) || s->is_forgotten) continue;
        ended++;
        bytes += document_bytes(s);
    }
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        struct session *s = t->sessions[i];
        if (ended <= t->config.ended_max && bytes <= t->config.ended_bytes_max) break;
        if (!mr_trainer__is_over(s->durable.state) || s->is_forgotten || s->calls_count ||
            may_have_jobs(s))
            continue;
        begin_forget(t, s, 0);
        s->next = t->now; /* the next tick deletes the record */
        ended--;
        bytes -= document_bytes(s);
    }
}
