/* Carries out the effects of the core. All functions run on the control thread. */
#pragma once

#include "services/objectstore/control/shell.h"

/* Carries out sh->fx. Events that follow from an effect are queued with mr_ostore_shell_queue. */
void mr_ostore_shell_effects(struct mr_ostore_shell *sh);
/* Sets `out` to the statistics of the store. `pinned_bytes` includes the objects that clients have
 * pinned in shared memory. */
void mr_ostore_shell_stats(struct mr_ostore_shell *sh, struct mr_store_stats *out);
