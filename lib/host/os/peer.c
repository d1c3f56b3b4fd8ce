/* Checks the user of a UNIX socket's peer by SO_PEERCRED. */
#include "host/os/peer.h"

#include "host/config/value.h"
#include "host/os/log.h"

#include <inttypes.h>
#include <sys/socket.h>
#include <unistd.h>

int mr_peer_rules_parse(
    const struct mr_texts *allowed, struct mr_peer_rules *out, struct mr_error *e)
{
    *out = (struct mr_peer_rules){0};
    if (allowed->count > MR_PEER_UIDS_MAX)
        return mr_fail(e, MR_EINVAL, "--allow-uid: at most %d", MR_PEER_UIDS_MAX);
    for (size_t i = 0; i < allowed->count; i++) {
        uint64_t uid = 0;
        if (mr_config_parse_u64(mr_str(allowed->items[i]), &uid) || uid >= UINT32_MAX)
            return mr_fail(e, MR_EINVAL,
                "--allow-uid: \"%s\" is no user id: a number is wanted, as `id -u` prints it",
                allowed->items[i]);
        out->uids[out->uids_count++] = (uid_t)uid;
    }
    return MR_OK;
}

static bool is_allowed(const struct mr_peer_rules *rules, uid_t uid)
{
    if (rules->any_uid || uid == geteuid() || uid == 0) return true;
    for (size_t i = 0; i < rules->uids_count; i++)
        if (uid == rules->uids[i]) return true;
    return false;
}

bool mr_peer_may_enter(const struct mr_peer_rules *rules, int fd, const char *where)
{
    struct ucred who = {0};
    socklen_t n = sizeof who;
    bool known = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n);
    if (known && is_allowed(rules, who.uid)) return true;
    char path[160];
    mr_log(MR_WARN, "peer.refused", "uid=%" PRIu32 " pid=%" PRId32 " socket=%s", (uint32_t)who.uid,
        (int32_t)who.pid, mr_log_quote(mr_str(where), path, sizeof path));
    return false;
}

mode_t mr_peer_socket_mode(const struct mr_peer_rules *rules)
{
    return rules->any_uid || rules->uids_count ? 0666 : 0600;
}
