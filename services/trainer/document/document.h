/* The document of a training session (docs/training.md): JSON as submitted, checked whole, with
 * defaults filled in and `params` put in. What is wrong is refused with its path and what would be
 * right. Pure; immutable once made. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/time.h"
#include "nn/net/loss.h"
#include "nn/optim/optim.h"
#include "nn/optim/early_stopping.h"

#include <stdbool.h>

#define MR_TRAINING_DOCUMENT_BYTES_MAX ((size_t)4 << 20)
#define MR_TRAINING_ROLE_COUNT_MAX 256 /* of one role */
#define MR_TRAINING_NAME_BYTES_MAX 200
#define MR_TRAINING_CHANNEL_BYTES_MAX 256
#define MR_TRAINING_FIELD_BYTES_MAX 128 /* of a score's field */
#define MR_TRAINING_KEEP_MAX 16         /* checkpoints */

enum mr_training_role { /* values of trainings.proto */
    MR_TRAINING_PS = 1,
    MR_TRAINING_WORKER,
    MR_TRAINING_SCORER,
};

enum mr_training_rule { MR_TRAINING_ASYNC, MR_TRAINING_SYNC, MR_TRAINING_ALLREDUCE };

/* Texts are the document's. */
struct mr_training_document {
    struct mr_str name, save;
    struct mr_str channel; /* n = 0: "<id>.scores" */
    bool has_graph;
    bool has_feed;                  /* the graph fills the queue that it trains from */
    bool is_exec;                   /* its roles are foreign processes */
    uint32_t roles[4];              /* counts, by enum mr_training_role */
    bool exec[4];                   /* by enum mr_training_role: not all may be foreign */
    enum mr_training_rule rule;     /* async for foreign roles, which have none */
    uint32_t replicas_to_aggregate; /* sync */
    enum mr_nn_loss loss;
    struct mr_nn_threshold threshold;
    struct mr_str threshold_channel; /* n = 0: the session's */
    struct mr_nn_patience patience;
    uint64_t epochs, steps;    /* 0: no such rule */
    mr_duration time;          /* 0: no such rule */
    uint64_t checkpoint_every; /* 0: none */
    uint32_t checkpoint_keep;
    mr_duration forming, recovering, stopping, lease, preparing;
    struct mr_training_words *words; /* the texts themselves; of document.c only */
};

/* MR_EINVAL, MR_EFORMAT (no JSON), MR_ETOOBIG; `*out` is then untouched. */
int mr_training_document_parse(
    struct mr_str json, struct mr_training_document **out, struct mr_error *e);
void mr_training_document_free(struct mr_training_document **d);

struct mr_str mr_training_document_text(const struct mr_training_document *d); /* as submitted */
/* The same for everybody's eyes: of roles' `env` the names, not the values. Appended. */
void mr_training_document_show(const struct mr_training_document *d, struct mr_buf *out);
/* With defaults and parameters: what roles and the two jobs are made from. `graph` and `params`
 * stand in it as submitted. n = 0: it is trimmed. */
struct mr_str mr_training_document_json(const struct mr_training_document *d);

/* Its session has ended and nothing is made from it any more: only the text and the texts of this
 * struct stay. */
void mr_training_document_trim(struct mr_training_document *d);

static inline struct mr_str mr_training_document_name(const struct mr_training_document *d)
{
    return d->name;
}

static inline struct mr_str mr_training_document_save(const struct mr_training_document *d)
{
    return d->save;
}

/* Owners of shards: parameter servers, or workers under all-reduce. Foreign roles have none. */
static inline uint32_t mr_training_document_shards(const struct mr_training_document *d)
{
    if (d->is_exec) return 0;
    return d->rule == MR_TRAINING_ALLREDUCE ? d->roles[MR_TRAINING_WORKER]
                                            : d->roles[MR_TRAINING_PS];
}
