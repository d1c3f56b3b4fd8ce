/* The life of sessions: creation, records, state changes and end. The files of this folder form one
 * state machine and call each other. An event of a member, a job or a channel (channels.proto) may
 * end a session. The end of a session answers members, cancels jobs and stops following
 * channels. */
#include "services/trainer/core/rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <xxhash.h>
#include <yyjson.h>

void mr_trainer_config_default(struct mr_trainer_config *c)
{
    *c = (struct mr_trainer_config){.live_max = 256,
        .ended_max = 1000,
        .ended_bytes_max = (size_t)64 << 20,
        .poll = MR_SECOND,
        .retry = MR_SECOND,
        .redis_wait = 10 * MR_SECOND};
}

void mr_trainer_effects_init(struct mr_trainer_effects *fx)
{
    mr_buf_init(&fx->items, (size_t)1 << 30);
    mr_buf_init(&fx->text, (size_t)1 << 30);
}

void mr_trainer_effects_fini(struct mr_trainer_effects *fx)
{
    mr_buf_fini(&fx->items);
    mr_buf_fini(&fx->text);
}

void mr_trainer_effects_clear(struct mr_trainer_effects *fx)
{
    mr_buf_clear(&fx->items);
    mr_buf_clear(&fx->text);
}

struct mr_trainer *mr_trainer_new(const struct mr_trainer_config *c)
{
    struct mr_trainer *t = mr_alloc(sizeof *t);
    t->config = *c;
    t->due = MR_NEVER;
    t->sessions_max = c->live_max + c->ended_max + 1;
    t->sessions = mr_alloc_array(t->sessions_max, sizeof(void *));
    t->scratch_bytes = yyjson_read_max_memory_usage(MR_TRAINING_ENTRY_BYTES_MAX, 0) + 4096;
    t->scratch = mr_alloc(t->scratch_bytes);
    return t;
}

void mr_trainer__session_free(struct session **sp)
{
    struct session *s = MR_STEAL(*sp);
    if (!s) return;
    mr_training_document_free(&s->document);
    for (uint32_t i = 0; i < MR_TRAINING_KEEP_MAX; i++)
        mr_release(s->checkpoints[i].objects);
    for (uint32_t i = 0; i < PENDING_MAX; i++)
        mr_release(s->pending[i].objects);
    mr_release(s->doomed);
    mr_release(s->ranges);
    mr_release(s->ranges_ends);
    mr_release(s->members);
    mr_release(s);
}

void mr_trainer_free(struct mr_trainer **tp)
{
    struct mr_trainer *t = MR_STEAL(*tp);
    if (!t) return;
    for (uint32_t i = 0; i < t->sessions_count; i++)
        mr_trainer__session_free(&t->sessions[i]);
    mr_release(t->sessions);
    mr_release(t->scratch);
    mr_release(t);
}

/* ---- effects --------------------------------------------------------------------------------- */

struct mr_trainer_effect *mr_trainer__emit(struct mr_trainer *t, enum mr_trainer_effect_type type)
{
    struct mr_trainer_effect *x = mr_buf_extend(&t->fx->items, sizeof *x);
    mr_assert(x);
    *x = (struct mr_trainer_effect){.type = type};
    return x;
}

void mr_trainer__text(struct mr_trainer *t, struct mr_trainer_effect *x, struct mr_str s)
{
    x->text_at = (uint32_t)t->fx->text.n;
    x->text_bytes = (uint32_t)s.n;
    mr_buf_add_str(&t->fx->text, s);
}

void mr_trainer__refuse(struct mr_trainer *t, enum mr_trainer_effect_type type, uint64_t ticket,
    int err, const char *fmt, ...)
{
    char text[MR_ERROR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    struct mr_trainer_effect *x = mr_trainer__emit(t, type);
    x->ticket = ticket;
    x->err = err;
    mr_trainer__text(t, x, mr_str(text));
}

uint32_t mr_trainer__copy(char *to, size_t max, struct mr_str s)
{
    size_t n = MR_MIN(s.n, max);
    while (n < s.n && n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--; /* the cut must not split a UTF-8 character */
    if (n) memcpy(to, s.p, n);
    return (uint32_t)n;
}

/* ---- sessions -------------------------------------------------------------------------------- */

struct session *mr_trainer__find(const struct mr_trainer *t, mr_training_id id)
{
    uint32_t low = 0, high = t->sessions_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (t->sessions[mid]->id.v < id.v)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->sessions_count && t->sessions[low]->id.v == id.v ? t->sessions[low] : NULL;
}

void mr_trainer__add(struct mr_trainer *t, struct session *s)
{
    mr_assert(t->sessions_count < t->sessions_max);
    uint32_t at = t->sessions_count++;
    for (; at && t->sessions[at - 1]->id.v > s->id.v; at--)
        t->sessions[at] = t->sessions[at - 1];
    t->sessions[at] = s;
}

static void drop(struct mr_trainer *t, struct session *s)
{
    uint32_t at = 0;
    while (t->sessions[at] != s)
        at++;
    t->sessions_count--;
    memmove(&t->sessions[at], &t->sessions[at + 1], (t->sessions_count - at) * sizeof(void *));
    mr_trainer__session_free(&s);
}

/* Makes a session. Takes the document. */
struct session *mr_trainer__session_new(struct mr_trainer *t, struct mr_training_document *d)
{
    struct session *s = mr_alloc(sizeof *s);
    s->document = d;
    s->state = MR_TRAINING_PREPARING;
    s->phase = MR_TRAINING_RUN;
    s->restore_epoch = 1;
    s->since = t->now;
    if (!d) return s;
    uint32_t shards = mr_training_document_shards(d);
    for (uint32_t i = 0; i < MR_TRAINING_KEEP_MAX && shards; i++)
        s->checkpoints[i].objects = mr_alloc_array(shards, sizeof(mr_object_id));
    for (uint32_t i = 0; i < PENDING_MAX && shards; i++)
        s->pending[i].objects = mr_alloc_array(shards, sizeof(mr_object_id));
    s->doomed_max = shards * (MR_TRAINING_KEEP_MAX + 4 * PENDING_MAX);
    if (shards) s->doomed = mr_alloc_array(s->doomed_max, sizeof *s->doomed);
    for (int r = MR_TRAINING_PS; r <= MR_TRAINING_SCORER; r++)
        s->members_count += d->roles[r];
    s->members = mr_alloc_array(s->members_count, sizeof *s->members);
    uint32_t n = 0;
    for (int r = MR_TRAINING_PS; r <= MR_TRAINING_SCORER; r++)
        for (uint32_t i = 0; i < d->roles[r]; i++, n++) {
            s->members[n].role = (enum mr_training_role)r;
            s->members[n].index = i;
        }
    XXH128_hash_t h = XXH3_128bits(mr_training_document_text(d).p, mr_training_document_text(d).n);
    s->hash[0] = h.low64;
    s->hash[1] = h.high64;
    return s;
}

#define S(x) (1u << MR_TRAINING_##x)
static const unsigned allowed[] = {
    [0] = 0,
    [MR_TRAINING_PREPARING] = S(FORMING) | S(FAILED),
    [MR_TRAINING_FORMING] = S(RUNNING) | S(FAILED),
    [MR_TRAINING_RUNNING] = S(RECOVERING) | S(STOPPING) | S(FAILED),
    [MR_TRAINING_RECOVERING] = S(RUNNING) | S(STOPPING) | S(FAILED),
    [MR_TRAINING_STOPPING] = S(DONE) | S(FAILED),
    [MR_TRAINING_DONE] = 0,
    [MR_TRAINING_FAILED] = 0,
};

/* True: another session follows the channel. If `on`, a session that has seen a newer entry than
 * `s` does not count. */
static bool is_followed(const struct mr_trainer *t, const struct session *s, int which, bool on)
{
    struct mr_str channel = mr_trainer__channel(s, which);
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        const struct session *o = t->sessions[i];
        for (int k = 0; k < 2 && o->is_following && o != s; k++)
            if (mr_str_eq(mr_trainer__channel(o, k), channel) && o->seen[k].ms != NOWHERE.ms &&
                !(on && is_newer(o->seen[k], s->seen[which])))
                return true;
    }
    return false;
}

void mr_trainer__follow_one(struct mr_trainer *t, struct session *s, int which, bool on)
{
    struct mr_str channel = mr_trainer__channel(s, which);
    struct entry_id after = s->seen[which];
    bool locate = on && after.ms == NOWHERE.ms;
    char text[48] = "";
    if (!channel.n || (!locate && is_followed(t, s, which, on))) return;
    if (after.ms || after.n)
        (void)snprintf(text, sizeof text, "%llu-%llu", (unsigned long long)after.ms,
            (unsigned long long)after.n);
    struct mr_trainer_effect *x = mr_trainer__emit(t, locate ? MR_TX_LOCATE
                                                      : on   ? MR_TX_FOLLOW
                                                             : MR_TX_UNFOLLOW);
    x->channel_at = (uint32_t)t->fx->text.n;
    x->channel_bytes = (uint32_t)channel.n;
    mr_buf_add_str(&t->fx->text, channel);
    if (x->type == MR_TX_FOLLOW) mr_trainer__text(t, x, mr_str(text));
}

void mr_trainer__follow(struct mr_trainer *t, struct session *s, bool on)
{
    s->is_following = on;
    for (int i = 0; i < 2; i++)
        mr_trainer__follow_one(t, s, i, on);
}

void mr_trainer__enter(struct mr_trainer *t, struct session *s, enum mr_training_state state)
{
    mr_assert(allowed[s->state] >> state & 1);
    s->state = state;
    s->since = t->now;
    s->change++;
    s->is_dirty = true;
    s->job[JOB_FEED].cancel |= state >= MR_TRAINING_STOPPING;
    if (!mr_trainer__is_over(state)) return;
    s->ended_ns = t->wall_ns;
    mr_trainer__members_release(t, s);
    mr_trainer__follow(t, s, false);
    for (int i = 0; i < JOBS; i++)
        s->job[i].cancel |= state == MR_TRAINING_FAILED;
}

void mr_trainer__fail(struct mr_trainer *t, struct session *s, const char *fmt, ...)
{
    if (mr_trainer__is_over(s->state)) return;
    /* longer than `reason`, so that mr_trainer__copy cuts a long text and splits no UTF-8
     * character */
    char text[MR_TRAINING_REASON_BYTES_MAX + 2];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    s->reason_bytes = mr_trainer__copy(s->reason, sizeof s->reason, mr_str(text));
    mr_trainer__enter(t, s, MR_TRAINING_FAILED);
}

/* ---- Redis ----------------------------------------------------------------------------------- */

void mr_trainer__answer(struct mr_trainer *t, struct session *s, const struct call *c, int err)
{
    if (err) {
        mr_trainer__refuse(t, c->type, c->ticket, err,
            "Redis is away: the request may or may not have been stored; repeat it");
    } else {
        struct mr_trainer_effect *x = mr_trainer__emit(t, c->type);
        x->ticket = c->ticket;
        x->session = s->id;
        x->existed = c->existed;
    }
}

void mr_trainer__wait(struct mr_trainer *t, struct session *s, enum mr_trainer_effect_type type,
    uint64_t ticket, bool existed)
{
    struct call c = {.ticket = ticket,
        .type = type,
        .existed = existed,
        .until = mr_time_after(t->now, t->config.redis_wait)};
    if (s->is_known && !s->is_dirty && !s->write)
        mr_trainer__answer(t, s, &c, MR_OK);
    else if (s->calls_count == CALLS_MAX)
        mr_trainer__refuse(
            t, type, ticket, MR_ELIMIT, "too many calls wait for this session: try again");
    else {
        s->calls[s->calls_count++] = c;
        s->is_dirty = true; /* the call is answered when Redis has acknowledged the next write */
    }
}

static void write_session(struct mr_trainer *t, struct session *s)
{
    if (t->is_away || s->write) return;
    if (s->is_forgotten) {
        struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_DELETE);
        x->session = s->id;
        x->sequence = s->write = ++t->sequence;
        return;
    }
    if (!s->is_dirty) return;
    struct mr_buf record;
    mr_buf_init(&record, (size_t)16 << 20);
    mr_trainer__record_write(s, &record);
    mr_assert(!mr_buf_status(&record));
    struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_WRITE);
    x->session = s->id;
    x->sequence = s->write = ++t->sequence;
    x->with_document = !s->is_known;
    mr_trainer__text(t, x, mr_buf_str(&record));
    mr_buf_fini(&record);
    s->is_dirty = false;
    s->doomed_written = s->doomed_count;
    s->writing = (struct durable){s->state, s->phase, s->generation, s->restore_epoch,
        s->incarnations, s->change, s->has_rows};
    for (uint32_t i = 0; i < s->calls_count; i++)
        s->calls[i].in_write = true;
}

/* Called when Redis has acknowledged the session's write. True: the session is freed. */
static bool acked(struct mr_trainer *t, struct session *s)
{
    s->write = 0;
    if (s->is_forgotten) {
        if (s->forget_ticket) {
            struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_FORGOTTEN);
            x->ticket = s->forget_ticket;
            x->session = s->id;
        }
        drop(t, s);
        return true;
    }
    bool changed = s->writing.change != s->durable.change;
    s->durable = s->writing;
    s->is_known = true;
    for (uint32_t i = 0; i < s->doomed_written; i++) {
        struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_ERASE);
        x->session = s->id;
        x->version = s->doomed[i].version;
        x->index = s->doomed[i].shard;
        x->object = s->doomed[i].object;
    }
    if (s->doomed_written) {
        s->doomed_count -= s->doomed_written;
        memmove(s->doomed, s->doomed + s->doomed_written, s->doomed_count * sizeof *s->doomed);
        s->is_dirty = true;
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < s->calls_count; i++) {
        if (s->calls[i].in_write)
            mr_trainer__answer(t, s, &s->calls[i], MR_OK);
        else
            s->calls[left++] = s->calls[i];
    }
    s->calls_count = left;
    if (changed) {
        struct mr_trainer_effect *x = mr_trainer__emit(t, MR_TX_CHANGED);
        x->session = s->id;
        x->change = s->durable.change;
    }
    return false;
}

/* ---- the step -------------------------------------------------------------------------------- */

static mr_time calls_turn(struct mr_trainer *t, struct session *s)
{
    mr_time next = MR_NEVER;
    uint32_t left = 0;
    for (uint32_t i = 0; i < s->calls_count; i++) {
        if (s->calls[i].until <= t->now) {
            mr_trainer__answer(t, s, &s->calls[i], MR_EAWAY);
        } else {
            next = MR_MIN(next, s->calls[i].until);
            s->calls[left++] = s->calls[i];
        }
    }
    s->calls_count = left;
    return next;
}

/* Drops the parsed document of a session when neither the session nor its jobs need it any more. */
static void trim(struct session *s)
{
    bool is_over = mr_trainer__is_over(s->durable.state) && s->document;
    for (int i = 0; i < JOBS; i++)
        is_over &= s->job[i].state == JOB_NONE || s->job[i].state == JOB_ENDED;
    if (is_over) mr_training_document_trim(s->document);
}

static void turn(struct mr_trainer *t, struct session *s)
{
    mr_time next = MR_NEVER;
    if (!s->is_forgotten) {
        mr_trainer__members_turn(t, s);
        mr_trainer__bound(t, s);
        mr_trainer__evaluate(t, s);
        mr_trainer__job_turn(t, s);
        if (s->has_progress && s->progress_at <= t->now) {
            s->has_progress = false;
            s->progress_at = mr_time_after(t->now, 500 * MR_MS);
            mr_trainer__emit(t, MR_TX_CHANGED)->session = s->id;
        }
        next = calls_turn(t, s);
        next = MR_MIN(next, mr_trainer__members_next(s));
        next = MR_MIN(next, mr_trainer__stop_next(t, s));
        next = MR_MIN(next, mr_trainer__job_next(t, s));
        if (s->has_progress) next = MR_MIN(next, s->progress_at);
    }
    write_session(t, s);
    trim(s);
    s->next = next;
}

static void gone(struct mr_trainer *t, uint64_t ticket)
{
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        struct session *s = t->sessions[i];
        if (s->forget_ticket == ticket) s->forget_ticket = 0;
        for (uint32_t c = 0; c < s->calls_count; c++)
            if (s->calls[c].ticket == ticket) {
                s->calls[c] = s->calls[--s->calls_count];
                return;
            }
        mr_trainer__members_gone(s, ticket);
    }
}

static void recovered(struct mr_trainer *t)
{
    t->is_recovered = true;
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        struct session *s = t->sessions[i];
        s->since = t->now;
        s->next = t->now;
        for (uint32_t m = 0; m < s->members_count; m++)
            s->members[m].heard = s->members[m].joined = t->now;
        if (!mr_trainer__is_over(s->state)) mr_trainer__follow(t, s, true);
    }
}

static void redis_acked(struct mr_trainer *t, uint64_t sequence)
{
    for (uint32_t i = 0; i < t->sessions_count;) {
        struct session *s = t->sessions[i];
        bool mine = s->write && s->write <= sequence;
        if (mine && acked(t, s)) continue;
        if (mine) turn(t, s);
        i++;
    }
}

static void redis_lost(struct mr_trainer *t, bool away)
{
    t->is_away = away;
    for (uint32_t i = 0; i < t->sessions_count; i++) {
        struct session *s = t->sessions[i];
        s->is_dirty |= s->write != 0;
        s->write = 0;
        if (!away) turn(t, s);
    }
}

/* Extends all leases, because this process was suspended or blocked for `late`: reports of the
 * members may still wait to be read. */
static void extend_leases(struct mr_trainer *t, mr_duration late)
{
    for (uint32_t i = 0; i < t->sessions_count; i++)
        for (uint32_t m = 0; m < t->sessions[i]->members_count; m++)
            t->sessions[i]->members[m].heard += late;
}

static void handle(struct mr_trainer *t, const struct mr_trainer_event *ev)
{
    switch (ev->type) {
    case MR_TE_TICK: break;
    case MR_TE_START: mr_trainer__start(t, ev); break;
    case MR_TE_STOP: mr_trainer__stop(t, ev); break;
    case MR_TE_FORGET: mr_trainer__forget(t, ev); break;
    case MR_TE_JOIN: mr_trainer__join(t, ev); break;
    case MR_TE_BARRIER: mr_trainer__barrier(t, ev); break;
    case MR_TE_REPORT: mr_trainer__report(t, ev); break;
    case MR_TE_ROWS: mr_trainer__rows(t, ev); break;
    case MR_TE_GONE: gone(t, ev->ticket); break;
    case MR_TE_ENTRY: mr_trainer__entry(t, ev); break;
    case MR_TE_LOCATED: mr_trainer__located(t, ev); break;
    case MR_TE_JOB_SUBMITTED:
    case MR_TE_JOB_STATE:
    case MR_TE_JOB_CANCELLED: mr_trainer__job_event(t, ev); break;
    case MR_TE_REDIS_ACKED: redis_acked(t, ev->sequence); break;
    case MR_TE_REDIS_AWAY: redis_lost(t, true); break;
    case MR_TE_REDIS_BACK: redis_lost(t, false); break;
    case MR_TE_RECORD: mr_trainer__record_read(t, ev); break;
    case MR_TE_RECOVERED: recovered(t); break;
    }
}

void mr_trainer_step(struct mr_trainer *t, mr_time now, const struct mr_trainer_event *ev,
    struct mr_trainer_effects *fx)
{
    mr_assert(now >= t->now);
    mr_assert(t->is_recovered || ev->type == MR_TE_RECORD || ev->type == MR_TE_RECOVERED);
    t->now = now;
    t->wall_ns = MR_MAX(t->wall_ns, ev->wall_ns);
    t->fx = fx;
    if (now > t->due && now - t->due > LATE_MAX) extend_leases(t, now - t->due);
    handle(t, ev);
    if (t->is_recovered) {
        struct session *s = ev->session.v ? mr_trainer__find(t, ev->session) : NULL;
        if (s) turn(t, s);
        /* The event START carries no session id: the new session is the last one. */
        if (ev->type == MR_TE_START && t->sessions_count) {
            s = t->sessions[t->sessions_count - 1];
            turn(t, s);
        }
        mr_trainer__forget_old(t);
        for (uint32_t i = 0; i < t->sessions_count; i++)
            if (t->sessions[i]->next <= now || ev->type == MR_TE_ENTRY || ev->type == MR_TE_LOCATED)
                turn(t, t->sessions[i]);
    }
    t->due = MR_NEVER;
    for (uint32_t i = 0; i < t->sessions_count && t->is_recovered; i++)
        t->due = MR_MIN(t->due, t->sessions[i]->next);
    t->fx = NULL;
}

mr_time mr_trainer_deadline(const struct mr_trainer *t)
{
    return t->due;
}
