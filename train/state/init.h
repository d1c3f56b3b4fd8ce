/* The parameters that a shard, or a rank's slice under all-reduce, starts from: those of a
 * checkpoint, those of a saved model, or parameters that are drawn at random from the seed. */
#pragma once

#include "train/member/role.h"

/* A range of the model's parameters, with the optimizer's slots for these parameters. */
struct mr_role_state {
    uint64_t version;
    float *params;
    float *slots[MR_NN_SLOTS_MAX];
    bool has_slots; /* false: the slots are zeros */
};

/* Loads `count` numbers of the parameter vector, from index `first` on. If the session's membership
 * names a checkpoint, the numbers come from this checkpoint. Otherwise they are what the document's
 * `init` says. Under all-reduce the vector has MR_RING_WORDS (checkpoint.h) more numbers than the
 * model. These are 0, unless a checkpoint has them. */
int mr_role_state_load(struct mr_role *r, uint64_t first, uint64_t count, struct mr_role_state *out,
    struct mr_error *e);
/* Does the same as mr_role_state_load, but with the given checkpoint instead of that of the
 * membership. If `checkpoint` is NULL or has no objects, loads what the document's `init` says. */
int mr_role_state_load_from(struct mr_role *r, const Millrace__V1__TrainingCheckpoint *checkpoint,
    uint64_t first, uint64_t count, struct mr_role_state *out, struct mr_error *e);
void mr_role_state_fini(struct mr_role_state *s);
