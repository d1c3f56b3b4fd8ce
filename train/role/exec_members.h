/* What a running program is told of its session. Private to train/role. */
#pragma once

#include "train/member/role.h"

#define MR_EXEC_MEMBERS "members.json"

/* Writes the list of members into the program's directory, atomically. */
int mr_exec_members_write(const struct mr_role *r, const char *dir, struct mr_error *e);
/* Another number when another attempt took a member's place; it has another address. */
uint64_t mr_exec_team(const struct mr_role *r);
/* Returns when the roles of all programs that have not ended are here, in one generation, so that
 * none of them runs any more. MR_OK as well when the session halts meanwhile. */
int mr_exec_meet(struct mr_role *r);
