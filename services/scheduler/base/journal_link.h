/* Between the core's journal records and Redis: numbering, acknowledgement, snapshots, replay. */
#pragma once

#include "services/scheduler/base/context.h"

/* Connects, takes the epoch (into sh->options.core.epoch) and keeps the records for replay. */
int mr_journal_link_open(struct mr_shell *sh, struct mr_error *e);
void mr_journal_link_close(struct mr_journal_link **l);
void mr_journal_link_replay(
    struct mr_shell *sh); /* steps the core with all of them, then RECOVERED */
void mr_journal_link_perform(struct mr_shell *sh); /* takes fx.journal */
/* The same at once after a graph was submitted whose bytes stand in `pieces`, records of the
 * journal: those that the core's records name are taken. */
void mr_journal_link_give(struct mr_shell *sh, void **pieces);
void mr_journal_link_flush(struct mr_shell *sh); /* what was taken leaves for Redis */
void mr_journal_link_message(struct mr_shell *sh, const struct mr_shell_message *m);
struct mr_str mr_journal_link_state(const struct mr_shell *sh); /* "" or why it is away */
