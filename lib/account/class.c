#include "account/class.h"

#include "base/assert.h"
#include "base/defs.h"

static const char *const names[] = {
    [MR_ACCOUNT_COMPUTE] = "compute",
    [MR_ACCOUNT_PREEMPTED] = "preempted",
    [MR_ACCOUNT_BLOCKED] = "blocked",
    [MR_ACCOUNT_INPUT] = "input",
    [MR_ACCOUNT_OUTPUT] = "output",
    [MR_ACCOUNT_FEED] = "feed",
    [MR_ACCOUNT_PULL] = "pull",
    [MR_ACCOUNT_PUSH] = "push",
    [MR_ACCOUNT_WAIT] = "wait",
    [MR_ACCOUNT_NO_WORK] = "no_work",
    [MR_ACCOUNT_CLIENT] = "client",
    [MR_ACCOUNT_DEPENDENCY] = "dependency",
    [MR_ACCOUNT_IMBALANCE] = "imbalance",
    [MR_ACCOUNT_REPORT] = "report",
    [MR_ACCOUNT_DECIDE] = "decide",
    [MR_ACCOUNT_SEND] = "send",
    [MR_ACCOUNT_HANDOFF] = "handoff",
    [MR_ACCOUNT_TRANSFER] = "transfer",
    [MR_ACCOUNT_RESTORE] = "restore",
    [MR_ACCOUNT_MEMORY] = "memory",
    [MR_ACCOUNT_JOURNAL] = "journal",
    [MR_ACCOUNT_RESTRICTED] = "restricted",
    [MR_ACCOUNT_START_UP] = "start_up",
    [MR_ACCOUNT_STOPPED] = "stopped",
    [MR_ACCOUNT_UNKNOWN] = "unknown",
};
_Static_assert(MR_ARRAY_LEN(names) == MR_ACCOUNT_CLASSES, "each class has a name");

const char *mr_account_class_name(enum mr_account_class class)
{
    mr_assert(class < MR_ACCOUNT_CLASSES);
    return names[class];
}

bool mr_account_class_is_busy(enum mr_account_class class)
{
    return class < MR_ACCOUNT_NO_WORK || class == MR_ACCOUNT_RESTORE;
}
