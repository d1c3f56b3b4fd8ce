/* Between the core's journal records and Redis: numbering, acknowledgement, snapshots, replay. */
#pragma once

#include "services/scheduler/base/context.h"

/* Connects, takes the epoch (into sh->options.core.epoch) and keeps the records for replay. */
int mr_ledger_open(struct mr_shell *sh, struct mr_error *e);
void mr_ledger_close(struct mr_ledger **l);
void mr_ledger_replay(struct mr_shell *sh);  /* steps the core with all of them, then RECOVERED */
void mr_ledger_perform(struct mr_shell *sh); /* takes fx.journal */
/* The same at once after a graph was submitted whose bytes stand in `pieces`, records of the
 * journal: those that the core's records name are taken. */
void mr_ledger_give(struct mr_shell *sh, void **pieces);
#define MR_LEDGER_PIECE_HEAD 20 /* bytes before a piece in its record: type, job, offset */
void mr_ledger_flush(struct mr_shell *sh); /* what was taken leaves for Redis */
void mr_ledger_message(struct mr_shell *sh, const struct mr_shell_message *m);
struct mr_str mr_ledger_state(const struct mr_shell *sh); /* "" or why it is away */
