/* Writes the list of members for a foreign program, and holds the program back until it may
 * start. */
#pragma once

#include "train/member/role.h"

#define MR_EXEC_MEMBERS "members.json"

/* Writes the file MR_EXEC_MEMBERS into the program's directory, atomically. */
int mr_exec_members_write(const struct mr_role *r, const char *dir, struct mr_error *e);
/* Returns a hash over the task ids of all members. The hash changes when a new task replaces a
 * member. The new member has another address. */
uint64_t mr_exec_team(const struct mr_role *r);
/* A barrier between all roles whose programs have not finished, within one generation. When the
 * function returns MR_OK, none of these programs runs. It returns MR_OK also when the session
 * halts. */
int mr_exec_meet(struct mr_role *r);
