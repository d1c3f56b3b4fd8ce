/* The service Channels: checks requests and answers them. store/meta/stream/channel.h has the
 * commands of Redis. */
#include "services/trainer/channel/service.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/page.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "services/trainer/channel/fanout.h"
#include "services/trainer/queue/service.h"
#include "services/trainer/shell/json.h"
#include "services/trainer/shell/retry.h"
#include "store/meta/stream/change_feed.h"

#include <inttypes.h>
#include <millrace/v1/channels.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define APPEND_MAX 1000u
#define READ_MAX 10000u
#define READ_INIT 1000u
#define WAITING_BYTES_MAX ((size_t)64 << 20)
#define TOKEN_BYTES_MAX 40

struct mr_channels {
    struct mr_trainer_shell *trainer;
    struct mr_tail *tail;
    struct mr_feeds *feeds;
    struct mr_waiting_list waiting;
    struct mr_list watches;
    uint64_t process; /* a random number, which is a part of each append's id */
    uint64_t appends;
    struct mr_counter *entries_count, *sent_count;
};

/* ---- asking Redis -----------------------------------------------------------------------------*/

enum asking_kind { ASK_APPEND, ASK_READ, ASK_LIST };

struct asking {
    struct mr_waiting waiting;
    struct mr_channels *channels;
    enum asking_kind kind;
    char *channel;
    mr_rpc_call_id call;
    char *values; /* the entries of an append, one after another */
    size_t *values_bytes;
    size_t count;
    uint32_t entries_max;
    char token[TOKEN_BYTES_MAX];
    char after_id[64];
    /* only in a List: limit of the names in the answer. The answer lists the channels whose names
     * come after the text in `channel` */
    uint32_t rows_max;
    struct mr_channel_answer *answer;
};

static void reply_appended(struct asking *a);
static void reply_read(struct asking *a, struct mr_rpc_call *call);
static void reply_names(struct asking *a, struct mr_rpc_call *call);

static void fail_asking(const struct asking *a, struct mr_rpc_call *call, int err)
{
    const struct mr_str oldest = a->answer ? a->answer->first_id : MR_STR("");
    if (err == MR_EAWAY)
        mr_trainer_fail(call, err,
            "channel \"%s\": channels are kept in Redis, which does not answer", a->channel);
    else if (err == MR_ERANGE)
        mr_trainer_fail(call, err, "channel \"%s\": entry %s is not there any more; %s%.*s",
            a->channel, a->after_id, oldest.n ? "the oldest is " : "the channel is empty",
            MR_STR_ARG(oldest));
    else if (err == MR_ELIMIT)
        mr_trainer_fail(
            call, err, "channel \"%s\" would be one of more than %d", a->channel, MR_CHANNELS_MAX);
    else
        mr_trainer_fail(call, MR_EINTERNAL,
            "channel \"%s\": what Redis keeps under its name is no channel", a->channel);
}

static void run_answer(void *p)
{
    struct asking *a = p;
    int err = a->answer->err;
    if (!mr_waiting_is_answered(&a->waiting, err)) {
        mr_channel_answer_free(&a->answer);
        return;
    }
    struct mr_rpc_call *call = mr_rpc_call_find(a->channels->trainer->loop, a->call);
    struct mr_waiting *w = &a->waiting;
    if (a->waiting.is_given_up) {
        /* the caller has got its answer already */
    } else if (a->kind == ASK_APPEND) {
        reply_appended(a);
    } else if (call && err) {
        fail_asking(a, call, err);
    } else if (call && a->kind == ASK_READ) {
        reply_read(a, call);
    } else if (call) {
        reply_names(a, call);
    }
    mr_waiting_end(&w);
}

static void on_answer(void *ctx, struct mr_channel_answer **answer)
{
    struct asking *a = ctx;
    a->answer = MR_STEAL(*answer);
    mr_trainer_post(a->channels->trainer, run_answer, a);
}

static int send_append(const struct asking *a)
{
    struct mr_str values[APPEND_MAX];
    const char *p = a->values;
    for (size_t i = 0; i < a->count; p += a->values_bytes[i++])
        values[i] = mr_str_of(p, a->values_bytes[i]);
    const struct mr_channel_append append = {.channel = mr_str(a->channel),
        .values = values,
        .count = a->count,
        .entries_max = a->entries_max,
        .token = mr_str(a->token),
        .is_again = a->waiting.was_sent,
        .time_ns = mr_clock_wall()};
    return mr_channel_append(a->channels->trainer->redis, &append, on_answer, mr_unconst(a));
}

static int send_asking(struct mr_waiting *w)
{
    struct asking *a = (struct asking *)w;
    struct mr_redis *redis = a->channels->trainer->redis;
    switch (a->kind) {
    case ASK_APPEND: return send_append(a);
    case ASK_READ:
        return mr_channel_read(
            redis, mr_str(a->channel), mr_str(a->after_id), a->entries_max, on_answer, a);
    case ASK_LIST: return mr_channel_list(redis, on_answer, a);
    }
    return MR_EINTERNAL;
}

static void give_up_asking(struct mr_waiting *w)
{
    struct asking *a = (struct asking *)w;
    struct mr_rpc_call *call = mr_rpc_call_find(a->channels->trainer->loop, a->call);
    if (call) fail_asking(a, call, MR_EAWAY);
}

static void free_asking(struct mr_waiting *w)
{
    struct asking *a = (struct asking *)w;
    mr_channel_answer_free(&a->answer);
    mr_release(a->channel);
    mr_release(a->values);
    mr_release(a->values_bytes);
    mr_release(a);
}

static const struct mr_waiting_ops asking_ops = {send_asking, give_up_asking, free_asking};

static struct asking *asking_new(
    struct mr_channels *c, enum asking_kind kind, const char *channel, mr_time deadline)
{
    struct asking *a = mr_alloc(sizeof *a);
    a->waiting.ops = &asking_ops;
    a->waiting.deadline = deadline;
    a->waiting.bytes = sizeof *a;
    a->channels = c;
    a->kind = kind;
    a->channel = mr_copy_text(channel);
    return a;
}

static void begin(struct asking *a)
{
    struct mr_waiting *w = &a->waiting;
    if (mr_waiting_begin(&a->channels->waiting, w) == MR_OK) return;
    struct mr_rpc_call *call = mr_rpc_call_find(a->channels->trainer->loop, a->call);
    if (call)
        mr_trainer_fail(call, MR_ELIMIT,
            "channel \"%s\": Redis is slow or away, and %zu MiB wait for it", a->channel,
            WAITING_BYTES_MAX >> 20);
    free_asking(w);
}

/* ---- Append -----------------------------------------------------------------------------------*/

static void add_values(struct asking *a, const struct mr_str *values, size_t count)
{
    size_t bytes = 0, at = 0;
    mr_assert(count > 0);
    mr_assert(count <= APPEND_MAX);
    for (size_t i = 0; i < count; i++)
        bytes += values[i].n;
    a->values = mr_alloc(bytes + 1);
    a->values_bytes = mr_alloc_array(count, sizeof *a->values_bytes);
    a->count = count;
    a->waiting.bytes += bytes;
    for (size_t i = 0; i < count; i++) {
        memcpy(a->values + at, values[i].p, values[i].n);
        a->values_bytes[i] = values[i].n;
        at += values[i].n;
    }
    (void)snprintf(a->token, sizeof a->token, "%016" PRIx64 ".%" PRIu64, a->channels->process,
        ++a->channels->appends);
}

static void reply_appended(struct asking *a)
{
    const struct mr_channel_answer *answer = a->answer;
    char last[64];
    (void)snprintf(last, sizeof last, "%.*s", MR_STR_ARG(answer->last_id));
    if (!answer->err) mr_counter_add(a->channels->entries_count, a->count);
    struct mr_rpc_call *call = mr_rpc_call_find(a->channels->trainer->loop, a->call);
    if (!call) return;
    if (answer->err) {
        fail_asking(a, call, answer->err);
        return;
    }
    Millrace__V1__AppendResponse out = MILLRACE__V1__APPEND_RESPONSE__INIT;
    out.last_id = last;
    (void)mr_rpc_call_reply_pb(call, &out.base);
}

static int check_append(const Millrace__V1__AppendRequest *r, struct mr_error *e)
{
    int err = mr_trainer_check_name("channel", r->channel, MR_CHANNEL_NAME_BYTES_MAX, e);
    if (!err && (r->n_value_json == 0 || r->n_value_json > APPEND_MAX))
        err = mr_fail(e, MR_EINVAL, "value_json: %zu entries; 1 to %u are possible",
            r->n_value_json, APPEND_MAX);
    if (!err && r->entries_max > MR_CHANNEL_ENTRIES_MAX)
        err = mr_fail(e, MR_EINVAL, "entries_max: %" PRIu64 "; 0 to %u are possible",
            r->entries_max, MR_CHANNEL_ENTRIES_MAX);
    for (size_t i = 0; i < r->n_value_json && !err; i++) {
        char field[48];
        (void)snprintf(field, sizeof field, "value_json[%zu]", i);
        err = mr_trainer_check_json(field, r->value_json[i], e);
    }
    return err;
}

static void on_append(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_channels *c = mr_rpc_call_context(call);
    struct mr_error e;
    const Millrace__V1__AppendRequest *r =
        mr_trainer_request(c->trainer, call, m, &millrace__v1__append_request__descriptor);
    if (!r) return;
    if (check_append(r, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    struct mr_str values[APPEND_MAX];
    for (size_t i = 0; i < r->n_value_json; i++)
        values[i] = mr_str(r->value_json[i]);
    struct asking *a = asking_new(c, ASK_APPEND, r->channel, mr_waiting_deadline(call));
    a->call = mr_rpc_call_id_of(call);
    a->entries_max = (uint32_t)r->entries_max;
    add_values(a, values, r->n_value_json);
    begin(a);
}

/* ---- Read, List -------------------------------------------------------------------------------*/

static void entry_to_pb(
    const struct mr_channel_entry *entry, struct mr_buf *texts, Millrace__V1__ChannelEntry *out)
{
    millrace__v1__channel_entry__init(out);
    mr_buf_clear(texts);
    mr_buf_add_str(texts, entry->id);
    mr_buf_add_byte(texts, 0);
    size_t at = texts->n;
    mr_buf_add_str(texts, entry->value);
    mr_buf_add_byte(texts, 0);
    mr_assert(mr_buf_status(texts) == MR_OK);
    out->id = (char *)texts->p;
    out->value_json = (char *)texts->p + at;
    out->time_ns = entry->time_ns;
}

static void reply_read(struct asking *a, struct mr_rpc_call *call)
{
    const struct mr_channel_answer *answer = a->answer;
    Millrace__V1__ReadChannelResponse out = MILLRACE__V1__READ_CHANNEL_RESPONSE__INIT;
    Millrace__V1__ChannelEntry *entries = mr_alloc_array(answer->count + 1, sizeof *entries);
    Millrace__V1__ChannelEntry **list = mr_alloc_array(answer->count + 1, sizeof(void *));
    struct mr_buf *texts = mr_alloc_array(answer->count + 1, sizeof *texts);
    char first[64];
    (void)snprintf(first, sizeof first, "%.*s", MR_STR_ARG(answer->first_id));
    for (size_t i = 0; i < answer->count; i++) {
        mr_buf_init(&texts[i], answer->entries[i].value.n + 128);
        entry_to_pb(&answer->entries[i], &texts[i], &entries[i]);
        list[i] = &entries[i];
    }
    out.first_id = first;
    out.entries = list;
    out.n_entries = answer->count;
    mr_counter_add(a->channels->sent_count, answer->count);
    (void)mr_rpc_call_reply_pb(call, &out.base);
    for (size_t i = 0; i < answer->count; i++)
        mr_buf_fini(&texts[i]);
    mr_release(texts);
    mr_release(list);
    mr_release(entries);
}

/* Checks the id of an entry. "" and 0 mean the beginning of the channel; "$" means its end, if
 * `may_be_end`. */
static int check_after(
    const char *field, const char *id, bool may_be_end, char out[64], struct mr_error *e)
{
    bool is_begin = !id[0] || !strcmp(id, "0") || !strcmp(id, "0-0");
    bool is_good = is_begin || (may_be_end && !strcmp(id, "$")) ||
                   (strlen(id) < 48 && mr_channel_id_is_good(mr_str(id)));
    if (!is_good)
        return mr_fail(e, MR_EINVAL, "%s: \"%s\" is no id of an entry, e.g. 1700000000000-0%s",
            field, id, may_be_end ? ", nor $" : "");
    (void)snprintf(out, 64, "%s", is_begin ? "" : id);
    return MR_OK;
}

static void on_read(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_channels *c = mr_rpc_call_context(call);
    struct mr_error e;
    char after[64];
    const Millrace__V1__ReadChannelRequest *r =
        mr_trainer_request(c->trainer, call, m, &millrace__v1__read_channel_request__descriptor);
    if (!r) return;
    int err = mr_trainer_check_name("channel", r->channel, MR_CHANNEL_NAME_BYTES_MAX, &e);
    if (!err) err = check_after("after_id", r->after_id, false, after, &e);
    if (!err && r->entries_max > READ_MAX)
        err = mr_fail(&e, MR_EINVAL, "entries_max: %" PRIu32 "; 0 to %u are possible",
            r->entries_max, READ_MAX);
    if (err) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    struct asking *a = asking_new(c, ASK_READ, r->channel, mr_waiting_deadline(call));
    a->call = mr_rpc_call_id_of(call);
    a->entries_max = r->entries_max ? r->entries_max : READ_INIT;
    memcpy(a->after_id, after, sizeof after);
    begin(a);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void reply_names(struct asking *a, struct mr_rpc_call *call)
{
    const struct mr_channel_answer *answer = a->answer;
    const struct mr_page page = {a->rows_max, mr_str(a->channel)};
    Millrace__V1__ListChannelsResponse out = MILLRACE__V1__LIST_CHANNELS_RESPONSE__INIT;
    char **names = mr_alloc_array(answer->count + 1, sizeof *names);
    size_t n = 0;
    for (size_t i = 0; i < answer->count; i++) {
        names[n] = mr_format("%.*s", MR_STR_ARG(answer->names[i]));
        if (mr_page_has(&page, names[n]))
            n++;
        else
            mr_release(names[n]);
    }
    if (n) qsort(names, n, sizeof *names, compare_texts);
    out.channels = names;
    out.n_channels = MR_MIN(n, (size_t)a->rows_max);
    MR_AUTO(mr_free_ptr)
    char *next = n > out.n_channels ? mr_page_token(names[out.n_channels - 1]) : NULL;
    if (next) out.next_page_token = next;
    (void)mr_rpc_call_reply_pb(call, &out.base);
    for (size_t i = 0; i < n; i++)
        mr_release(names[i]);
    mr_release(names);
}

static void on_list(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct mr_channels *c = mr_rpc_call_context(call);
    struct mr_page page;
    struct mr_error e;
    const Millrace__V1__ListChannelsRequest *r =
        mr_trainer_request(c->trainer, call, m, &millrace__v1__list_channels_request__descriptor);
    if (!r) return;
    if (mr_page_read(r->page_size, r->page_token, MR_PAGE_ROWS_MAX, &page, &e)) {
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    struct asking *a = asking_new(c, ASK_LIST, page.after.p, mr_waiting_deadline(call));
    a->rows_max = page.rows_max;
    a->call = mr_rpc_call_id_of(call);
    begin(a);
}

/* ---- Watch ------------------------------------------------------------------------------------*/

struct watch {
    struct mr_list node;
    struct mr_channels *channels;
    struct mr_rpc_call *call;
    struct mr_follower *follower;
    char *channel;
    bool is_over;
};

static void watch_end(struct watch *w, int err, const char *why)
{
    if (w->is_over) return;
    w->is_over = true;
    mr_feeds_unfollow(&w->follower);
    mr_trainer_fail(w->call, err, "channel \"%s\": %s", w->channel, why);
}

static void on_entry(void *ctx, int err, const struct mr_channel_entry *entry)
{
    struct watch *w = ctx;
    if (err) {
        MR_AUTO(mr_free_ptr)
        char *why = mr_format("what stood after the last entry that was sent is gone; %s%.*s%s",
            entry->id.n ? "the oldest that is there is " : "the channel is empty",
            MR_STR_ARG(entry->id), entry->id.n ? "; go on from there after 0-0" : "");
        watch_end(w, MR_ERANGE, why);
        return;
    }
    struct mr_buf texts;
    Millrace__V1__ChannelEntry out;
    mr_buf_init(&texts, entry->value.n + 128);
    entry_to_pb(entry, &texts, &out);
    (void)mr_rpc_call_send_pb(w->call, &out.base);
    mr_buf_fini(&texts);
    mr_counter_add(w->channels->sent_count, 1);
    if (!mr_rpc_call_is_writable(w->call)) mr_feeds_hold(w->follower);
}

static void on_watch_open(struct mr_rpc_call *call)
{
    struct watch *w = mr_alloc(sizeof *w);
    w->channels = mr_rpc_call_context(call);
    w->call = call;
    mr_list_add_tail(&w->channels->watches, &w->node);
    mr_rpc_call_set_context(call, w);
}

static void on_watch(struct mr_rpc_call *call, struct mr_rpc_message *m)
{
    struct watch *w = mr_rpc_call_context(call);
    struct mr_error e;
    char after[64];
    const Millrace__V1__WatchChannelRequest *r = mr_trainer_request(
        w->channels->trainer, call, m, &millrace__v1__watch_channel_request__descriptor);
    if (!r || w->follower) return;
    int err = mr_trainer_check_name("channel", r->channel, MR_CHANNEL_NAME_BYTES_MAX, &e);
    if (!err) err = check_after("last_event_id", r->last_event_id, true, after, &e);
    if (err) {
        w->is_over = true;
        (void)mr_rpc_call_fail(call, &e);
        return;
    }
    w->channel = mr_copy_text(r->channel);
    w->follower = mr_feeds_follow(w->channels->feeds, r->channel, after, on_entry, w);
}

static void on_watch_writable(struct mr_rpc_call *call)
{
    struct watch *w = mr_rpc_call_context(call);
    if (w->follower) mr_feeds_resume(w->follower);
}

static void on_watch_done(struct mr_rpc_call *call, const struct mr_rpc_status *status)
{
    struct watch *w = mr_rpc_call_context(call);
    (void)status;
    mr_list_remove(&w->node);
    mr_feeds_unfollow(&w->follower);
    mr_release(w->channel);
    mr_release(w);
}

struct mr_follower *mr_channels_follow(
    struct mr_channels *c, const char *channel, const char *after_id, mr_follow_fn fn, void *ctx)
{
    return mr_feeds_follow(c->feeds, channel, after_id, fn, ctx);
}

void mr_channels_unfollow(struct mr_follower **f)
{
    mr_feeds_unfollow(f);
}

/* ---- the part ---------------------------------------------------------------------------------*/

struct mark {
    struct mr_trainer_shell *trainer;
    char kind;
    size_t bytes;
    char name[];
};

static void run_mark(void *p)
{
    struct mark *m = p;
    struct mr_str name = mr_str_of(m->name, m->bytes);
    if (m->kind != 'q') mr_feeds_news(m->trainer->channels->feeds, name, !m->kind);
    if (m->kind != 'c' && m->trainer->queues) mr_queues_news(m->trainer->queues, name, !m->kind);
    mr_release(m);
}

static void on_mark(void *ctx, char kind, struct mr_str name)
{
    struct mr_trainer_shell *t = ctx;
    struct mark *m = mr_alloc(sizeof *m + name.n);
    m->trainer = t;
    m->kind = kind;
    m->bytes = name.n;
    if (name.n) memcpy(m->name, name.p, name.n);
    mr_trainer_post(t, run_mark, m);
}

static double count_followers(void *ctx)
{
    return (double)mr_feeds_count(((struct mr_channels *)ctx)->feeds);
}

static void channels_close(void **part)
{
    struct mr_channels *c = *part;
    *part = NULL;
    mr_tail_close(&c->tail);
    mr_trainer_settle(c->trainer);
    mr_waiting_list_fini(&c->waiting);
    mr_feeds_free(&c->feeds);
    c->trainer->channels = NULL;
    mr_release(c);
}

static int channels_open(struct mr_trainer_shell *t, void **out, struct mr_error *e)
{
    struct mr_channels *c = mr_alloc(sizeof *c);
    c->trainer = t;
    if (getrandom(&c->process, sizeof c->process, 0) != (ssize_t)sizeof c->process)
        c->process = mr_clock_wall();
    mr_waiting_list_init(&c->waiting, WAITING_BYTES_MAX);
    mr_list_init(&c->watches);
    c->feeds = mr_feeds_new(t);
    c->entries_count = mr_stats_counter(
        t->stats, "millrace_channel_entries_appended_total", "Entries appended to channels.", NULL);
    c->sent_count = mr_stats_counter(t->stats, "millrace_channel_entries_sent_total",
        "Entries of channels sent to readers and watchers.", NULL);
    mr_stats_gauge_ask(t->stats, "millrace_channel_followers", "Who follows a channel now.", NULL,
        count_followers, c);
    t->channels = c;
    *out = c;
    return mr_tail_open(t->options.redis, t->options.redis_password, on_mark, t, &c->tail, e);
}

static mr_time channels_turn(void *part, mr_time now)
{
    struct mr_channels *c = part;
    mr_time next = mr_waiting_turn(&c->waiting, now);
    return MR_MIN(next, mr_feeds_turn(c->feeds, now));
}

static void channels_drain(void *part)
{
    struct mr_channels *c = part;
    mr_waiting_give_up(&c->waiting);
    MR_LIST_EACH(node, &c->watches)
    watch_end(MR_LIST_ITEM(node, struct watch, node), MR_EAWAY, "the trainer is stopping");
}

static const struct mr_rpc_handler append_handler = {.on_message = on_append};
static const struct mr_rpc_handler read_handler = {.on_message = on_read};
static const struct mr_rpc_handler list_handler = {.on_message = on_list};
static const struct mr_rpc_handler watch_handler = {.on_open = on_watch_open,
    .on_message = on_watch,
    .on_writable = on_watch_writable,
    .on_done = on_watch_done};

static const struct mr_rpc_method methods[] = {
    {.name = "Append", .handler = &append_handler},
    {.name = "Read", .handler = &read_handler},
    {.name = "Watch", .server_streaming = true, .handler = &watch_handler},
    {.name = "List", .handler = &list_handler},
};

static const struct mr_rpc_service service = {
    .name = "millrace.v1.Channels", .methods = methods, .methods_count = MR_ARRAY_LEN(methods)};

const struct mr_trainer_part mr_channels_part = {.service = &service,
    .open = channels_open,
    .turn = channels_turn,
    .drain = channels_drain,
    .close = channels_close};
