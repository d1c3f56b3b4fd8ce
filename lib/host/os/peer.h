/* Decides which users may connect to a UNIX socket. All listeners use the same rule: the user of
 * this process, root, and the users of --allow-uid. */
#pragma once

#include "base/err.h"
#include "host/config/config.h"

#include <sys/types.h>

#define MR_PEER_UIDS_MAX 16

struct mr_peer_rules { /* all zeros: only the user of this process and root */
    bool any_uid;
    uid_t uids[MR_PEER_UIDS_MAX];
    size_t uids_count;
};

/* Parses the values of --allow-uid, which are user ids. The error text of MR_EINVAL names
 * the flag. */
int mr_peer_rules_parse(
    const struct mr_texts *allowed, struct mr_peer_rules *out, struct mr_error *e);

/* True: the peer of `fd` may connect. The kernel names the peer's user (SO_PEERCRED). False: the
 * peer may not connect, or the kernel does not know its user. A refusal is logged; `where` names
 * the listener in the log line. */
bool mr_peer_may_enter(const struct mr_peer_rules *rules, int fd, const char *where);

/* Returns the mode for the socket's file: 0600, or 0666 if users other than root and the user of
 * this process may connect. */
mode_t mr_peer_socket_mode(const struct mr_peer_rules *rules);
