/* What the core of the trainer wants done. The shell owns one mr_trainer_effects, gives it to each
 * step, and carries out the effects BEFORE the next step; then it clears them. To fill an answer
 * the shell reads mr_trainer_info, which shows the current state. */
#pragma once

#include "base/buf.h"
#include "services/trainer/core/event.h"

enum mr_trainer_effect_type {
    /* Answers to calls: MR_OK, or `err` with `text`. The comments list the other fields that are
     * set. */
    MR_TX_STARTED,   /* ticket, session, existed (the same request came before) */
    MR_TX_STOPPED,   /* ticket, session */
    MR_TX_FORGOTTEN, /* ticket, session */
    MR_TX_JOINED,    /* ticket, session, role, index, joined; mr_trainer_info has the members */
    MR_TX_REPORTED,  /* ticket, session, instruction */
    MR_TX_BARRIER,   /* ticket, session, instruction.generation */
    MR_TX_ROWS,      /* ticket, session, role, index; mr_trainer_rows has the rows, if decided */
    /* Redis: one record for each session, overwritten as a whole. Sequences grow by one. */
    MR_TX_WRITE,  /* session, sequence, text: the record; with_document: also write
                   * mr_trainer_document beside the record; it never changes */
    MR_TX_DELETE, /* session, sequence: its record and document */
    /* Jobs. An event answers each one. If the scheduler did not answer, the core asks again. */
    MR_TX_JOB_SUBMIT, /* session; roles, feed: which job. The shell makes the request id, which
                       * must be the same each time, and used for this job only */
    MR_TX_JOB_POLL,   /* session, roles, feed, job */
    MR_TX_JOB_CANCEL, /* session, roles, feed, job, text: why */
    MR_TX_JOB_FORGET, /* session, roles, feed, job. Cancels a job that still runs. No answer */
    /* Others. */
    MR_TX_ERASE,    /* session, version, index (the shard), object: deletes an object of a
                     * checkpoint and its name. Repeated after a restart, so NOT_FOUND is no
                     * error. No answer */
    MR_TX_LOCATE,   /* channel: asks for its last entry. LOCATED answers when Redis does */
    MR_TX_FOLLOW,   /* channel, text: sends the entries after this one ("": from the beginning) as
                     * ENTRY events, until UNFOLLOW or another FOLLOW of the channel */
    MR_TX_UNFOLLOW, /* channel */
    MR_TX_CHANGED,  /* session, change: number of the change, which Redis has; 0: only progress, at
                     * most twice a second. For Watch, and for Get and Start that wait */
};

struct mr_trainer_instruction { /* the answer to Join and Report; only what Redis has */
    uint32_t generation;
    uint32_t restore_epoch;
    enum mr_training_phase phase;
};

struct mr_trainer_joined {
    bool formed;
    uint64_t incarnation; /* 0: Redis does not have it yet, so `formed` is false */
    uint64_t resume_steps;
    bool has_checkpoint; /* start from mr_training_info.restore */
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

/* The texts are loans until the effects are cleared or given to a step. */
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
