/* Sends batches to workers and object stores. A batch is all that the core has for one of them. A
 * batch is lazy if no process waits for it, so it may be sent later. */
#pragma once

#include "services/scheduler/base/context.h"

struct mr_session;

/* Sends batches that are not lazy, and lazy batches whose time has come. True: a batch with tasks
 * was sent. */
bool mr_sessions_flush(struct mr_shell *sh);
/* Returns the time when mr_sessions_flush must be called again. */
mr_time mr_sessions_deadline(const struct mr_shell *sh);
/* Sends the waiting batch of a session, whose peer the core has accepted. If the stream takes no
 * message now, the batch waits for the next on_writable. */
void mr_session_flush(struct mr_session *x);
