/* The trainer's core in a test. A simulated Redis acknowledges writes at once, unless the test sets
 * `holds`. */
#pragma once

#include "base/alloc.h"
#include "services/trainer/core/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SETS                                                                                       \
    "\"train\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}},"                                   \
    "\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}"
#define MODEL                                                                                      \
    "\"model\":{\"input\":[4],\"layers\":[{\"type\":\"Dense\",\"units\":2}]},\"data\":{" SETS "}"
#define FEED                                                                                       \
    "{\"model\":{\"input\":[4],\"layers\":[{\"type\":\"Dense\",\"units\":2}]},"                    \
    "\"data\":{\"queue\":\"q\",\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}},"   \
    "\"graph\":{\"tasks\":{}}}"
#define WALL 1700000000000000000u

struct rig {
    struct mr_trainer *t;
    struct mr_trainer_effects fx;
    mr_time now;
    uint64_t ticket;
    mr_training_id id;
    bool holds; /* Redis does not acknowledge writes */
    uint64_t sequence;
    struct mr_trainer_effect last[32]; /* the latest effect of each type */
    uint32_t seen[32];
    char text[4096];   /* text of the latest FOLLOW, or of the latest effect with an error */
    char channel[512]; /* channel of the latest effect that has one */
    char record[65536];
    size_t record_bytes;
    struct mr_trainer_effect erased[16]; /* effects that erase objects of checkpoints, in order */
    uint32_t erased_count;
};

static inline void step(struct rig *r, struct mr_trainer_event ev)
{
    ev.wall_ns = WALL + r->now;
    mr_trainer_step(r->t, r->now, &ev, &r->fx);
    mr_trainer_check(r->t);
    uint64_t sequence = 0;
    for (size_t i = 0; i < mr_trainer_effects_count(&r->fx); i++) {
        const struct mr_trainer_effect *x = mr_trainer_effect_at(&r->fx, i);
        struct mr_str text = mr_trainer_effect_text(&r->fx, x);
        r->last[x->type] = *x;
        r->seen[x->type]++;
        if (x->type == MR_TX_ERASE && r->erased_count < MR_ARRAY_LEN(r->erased))
            r->erased[r->erased_count++] = *x;
        if (x->err || x->type == MR_TX_FOLLOW)
            (void)snprintf(r->text, sizeof r->text, "%.*s", MR_STR_ARG(text));
        if (x->channel_bytes)
            (void)snprintf(r->channel, sizeof r->channel, "%.*s",
                MR_STR_ARG(mr_trainer_effect_channel(&r->fx, x)));
        if (x->type == MR_TX_WRITE) memcpy(r->record, text.p, r->record_bytes = text.n);
        if (x->type == MR_TX_WRITE || x->type == MR_TX_DELETE) sequence = x->sequence;
        if (x->type == MR_TX_STARTED && !x->err) r->id = x->session;
    }
    mr_trainer_effects_clear(&r->fx);
    assert_true(mr_trainer_deadline(r->t) > r->now); /* the core has done all that is due */
    if (sequence) r->sequence = sequence;
    if (sequence && !r->holds)
        step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = sequence});
}

static inline void rig_begin(struct rig *r)
{
    struct mr_trainer_config c;
    memset(r, 0, sizeof *r);
    mr_trainer_config_default(&c);
    c.epoch = 1;
    c.ended_max = 2;
    r->t = mr_trainer_new(&c);
    assert_int_equal(mr_trainer_deadline(r->t), MR_NEVER);
    r->now = MR_SECOND;
    mr_trainer_effects_init(&r->fx);
    step(r, (struct mr_trainer_event){.type = MR_TE_RECOVERED});
}

static inline void rig_end(struct rig *r)
{
    mr_trainer_free(&r->t);
    mr_trainer_effects_fini(&r->fx);
}

static inline int start(struct rig *r, const char *request, const char *json)
{
    struct mr_trainer_event ev = {
        .type = MR_TE_START, .ticket = ++r->ticket, .text = mr_str(request)};
    struct mr_error e = {0};
    if (mr_training_document_parse(mr_str(json), &ev.document, &e)) fail_msg("%s", e.text);
    step(r, ev);
    return r->last[MR_TX_STARTED].err;
}

static inline struct mr_training_info look(struct rig *r)
{
    struct mr_training_info info;
    assert_int_equal(mr_trainer_info(r->t, r->id, &info), MR_OK);
    return info;
}

static inline void job(struct rig *r, bool roles, enum mr_training_job_state state, const char *why)
{
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_SUBMITTED,
                .session = r->id,
                .roles = roles,
                .job = mr_job_id_make(1, 1 + roles)});
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_STATE,
                .session = r->id,
                .roles = roles,
                .job_state = state,
                .text = mr_str(why)});
}

static inline uint64_t join(
    struct rig *r, enum mr_training_role role, uint32_t index, const char *task)
{
    char address[32];
    (void)snprintf(address, sizeof address, "h:%d%u", role, index);
    struct mr_trainer_event ev = {.type = MR_TE_JOIN,
        .ticket = ++r->ticket,
        .session = r->id,
        .role = role,
        .index = index,
        .wait = MR_SECOND,
        .join = {mr_str(task), mr_str(address), MR_STR("n"), MR_STR("")}};
    step(r, ev);
    struct mr_training_info info = look(r);
    for (uint32_t i = 0; i < info.members_count; i++) {
        struct mr_training_member_info m;
        mr_trainer_member(r->t, r->id, i, &m);
        if (m.role == role && m.index == index) return m.incarnation;
    }
    return 0;
}

static inline int report(struct rig *r, enum mr_training_role role, uint32_t index,
    uint64_t incarnation, struct mr_training_report what)
{
    if (!what.restore_epoch) what.restore_epoch = look(r).restore_epoch;
    step(r, (struct mr_trainer_event){.type = MR_TE_REPORT,
                .ticket = ++r->ticket,
                .session = r->id,
                .role = role,
                .index = index,
                .incarnation = incarnation,
                .report = what});
    return r->last[MR_TX_REPORTED].err;
}

static inline void tick(struct rig *r, mr_duration after)
{
    r->now += after;
    step(r, (struct mr_trainer_event){.type = MR_TE_TICK});
}

static inline void score(struct rig *r, const char *channel, unsigned n, const char *json)
{
    char entry[32];
    (void)snprintf(entry, sizeof entry, "%llu-%u", (unsigned long long)(WALL / 1000000 + 2000), n);
    step(r, (struct mr_trainer_event){.type = MR_TE_ENTRY,
                .channel = mr_str(channel),
                .entry = mr_str(entry),
                .text = mr_str(json)});
}

struct cast {
    uint64_t ps, worker, scorer;
};

/* Starts a session and lets its server, its worker and its scorer run. */
static inline struct cast run(struct rig *r, const char *more)
{
    char json[2048];
    (void)snprintf(json, sizeof json, "{" MODEL "%s}", more);
    assert_int_equal(start(r, "", json), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    struct cast c;
    c.ps = join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    c.worker = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
    c.scorer = join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    return c;
}

static inline void says(struct mr_str text, const char *words)
{
    if (!memmem(text.p, text.n, words, strlen(words)))
        fail_msg("\"%.*s\" does not say \"%s\"", MR_STR_ARG(text), words);
}

static inline void stop_it(struct rig *r, bool abandon)
{
    step(r, (struct mr_trainer_event){
                .type = MR_TE_STOP, .ticket = ++r->ticket, .session = r->id, .abandon = abandon});
}

static inline int setup(void **state)
{
    struct rig *r = mr_alloc(sizeof *r);
    rig_begin(r);
    *state = r;
    return 0;
}

static inline int teardown(void **state)
{
    rig_end(*state);
    mr_release(*state);
    return 0;
}

/* Makes another trainer, `next`, from the record of the session of `r`. */
static inline void read_by(struct rig *r, struct rig *next, const char *json, struct mr_str record)
{
    struct mr_trainer_config c;
    memset(next, 0, sizeof *next);
    mr_trainer_config_default(&c);
    c.epoch = 2;
    next->t = mr_trainer_new(&c);
    mr_trainer_effects_init(&next->fx);
    next->id = r->id;
    next->now = r->now;
    next->ticket = 1000;
    struct mr_trainer_event ev = {.type = MR_TE_RECORD, .session = r->id, .text = record};
    assert_int_equal(mr_training_document_parse(mr_str(json), &ev.document, NULL), MR_OK);
    step(next, ev);
    step(next, (struct mr_trainer_event){.type = MR_TE_RECOVERED});
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
