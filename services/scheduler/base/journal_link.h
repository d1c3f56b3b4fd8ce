/* Between the core's journal records and Redis: numbering, acknowledgement, snapshots, replay. */
#pragma once

#include "services/scheduler/base/context.h"

/* Connects to Redis, takes the next epoch (into sh->options.core.epoch) and reads the journal. */
int mr_journal_link_open(struct mr_shell *sh, struct mr_error *e);
void mr_journal_link_close(struct mr_journal_link **l);
/* Steps the core with every record that was read, then with RECOVERED. */
void mr_journal_link_replay(struct mr_shell *sh);
/* Appends the records of fx.journal to the journal. */
void mr_journal_link_perform(struct mr_shell *sh);
/* Appends the records of fx.journal, right after a graph was submitted. `pieces` has the bytes of
 * the graph; each piece becomes one record of the journal. The function takes ownership of those
 * pieces that the core's records name, and sets their pointers to NULL. */
void mr_journal_link_give(struct mr_shell *sh, void **pieces);
/* Sends the appended records to Redis. */
void mr_journal_link_flush(struct mr_shell *sh);
void mr_journal_link_message(struct mr_shell *sh, const struct mr_shell_message *m);
/* Returns "" or the reason why Redis is not available. */
struct mr_str mr_journal_link_state(const struct mr_shell *sh);
