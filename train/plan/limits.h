/* Limits of a training session. The trainer accepts no session beyond them. Arrays in parameter
 * servers, workers and scorers have these sizes. */
#pragma once

#define MR_SHARDS_MAX 64u          /* shards of one model, that is, parameter servers */
#define MR_RANKS_MAX 64u           /* ranks of one all-reduce, that is, workers */
#define MR_TRAIN_WORKERS_MAX 1024u /* workers that push to one shard */
