/* Checkpoints of a shard or of a rank's slice: one object each, f32 [1 + slots, count + 16]. Row 0
 * holds the parameters, the other rows the optimizer's slots. The last 16 numbers of row 0 are the
 * head, which says what the object is of. A thread of its own persists the object while training
 * goes on. */
#pragma once

#include "train/member/role.h"

#define MR_CHECKPOINT_HEAD_WORDS 16
#define MR_RING_WORDS 2 /* numbers beyond the model by which the ranks of a ring agree */

struct mr_checkpoint_head {
    uint64_t version;
    uint64_t model_count; /* parameters of the whole model */
    uint64_t first;       /* the object's first number in the vector */
    uint32_t slots;
    enum mr_nn_optim_type optim;
};
void mr_checkpoint_head_write(const struct mr_checkpoint_head *h, float *to);
bool mr_checkpoint_head_read(const float *from, struct mr_checkpoint_head *out);

struct mr_checkpointer;

/* `shard`: index of the shard or rank. `r` is lent until stop. */
struct mr_checkpointer *mr_checkpointer_start(struct mr_role *r, uint32_t shard);
void mr_checkpointer_stop(struct mr_checkpointer **c); /* after what was copied is written */
/* Copies the parameters and slots and returns; the thread writes and reports them. While the
 * previous snapshot is still being written, the only shard of a session skips this one, and one of
 * several shards waits. */
void mr_checkpointer_snapshot(struct mr_checkpointer *c, uint64_t version, const float *params,
    float *const *slots, uint64_t count);
/* The first version after `version` at which a checkpoint is due; 0: never. */
uint64_t mr_checkpoint_after(const struct mr_role *r, uint64_t version);
