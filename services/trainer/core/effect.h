/* What the core of the trainer wants done. The shell owns one mr_trainer_effects and gives it to a
 * step. It carries out the effects BEFORE the next step, and then clears them. It fills answers
 * from mr_trainer_info, which shows the current state. */
#pragma once

#include "base/buf.h"
#include "services/trainer/core/event.h"

enum mr_trainer_effect_type {
    /* Answers. `err` and `text` (its sentence), or MR_OK. */
    MR_TX_STARTED,   /* ticket, session, existed: the same request came before. Redis has it */
    MR_TX_STOPPED,   /* ticket, session */
    MR_TX_FORGOTTEN, /* ticket, session */
    MR_TX_JOINED,    /* ticket, session, role, index, joined; members etc. from mr_trainer_info */
    MR_TX_REPORTED,  /* ticket, session, instruction */
    MR_TX_BARRIER,   /* ticket, session, instruction.generation */
    MR_TX_ROWS,      /* ticket, session, role, index: which rows, if decided: mr_trainer_rows */
    /* Redis. One record a session, overwritten as a whole. Sequences grow by one. */
    MR_TX_WRITE, /* session, sequence, text: the record, with_document: also write the document (its
                    text as submitted, mr_trainer_document), beside the record; it never changes */
    MR_TX_DELETE, /* session, sequence: its record and document */
    /* Jobs. Each is answered by its event; asked again by the core when the scheduler was away. */
    MR_TX_JOB_SUBMIT, /* session, roles, feed: which job. Its request id is to be the same every
                         time for this session, and no other's: shell */
    MR_TX_JOB_POLL,   /* session, roles, feed, job */
    MR_TX_JOB_CANCEL, /* session, roles, feed, job, text: why */
    MR_TX_JOB_FORGET, /* session, roles, feed, job: no answer; cancelled if it still runs */
    /* The rest. */
    MR_TX_ERASE,    /* session, version, index: the shard, object: a checkpoint's object, with its
                       name; again after a restart, so NOT_FOUND is fine. No answer */
    MR_TX_LOCATE,   /* channel: where does it end now? LOCATED answers, as soon as Redis does */
    MR_TX_FOLLOW,   /* channel, text: go on after this entry ("": from the beginning). ENTRY events,
                       until: (or until FOLLOW says to begin elsewhere) */
    MR_TX_UNFOLLOW, /* channel */
    MR_TX_CHANGED,  /* session, change: number of the event, durable; 0: only its progress (at most
                       twice a second). For Watch, and for Get and Start that wait for the end */
};

struct mr_trainer_instruction { /* what Join and Report answer; only what Redis has */
    uint32_t generation;
    uint32_t restore_epoch;
    enum mr_training_phase phase;
};

struct mr_trainer_joined {
    bool formed;
    uint64_t incarnation; /* 0: Redis does not have it yet; not formed then */
    uint64_t resume_steps;
    bool has_checkpoint; /* mr_training_info.restore: to begin from */
};

struct mr_trainer_effect {
    enum mr_trainer_effect_type type;
    int err;
    uint64_t ticket;
    mr_training_id session;
    uint64_t sequence;
    uint64_t change;
    uint64_t version;
    enum mr_training_role role;
    uint32_t index;
    bool existed;
    bool roles, feed;
    bool with_document;
    mr_job_id job;
    mr_object_id object;
    struct mr_trainer_instruction instruction;
    struct mr_trainer_joined joined;
    uint32_t text_at, text_bytes;       /* in `text`: mr_trainer_effect_text */
    uint32_t channel_at, channel_bytes; /* in `text`: mr_trainer_effect_channel */
};

struct mr_trainer_effects {
    struct mr_buf items; /* struct mr_trainer_effect */
    struct mr_buf text;
};

void mr_trainer_effects_init(struct mr_trainer_effects *fx);
void mr_trainer_effects_fini(struct mr_trainer_effects *fx);
void mr_trainer_effects_clear(struct mr_trainer_effects *fx);

static inline size_t mr_trainer_effects_count(const struct mr_trainer_effects *fx)
{
    return fx->items.n / sizeof(struct mr_trainer_effect);
}

static inline const struct mr_trainer_effect *mr_trainer_effect_at(
    const struct mr_trainer_effects *fx, size_t i)
{
    return (const struct mr_trainer_effect *)(const void *)fx->items.p + i;
}

/* Loans until the effects are cleared or given to a step. */
static inline struct mr_str mr_trainer_effect_text(
    const struct mr_trainer_effects *fx, const struct mr_trainer_effect *e)
{
    return mr_str_of(fx->text.p + e->text_at, e->text_bytes);
}

static inline struct mr_str mr_trainer_effect_channel(
    const struct mr_trainer_effects *fx, const struct mr_trainer_effect *e)
{
    return mr_str_of(fx->text.p + e->channel_at, e->channel_bytes);
}
