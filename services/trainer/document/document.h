/* The document of a training session (docs/training.md): JSON as submitted, checked as a whole,
 * with defaults filled in and `params` substituted. Errors name the path of a field and what is
 * expected of it. This folder does no I/O, and a document does not change once it is made. */
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
#define MR_TRAINING_ROLE_COUNT_MAX 256 /* limit of the members of one role */
#define MR_TRAINING_NAME_BYTES_MAX 200
#define MR_TRAINING_CHANNEL_BYTES_MAX 256
#define MR_TRAINING_FIELD_BYTES_MAX 128 /* limit of the name of a score's field */
#define MR_TRAINING_KEEP_MAX 16         /* limit of the checkpoints that are kept */

enum mr_training_role { /* values of trainings.proto */
    MR_TRAINING_PS = 1,
    MR_TRAINING_WORKER,
    MR_TRAINING_SCORER,
};

enum mr_training_rule { MR_TRAINING_ASYNC, MR_TRAINING_SYNC, MR_TRAINING_ALLREDUCE };

/* A checked document, which owns its texts. */
struct mr_training_document {
    struct mr_str name, save;
    struct mr_str channel; /* n = 0: the channel is "<id>.scores" */
    bool has_graph;
    bool has_feed;              /* the graph fills the queue that the session trains from */
    bool is_exec;               /* the session's roles are foreign programs */
    uint32_t roles[4];          /* number of members, by enum mr_training_role */
    bool exec[4];               /* by enum mr_training_role; true: the role is a foreign program */
    enum mr_training_rule rule; /* async for foreign roles, where the rule means nothing */
    uint32_t replicas_to_aggregate; /* only with the rule sync */
    enum mr_nn_loss loss;
    struct mr_nn_threshold threshold;
    struct mr_str threshold_channel; /* n = 0: the session's own channel */
    struct mr_nn_patience patience;
    uint64_t epochs, steps;    /* 0: there is no such stop rule */
    mr_duration time;          /* 0: there is no such stop rule */
    uint64_t checkpoint_every; /* steps between two checkpoints; 0: there are none */
    uint32_t checkpoint_keep;
    mr_duration forming, recovering, stopping, lease, preparing;
    struct mr_training_words *words; /* memory of the texts; private to document.c */
};

/* Parses and checks a document. MR_EFORMAT: the text is no JSON. MR_ETOOBIG: it is too large.
 * MR_EINVAL: a field is wrong. */
int mr_training_document_parse(
    struct mr_str json, struct mr_training_document **out, struct mr_error *e);
void mr_training_document_free(struct mr_training_document **d);

/* Returns the document as it was submitted. */
struct mr_str mr_training_document_text(const struct mr_training_document *d);
/* Appends the document without secrets: of the roles' `env` it shows the names, but not the
 * values. */
void mr_training_document_show(const struct mr_training_document *d, struct mr_buf *out);
/* Returns the document with defaults and parameters, from which roles and jobs are made. `graph`
 * and `params` are as submitted. n = 0: the document was trimmed. */
struct mr_str mr_training_document_json(const struct mr_training_document *d);

/* Frees the document except the submitted text and the texts of this struct. Called when the
 * session has ended and needs no more jobs. */
void mr_training_document_trim(struct mr_training_document *d);

static inline struct mr_str mr_training_document_name(const struct mr_training_document *d)
{
    return d->name;
}

static inline struct mr_str mr_training_document_save(const struct mr_training_document *d)
{
    return d->save;
}

/* Returns the number of shard owners: parameter servers, or workers under all-reduce. Foreign roles
 * own no shards: 0. */
static inline uint32_t mr_training_document_shards(const struct mr_training_document *d)
{
    if (d->is_exec) return 0;
    return d->rule == MR_TRAINING_ALLREDUCE ? d->roles[MR_TRAINING_WORKER]
                                            : d->roles[MR_TRAINING_PS];
}
