/* The effects of the trainer's core. The shell owns one mr_trainer_effects, gives it to each step,
 * and carries out the effects BEFORE the next step. Then it clears them. The comment of each type
 * lists the members of struct mr_trainer_effect that are set. To fill an answer the shell reads
 * mr_trainer_info, which shows the current state. */
#pragma once

#include "base/buf.h"
#include "services/trainer/core/event.h"

enum mr_trainer_effect_type {
    /* Answers to calls. `err` is MR_OK, or an error that `text` explains. */
    MR_TX_STARTED,   /* ticket, session; existed: the same request came before */
    MR_TX_STOPPED,   /* ticket, session */
    MR_TX_FORGOTTEN, /* ticket, session */
    /* ticket, session, role, index, joined; mr_trainer_info has all roles of the session */
    MR_TX_JOINED,
    MR_TX_REPORTED, /* ticket, session, instruction */
    MR_TX_BARRIER,  /* ticket, session, instruction.generation */
    /* ticket, session, role, index; mr_trainer_rows has the rows, if they are decided */
    MR_TX_ROWS,
    /* Effects on Redis. Each session has one record, and WRITE replaces the whole record. The
     * WRITEs and DELETEs of all sessions are numbered together: `sequence` is 1, 2, … */
    /* session, sequence; text: the record; with_document: true: the document, which never changes,
     * is to be written, too (mr_trainer_document) */
    MR_TX_WRITE,
    MR_TX_DELETE, /* session, sequence: the session's record and document are to be deleted */
    /* Effects on jobs. An event answers each of them, except JOB_FORGET. If the scheduler did not
     * answer, the core repeats the effect. */
    /* session, roles, feed. `roles` and `feed` tell which job of the session is meant. The shell
     * makes the request id. A repeated effect must get the same request id, and another job must
     * get another one */
    MR_TX_JOB_SUBMIT,
    MR_TX_JOB_POLL,   /* session, roles, feed, job */
    MR_TX_JOB_CANCEL, /* session, roles, feed, job; text: the reason */
    /* session, roles, feed, job. A job that still runs is to be cancelled first. There is no
     * answer */
    MR_TX_JOB_FORGET,
    /* Other effects. */
    /* session, version, index (the shard), object: an object of a checkpoint and its name are to be
     * deleted. Repeated after a restart, so NOT_FOUND is no error. There is no answer */
    MR_TX_ERASE,
    /* channel: asks for the channel's last entry. The event LOCATED answers, as soon as Redis has
     * answered */
    MR_TX_LOCATE,
    /* channel, text: the entries after the entry whose id is `text` ("": all entries) are to be
     * sent as ENTRY events, until UNFOLLOW or another FOLLOW of the channel */
    MR_TX_FOLLOW,
    MR_TX_UNFOLLOW, /* channel */
    /* session, change. The shell informs the Watches of the session, and the Gets and Starts that
     * wait for its end. `change`: number of a change that Redis has stored; 0: only the progress
     * has changed, which is told at most twice a second */
    MR_TX_CHANGED,
};

struct mr_trainer_instruction { /* the answer to Join and Report; shows what Redis has stored */
    uint32_t generation;
    uint32_t restore_epoch;
    enum mr_training_phase phase;
};

struct mr_trainer_joined {
    bool formed;
    uint64_t incarnation; /* 0: Redis does not have the incarnation yet, so `formed` is false */
    uint64_t resume_steps;
    bool has_checkpoint; /* the member starts from mr_training_info.restore */
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
    /* Ranges of mr_trainer_effects.text. mr_trainer_effect_text returns the first one,
     * mr_trainer_effect_channel the second one. */
    uint32_t text_at, text_bytes;
    uint32_t channel_at, channel_bytes;
};

struct mr_trainer_effects {
    struct mr_buf items; /* struct mr_trainer_effect each */
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

/* Return texts of an effect, lent until the effects are cleared or given to a step. */
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
