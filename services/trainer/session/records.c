/* Connects link/record_log.h with Redis. Commands leave on the loop's thread. Answers come on the
 * thread of Redis's connection and are passed to the loop. At the start, all records are read. */
#include "services/trainer/session/internal.h"

#include "base/alloc.h"
#include "host/os/log.h"
#include "store/meta/keys.h"

#include <inttypes.h>

struct answer {
    struct mr_trainings *tr;
    uint64_t command;
    int err;
};

static void take_answer(void *p)
{
    struct answer *a = p;
    if (a->tr->records) mr_records_answered(a->tr->records, a->command, a->err);
    mr_release(a);
}

static void on_reply(void *ctx, int err, const struct mr_reply *reply)
{
    struct answer *a = ctx;
    if (!err && mr_reply_type(reply) == MR_REPLY_ERROR) {
        char words[256];
        mr_log(MR_ERROR, "records.refused", "message=%s",
            mr_log_quote(mr_reply_text(reply), words, sizeof words));
        err = MR_EFORMAT;
    }
    if (!err && mr_str_eq(mr_reply_text(reply), MR_STR("refused"))) err = MR_EABORTED;
    a->err = err;
    mr_trainer_post(a->tr->t, take_answer, a);
}

static bool send(void *ctx, uint64_t command, const struct mr_str argv[MR_RECORDS_ARGC])
{
    struct mr_trainings *tr = ctx;
    struct answer *a = mr_alloc(sizeof *a);
    a->tr = tr;
    a->command = command;
    if (!mr_redis_send(tr->t->redis, MR_RECORDS_ARGC, argv, on_reply, a)) return true;
    mr_release(a);
    return false;
}

static void on_acked(void *ctx, uint64_t sequence)
{
    struct mr_trainer_event ev = {.type = MR_TE_REDIS_ACKED, .sequence = sequence};
    mr_trainings_step(ctx, &ev);
}

static void on_away(void *ctx)
{
    struct mr_trainer_event ev = {.type = MR_TE_REDIS_AWAY};
    mr_log(MR_WARN, "records.away", "what=\"changes of sessions wait for Redis\"");
    mr_trainings_step(ctx, &ev);
}

static void on_back(void *ctx)
{
    struct mr_trainer_event ev = {.type = MR_TE_REDIS_BACK};
    mr_log(MR_INFO, "records.back", "what=\"they are written again\"");
    mr_trainings_step(ctx, &ev);
}

static void on_refused(void *ctx)
{
    struct mr_trainings *tr = ctx;
    mr_log(MR_ERROR, "trainer.replaced",
        "epoch=%" PRIu32 " what=\"another trainer has begun on this Redis: this one ends\"",
        tr->t->epoch);
    mr_trainer_stop(tr->t);
}

void mr_trainings_write(struct mr_trainings *tr, const struct mr_trainer_effect *x)
{
    char id[MR_TRAINING_ID_TEXT_MAX];
    mr_trainer_id_format(x->session, id);
    if (x->type == MR_TX_DELETE) {
        mr_records_delete(tr->records, x->sequence, mr_str(id));
        return;
    }
    struct mr_str document = {0};
    if (x->with_document) document = mr_trainer_document(tr->core, x->session);
    mr_records_write(
        tr->records, x->sequence, mr_str(id), mr_trainer_effect_text(&tr->fx, x), document);
}

/* Gives one record to the core. A record that cannot be read is logged and stays in Redis. */
static void take_record(
    struct mr_trainings *tr, struct mr_str id, struct mr_str record, struct mr_str document)
{
    struct mr_trainer_event ev = {.type = MR_TE_RECORD, .text = record};
    struct mr_error e = {0};
    if (mr_trainer_id_parse(id, &ev.session)) {
        mr_log(MR_ERROR, "record.damaged", "what=\"a key that is no session id\"");
        return;
    }
    mr_records_known(tr->records, id, record, document);
    if (mr_training_document_parse(document, &ev.document, &e))
        mr_log(MR_ERROR, "record.document_refused", "session=%.*s error=\"%s\"", MR_STR_ARG(id),
            e.text);
    mr_trainings_step(tr, &ev);
}

static int read_one(
    struct mr_trainings *tr, struct mr_str id, struct mr_str record, struct mr_error *e)
{
    const struct mr_str argv[] = {
        MR_STR("HGET"), MR_STR(MR_META_PREFIX MR_META_TRAINING_DOCUMENTS), id};
    struct mr_reply *reply = NULL;
    int err = mr_redis_call(tr->t->redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return err;
    take_record(tr, id, record, mr_reply_text(reply));
    mr_reply_free(&reply);
    return MR_OK;
}

int mr_trainings_recover(struct mr_trainings *tr, struct mr_error *e)
{
    static const struct mr_str argv[] = {
        MR_STR_INIT("HGETALL"), MR_STR_INIT(MR_META_PREFIX MR_META_TRAININGS)};
    const struct mr_records_link link = {send, on_acked, on_away, on_back, on_refused, tr};
    struct mr_reply *reply = NULL;
    tr->records = mr_records_new(&link, tr->t->epoch, NULL);
    int err = mr_redis_call(tr->t->redis, MR_ARRAY_LEN(argv), argv, &reply, e);
    if (err) return err;
    size_t n = mr_reply_count(reply);
    for (size_t i = 0; i + 1 < n && !err; i += 2)
        err = read_one(
            tr, mr_reply_text(mr_reply_at(reply, i)), mr_reply_text(mr_reply_at(reply, i + 1)), e);
    mr_reply_free(&reply);
    if (err) return err;
    if (n) mr_log(MR_INFO, "trainings.recovered", "sessions=%zu", n / 2);
    struct mr_trainer_event ev = {.type = MR_TE_RECOVERED};
    mr_trainings_step(tr, &ev);
    return MR_OK;
}
