/* Checkpoints of a shard or of a rank's slice. Each is one object, f32 [1 + slots, count + 16]. Row
 * 0 has the parameters, the other rows have the optimizer's slots. The last 16 numbers of row 0 are
 * the head, which says what the object is a part of. A second thread persists the object while
 * training goes on. */
#pragma once

#include "train/member/role.h"

#define MR_CHECKPOINT_HEAD_WORDS 16
/* The vector of an all-reduce ends with this many numbers that are not part of the model. They tell
 * the ranks when to halt, and whether a rank had a batch (train/role/worker_ring.c). */
#define MR_RING_WORDS 2

struct mr_checkpoint_head {
    uint64_t version;
    uint64_t model_count; /* how many parameters the whole model has */
    uint64_t first;       /* place of the object's first number in the model's vector */
    uint32_t slots;
    enum mr_nn_optim_type optim;
};
void mr_checkpoint_head_write(const struct mr_checkpoint_head *h, float *to);
bool mr_checkpoint_head_read(const float *from, struct mr_checkpoint_head *out);

struct mr_checkpointer;

/* Starts the thread. `shard`: index of the shard or rank. `r`: lent until mr_checkpointer_stop. */
struct mr_checkpointer *mr_checkpointer_start(struct mr_role *r, uint32_t shard);
/* Stops the thread when it has written what was copied. */
void mr_checkpointer_stop(struct mr_checkpointer **c);
/* Copies the parameters and slots and returns; the thread writes and reports them. The thread may
 * still be writing the previous snapshot. Then the only shard or rank of a session skips this
 * snapshot. One of several waits, and skips only if the role has to stop. */
void mr_checkpointer_snapshot(struct mr_checkpointer *c, uint64_t version, const float *params,
    float *const *slots, uint64_t count);
/* Returns the first version after `version` at which a checkpoint is due; 0: none is. */
uint64_t mr_checkpoint_after(const struct mr_role *r, uint64_t version);
