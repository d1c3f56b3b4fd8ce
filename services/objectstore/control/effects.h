/* The effects of the core, carried out. On the control thread. */
#pragma once

#include "services/objectstore/control/shell.h"

/* Carries out sh->fx. Events that follow from it are queued with mr_ostore_shell_queue. */
void mr_ostore_shell_effects(struct mr_ostore_shell *sh);
void mr_ostore_shell_stats(struct mr_ostore_shell *sh, struct mr_store_stats *out);
