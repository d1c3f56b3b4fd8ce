/* Who stands at the other end of a UNIX socket, and may they come in? The same for every listener:
 * our own uid, root, and those of --allow-uid. */
#pragma once

#include "base/err.h"
#include "host/config/config.h"

#include <sys/types.h>

#define MR_PEER_UIDS_MAX 16

struct mr_peer_rules { /* zero: our own uid and root */
    bool any_uid;
    uid_t uids[MR_PEER_UIDS_MAX];
    size_t uids_count;
};

/* The values of --allow-uid: numbers. MR_EINVAL names the flag. */
int mr_peer_rules_parse(
    const struct mr_texts *allowed, struct mr_peer_rules *out, struct mr_error *e);

/* Looks at the kernel's word for it (SO_PEERCRED); a refusal is logged with `where`. */
bool mr_peer_may_enter(const struct mr_peer_rules *rules, int fd, const char *where);

mode_t mr_peer_socket_mode(const struct mr_peer_rules *rules); /* of the socket's file */
